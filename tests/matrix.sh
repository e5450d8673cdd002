#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Called by `tests/run --matrix`.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
    cat <<'HELP'
tests/run --matrix [--filter REGEX] [--list]

The compilers and flags that hone is meant for, cell by cell. Compilers: g++, clang++-14, clang++-16 and clang++-19 of
this system, and sid-g++ and sid-clang++, the newest of Debian sid, inside a root of their own with the newest xsimd,
Eigen, Catch2 and Google Benchmark. Cells, by their names:
  COMPILER flags         a unit that uses everything, and each public header alone, without a warning: -O0, -O2, -O3;
                         no -march, native, haswell; C++20, C++23; without exceptions and RTTI; -ffast-math
  COMPILER suite NAME    the native tests (quick sweeps) as built by NAME: release, C++20, with every compiler; debug;
                         native, -O3 -march=native, C++23; haswell, -O2 -march=haswell -DHONE_XSIMD=1
  COMPILER programs      examples and benches, built and run (sid)
  reproducible NAME      tests/reproducible.sh: full; no-exceptions, -fno-exceptions -fno-rtti; sid

  --filter REGEX  only cells whose name matches, as for grep -E
  --list          prints the names of the cells
  --help          this text

What cannot be installed or run is skipped by name. The table at the end has a line per cell, the last line is the
count. Exit code 0 when nothing failed. Builds go to build/matrix, or to $HONE_BUILD_DIR/matrix.
  HONE_SID_ROOT=DIR  a root of Debian sid to use; what it lacks is installed into it. Left out: debootstrap makes one,
                     build/matrix/sid (2 GB). Both need root
  HONE_JOBS=N        build and test jobs (default: all CPUs)
HELP
}

filter='' list=0
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --list) list=1 ;;
        --filter) [ $# -ge 2 ] || { usage >&2; exit 2; }; filter=$2; shift ;;
        *) echo "tests/run --matrix: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
    esac
    shift
done
. "$root/.ci/packages.sh"
build=$(build_root)
mkdir -p "$build/matrix"
build=$(cd "$build" && pwd)
matrix=$build/matrix
unset HONE_TEST_QUICK  # the suites have it, reproducible.sh is told

if [ "$(uname -m)" != x86_64 ]; then
    echo "tests/run --matrix: made for x86-64, this machine is $(uname -m)" >&2
    exit 1
fi

passed=0 failed=0 skipped=0 lines=()
# row COMPILER WHAT TEXT: a line of the table.
row() { lines+=("$(printf '%-24s | %-38s | %s' "$1" "$2" "$3")"); }
# result COMPILER WHAT PASSED FAILED [SKIPPED]
result() {
    local text="$3 passed, $4 failed"
    [ "${5:-0}" = 0 ] || text="$text, $5 skipped"
    passed=$((passed + $3)) failed=$((failed + $4)) skipped=$((skipped + ${5:-0}))
    row "$1" "$2" "$text"
    echo "-- $1, $2: $text ($SECONDS s)"
}
skip() {  # COMPILER WHAT REASON
    skipped=$((skipped + 1))
    row "$1" "$2" "skipped: $3"
    echo "-- $1, $2: skipped: $3"
}

# in_sid COMMAND…: in the root, with the checkout and the builds at their own paths. The mounts are seen by this command
# alone and end with it, so nothing that is removed later can be one.
sid=
in_sid() {
    # shellcheck disable=SC2016
    unshare --mount --propagation private bash -c '
        sid=$1 root=$2 build=$3
        shift 3
        for dir in proc sys dev; do mount --rbind "/$dir" "$sid/$dir"; done
        for dir in "$root" "$build"; do
            mkdir -p "$sid$dir"
            mount --bind "$dir" "$sid$dir"
        done
        exec env -u TMPDIR HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            chroot "$sid" "$@"' bash "$sid" "$root" "$build" "$@"
}
in_here() { "$@"; }

sid_packages=(g++ clang cmake ninja-build pkg-config binutils libxsimd-dev libeigen3-dev catch2 libbenchmark-dev
    qemu-user libonnx-dev libprotobuf-dev protobuf-compiler libstb-dev libpolyclipping-dev libcli11-dev
    nlohmann-json3-dev)
# Sets sid, or says why there is none in no_sid.
no_sid=
open_sid() {
    if [ "$(id -u)" -ne 0 ]; then no_sid="a root of Debian sid needs root"; return 1; fi
    if ! unshare --mount --propagation private true 2>/dev/null; then no_sid="no mounts are allowed here"; return 1; fi
    local dir=${HONE_SID_ROOT:-$matrix/sid}
    if [ -n "${HONE_SID_ROOT:-}" ] && [ ! -x "$dir/usr/bin/apt-get" ]; then
        no_sid="HONE_SID_ROOT=$dir is no root of Debian"
        return 1
    fi
    if [ ! -x "$dir/usr/bin/apt-get" ] || [ -e "$dir.unfinished" ]; then
        local mirror mirrors made=0
        mapfile -t mirrors < <(grep -rhoE '^URIs: *\S+|^deb +(\[[^]]*\] +)?\S+' /etc/apt/sources.list \
            /etc/apt/sources.list.d 2>/dev/null | awk '{ print $NF }' | grep -v -- '-security' | sort -u)
        if [ ${#mirrors[@]} = 0 ] || ! need "the matrix (sid)" debootstrap:debootstrap; then
            no_sid="no debootstrap, or no mirror among apt's sources"
            return 1
        fi
        touch "$dir.unfinished"
        # Which of apt's sources is a mirror of Debian: the one that has sid.
        for mirror in "${mirrors[@]}"; do
            echo "-- sid: debootstrap from $mirror"
            rm -rf --one-file-system "$dir"
            # Its own mounts end with it, too.
            if quietly unshare --mount --propagation private debootstrap --variant=minbase --include=ca-certificates \
                sid "$dir" "$mirror"; then
                made=1
                break
            fi
        done
        if [ $made = 0 ]; then no_sid="none of apt's sources has Debian sid (${mirrors[*]})"; return 1; fi
        # How this system reaches its mirrors.
        apt-config dump Acquire | grep -E '^Acquire::(http|https|ftp|Retries)' \
            > "$dir/etc/apt/apt.conf.d/90hone" || true
        rm -f "$dir.unfinished"
    fi
    sid=$(cd "$dir" && pwd)
    [ "$(readlink -f "$sid")" != / ] || { no_sid="HONE_SID_ROOT is this system's own root"; return 1; }
    cp -L /etc/resolv.conf "$sid/etc/resolv.conf" 2>/dev/null || true
    local package missing=()
    for package in "${sid_packages[@]}"; do
        # shellcheck disable=SC2016
        in_sid dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
            missing+=("$package")
    done
    if [ ${#missing[@]} -gt 0 ]; then
        echo "-- sid: installing ${missing[*]}"
        quietly in_sid apt-get update -q || true
        if ! quietly in_sid env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -q --no-install-recommends "${missing[@]}"; then
            no_sid="${missing[*]} cannot be installed in $dir"
            return 1
        fi
    fi
    # The version that libFuzzer and the sanitizers come in; the fuzz tests skip themselves without.
    local major
    major=$(in_sid clang++ -dumpversion | cut -d. -f1)
    in_sid dpkg-query -W "libclang-rt-$major-dev" >/dev/null 2>&1 ||
        quietly in_sid env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
            "libclang-rt-$major-dev" || true
}

# use COMPILER: sets where (in_here, in_sid), cxx and label, or why, the reason not to.
declare -A labels=() reasons=()
use() {
    why='' where=in_here cxx=$1 label=$1
    if [ "${reasons[$1]+set}" = set ]; then
        why=${reasons[$1]}
    else
        case $1 in
            sid-*)
                if [ -z "$sid" ] && [ -z "$no_sid" ]; then open_sid || sid=; fi
                why=$no_sid
                ;;
            g++) need "the matrix" g++:g++ || why="g++ cannot be installed" ;;
            *)
                need "the matrix" "${1/++/}:$1" || why="${1/++/} cannot be installed"
                [ -n "$why" ] || need "the matrix" "libclang-rt-${1#clang++-}-dev" || true
                ;;
        esac
    fi
    case $1 in sid-*) where=in_sid cxx=${1#sid-} ;; esac
    reasons[$1]=$why
    [ -z "$why" ] || return 1
    [ -n "${labels[$1]:-}" ] || labels[$1]="$1 $("$where" "$cxx" -dumpfullversion -dumpversion)"
    label=${labels[$1]}
}

# make_with FOLDER cmake-argument…; the compiler is that of `use`.
make_with() {
    local folder=$1
    shift
    forget_other "$folder"
    quietly "$where" cmake -S "$root" -B "$folder" "-DCMAKE_CXX_COMPILER=$cxx" -DHONE_INSTALL=OFF \
        -DHONE_WERROR=ON "$@" && quietly "$where" cmake --build "$folder" -j "$(job_count)"
}

flags_cell() {
    local log last
    log=$matrix/$1-flags.log
    "$where" "$root/tests/include_test/grid.sh" "$matrix/$1-flags" "$(job_count)" "$cxx" "-I$root/include" \
        </dev/null 2>&1 | tee "$log" | grep -v '^[0-9]* passed, [0-9]* failed$' || true
    last=$(tail -n 1 "$log")
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then result "$label" "$2" "${BASH_REMATCH[@]:1:2}"
    else result "$label" "$2" 0 1
    fi
}

# suite_cell COMPILER WHAT ctest-arguments -- cmake-arguments
suite_cell() {
    local name=$1 what=$2 folder log summary bad total left code=0 ctest=()
    shift 2
    while [ "$1" != -- ]; do ctest+=("$1"); shift; done
    shift
    folder=$matrix/$name-${what##* }
    # The other compiler's share has cells of its own; so has reproducible.sh.
    if ! make_with "$folder" -DHONE_BUILD_TESTS=ON -DHONE_BUILD_EXAMPLES=OFF -DHONE_BUILD_BENCHMARKS=OFF \
        -DHONE_TEST_OTHER_COMPILER= "$@"; then
        echo "-- $label, $what: does not build"
        result "$label" "$what" 0 1
        return
    fi
    log=$matrix/$name-${what##* }.log
    "$where" env HONE_TEST_QUICK=1 ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "$(job_count)" \
        -E 'reproducible: compilers and register widths' "${ctest[@]}" </dev/null >"$log" 2>&1 || code=$?
    [ $code -eq 0 ] ||
        grep -vE '^ *[0-9]+/[0-9]+ Test +#.* (Passed|\*\*\*Skipped)|^ *Start +[0-9]+:|sec\*proc' "$log" | tail -n 200
    left=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#.*\*\*\*Skipped' "$log" || true)
    summary=$(grep -E '^[0-9]+% tests passed' "$log" || true)
    if [[ $summary =~ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+) ]]; then
        bad=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
        [ $code -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
        result "$label" "$what" $((total - bad - left)) "$bad" "$left"
    else
        result "$label" "$what" 0 1
    fi
}

# Each example runs, and one case of the benches, whose result is compared with f64 before it is timed.
programs_cell() {
    local folder=$matrix/$1-programs good=0 bad=0 example program
    if ! make_with "$folder" -DCMAKE_BUILD_TYPE=Release -DHONE_BUILD_TESTS=OFF -DHONE_BUILD_EXAMPLES=ON \
        -DHONE_BUILD_BENCHMARKS=ON; then
        result "$label" "$2" 0 1
        return
    fi
    while IFS= read -r example; do
        if quietly "$where" "$example"; then good=$((good + 1)); else bad=$((bad + 1)); fi
    done < <(find "$folder/examples" -maxdepth 1 -type f -perm -u+x | sort)
    for program in "$folder/examples/ocr/hone_ocr --help" \
        "$folder/bench/hone_bench gemm --quick --benchmark_filter=64x64"; do
        # shellcheck disable=SC2086
        if quietly "$where" $program; then good=$((good + 1)); else bad=$((bad + 1)); fi
    done
    result "$label" "$2" $good $bad
}

# reproducible_cell LABEL WHAT argument…: its lines with the same checksum; quick checksums are compared between cells.
quick_sum=
reproducible_cell() {
    local label=$1 what=$2 log last said code=0 sum good
    shift 2
    log=$matrix/${what// /-}.log
    "$where" "$root/tests/reproducible.sh" --folder "$matrix/${what// /-}" "$@" </dev/null 2>&1 | tee "$log" || code=$?
    last=$(tail -n 1 "$log")
    said='^reproducible: ([0-9]+) lines, one checksum ([0-9A-F]+ of f32 and [0-9A-F]+ of f64)'
    if [ $code -eq 0 ] && [[ $last =~ $said ]]; then
        sum=${BASH_REMATCH[2]} good=${BASH_REMATCH[1]}
        if [[ " $* " == *" --quick "* ]]; then
            [ -n "$quick_sum" ] || quick_sum=$sum
            if [ "$sum" != "$quick_sum" ]; then
                echo "checksum $sum, another cell's is $quick_sum"
                result "$label" "$what" 0 "$good"
                return
            fi
        fi
        result "$label" "$what" "$good" 0
    else
        result "$label" "$what" 0 1
    fi
}

# cell COMPILER WHAT FUNCTION argument…
count=0
cell() {
    local compiler=$1 what=$2 function=$3
    shift 3
    [[ -z $filter ]] || grep -qE -- "$filter" <<< "$compiler $what" || return 0
    count=$((count + 1))
    if [ $list = 1 ]; then echo "$compiler $what"; return; fi
    if ! use "$compiler"; then skip "$compiler" "$what" "$why"; return; fi
    echo "-- $label, $what ($SECONDS s)"
    "$function" "$compiler" "$what" "$@"
}
full() { reproducible_cell "g++, clang++-19" "$2" --compiler g++ --compiler clang++-19; }
no_exceptions() {
    reproducible_cell "g++, clang++-19" "$2" --quick --compiler g++ --compiler clang++-19 -fno-exceptions -fno-rtti
}
of_sid() { reproducible_cell "sid-g++, sid-clang++" "$2" --quick --compiler g++ --compiler clang++; }

if [ $list = 0 ]; then
    need_cmake "the matrix" ninja-build libxsimd-dev catch2 libeigen3-dev || exit 1
    need "the matrix" qemu-user:qemu-x86_64 pkg-config:pkg-config || true
    export CMAKE_GENERATOR=Ninja
fi
for compiler in g++ clang++-14 clang++-16 clang++-19 sid-g++ sid-clang++; do
    cell $compiler flags flags_cell
    cell $compiler "suite release" suite_cell -LE qemu -- -DCMAKE_BUILD_TYPE=Release
done
# What compile-time tests say does not depend on how the tests are built.
short=(-LE 'qemu|fuzz|compile')
for compiler in g++ sid-clang++; do
    cell $compiler "suite debug" suite_cell "${short[@]}" -- -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
done
for compiler in sid-g++ sid-clang++; do
    cell $compiler "suite native" suite_cell "${short[@]}" -- -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=23 \
        "-DCMAKE_CXX_FLAGS_RELEASE=-O3 -march=native"
    cell $compiler programs programs_cell
done
for compiler in g++ clang++-19; do
    cell $compiler "suite haswell" suite_cell "${short[@]}" -- -DCMAKE_BUILD_TYPE=Release \
        "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -march=haswell -DHONE_XSIMD=1"
done
cell clang++-19 "reproducible no-exceptions" no_exceptions
cell sid-clang++ "reproducible sid" of_sid
cell clang++-19 "reproducible full" full

[ $list = 0 ] || exit 0
if [ $count = 0 ]; then
    echo "tests/run --matrix: no cell matches '$filter'" >&2
    exit 2
fi
echo
printf '%s\n' "${lines[@]}"
summary="$passed passed, $failed failed"
[ $skipped = 0 ] || summary="$summary, $skipped skipped"
echo "$summary"
[ $failed = 0 ]
