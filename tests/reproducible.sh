#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/.ci/packages.sh"

usage() {
    cat <<'HELP'
tests/reproducible.sh [--quick] [--folder DIR] [--compiler CXX]… [FLAG…]

The same checksums, of floats and of doubles, from every instruction set, compiler and register width: builds
tests/reproducible.cpp and runs it
  x86-64   scalar, avx2, avx512 without any -m flag; native compiled for x86-64-v3 (once more with
           HONE_XSIMD=1) and x86-64-v4
  aarch64  scalar, native, neon; sve and sve2 with registers of 128, 256, 512 and 2048 bits: under qemu-aarch64, or
           without it on such a machine and then with its own register width
and compares all the checksums. With k summed in descending order all must agree on others.

  --quick         an eighth of the shapes, which have checksums of their own; so does HONE_TEST_QUICK=1
  --folder DIR    where to build; left out: build/reproducible, or $HONE_BUILD_DIR/reproducible
  --compiler CXX  instead of g++ and clang++, each that is found
  FLAG            for the compiler, where xsimd is not in /usr/include or /usr/local/include: -isystem DIR
  --help          this text

Installs nothing: what cannot run here is listed by name at the end. Exit code 0 when no checksum differs.
HELP
}

quick=${HONE_TEST_QUICK:-0} folder=$(build_root)/reproducible compilers=() flags=()
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --quick) quick=1 ;;
        --folder) [ $# -ge 2 ] || { usage >&2; exit 2; }; folder=$2; shift ;;
        --compiler) [ $# -ge 2 ] || { usage >&2; exit 2; }; compilers+=("$2"); shift ;;
        --*) echo "tests/reproducible.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
        *) flags+=("$1") ;;
    esac
    shift
done
export HONE_TEST_QUICK=$quick
mkdir -p "$folder"
[ ${#compilers[@]} -gt 0 ] || compilers=(g++ clang++)
# A folder with nothing but xsimd, behind the caller's: a cross compiler does not look into /usr/include, and must not.
for dir in /usr/local/include /usr/include; do
    [ -d "$dir/xsimd" ] || continue
    mkdir -p "$folder/xsimd"
    ln -sfn "$dir/xsimd" "$folder/xsimd/xsimd"
    flags+=(-isystem "$folder/xsimd")
    break
done
flags+=(-std=c++20 -O2 -pthread "-I$root/include")

declare -A shown=()
failed=0 checksums=() reversed=() checksums_f64=() reversed_f64=() skipped=()
skip() { skipped+=("$1: $2"); }
fail() {
    echo "$1"
    failed=$((failed + 1))
}

# build NAME COMPILER FLAG…: $folder/NAME.
build() {
    local name=$1
    shift
    if ! "$@" "${flags[@]}" "$root/tests/reproducible.cpp" -o "$folder/$name"; then
        fail "does not build: $* tests/reproducible.cpp"
        return 1
    fi
}

# run HOW BITS COMMAND…: HOW is said behind each line. BITS is the register width its SVE lines must have; 0: any.
# The program has compared its own lines; here their checksums join those of the other runs.
run() {
    local how=$1 bits=$2 out code=0 line kind isa compiler width sum rest
    shift 2
    out=$("$@") || code=$?
    while IFS= read -r line; do
        read -r kind isa compiler width sum rest <<< "$line"
        case $kind in
            checksum | checksum-f64)
                # The plain loops are part of every run; one line of them a compiler and architecture is enough.
                if [ "$isa" != reference ] || [ -z "${shown[$kind $compiler ${how%%[ ,]*}]:-}" ]; then
                    echo "$line  $how"
                fi
                shown[$kind $compiler ${how%%[ ,]*}]=1
                if [ "$kind" = checksum ]; then checksums+=("$sum"); else checksums_f64+=("$sum"); fi
                ran+=" $isa"
                if [ "$bits" != 0 ] && [[ $isa == sve* ]] && [ "$width" != "$bits" ]; then
                    fail "failed $isa $compiler: registers of $width bits, not of $bits as asked for"
                fi
                ;;
            reverse-k) reversed+=("$sum") ;;
            reverse-k-f64) reversed_f64+=("$sum") ;;
            skipped) skip "$isa $compiler $how" "${line#*: }" ;;
            reproducible:) ;;
            *) echo "$line  $how" ;;
        esac
    done <<< "$out"
    [ $code -eq 0 ] || fail "failed: exit code $code $how"
}

has() {  # CPU flags, as /proc/cpuinfo calls them
    local flag
    for flag in "$@"; do
        grep -qwm1 "$flag" /proc/cpuinfo 2>/dev/null || return 1
    done
}

x86() {
    local compiler=$1 name=x86-$2
    if build "$name" "$compiler"; then
        # native says that it promises nothing without flags; it has them below.
        run "x86-64" 0 "$folder/$name" --isa scalar --isa avx2 --isa avx512
    fi
    for level in "x86-64-v3 0 avx2 fma bmi2 f16c movbe" "x86-64-v3 1 avx2 fma bmi2 f16c movbe" \
        "x86-64-v4 0 avx2 fma avx512f avx512bw avx512cd avx512dq avx512vl"; do
        # shellcheck disable=SC2086
        set -- $level
        local unit="-march=$1 -DHONE_XSIMD=$2"
        if ! has "${@:3}"; then
            skip "native $compiler $unit" "this CPU does not have all of it"
        elif build "$name-$1-$2" "$compiler" "-march=$1" "-DHONE_XSIMD=$2"; then
            run "x86-64 $unit" 0 "$folder/$name-$1-$2" --isa native
        fi
    done
}

# aarch64 NAME COMPILER FLAG…
aarch64() {
    local name=aarch64-$1 bits ran=
    shift
    build "$name" "$@" || return 0
    if ! command -v qemu-aarch64 > /dev/null; then
        if [ "$machine" = aarch64 ]; then run "aarch64" 0 "$folder/$name"
        else skip "aarch64 $*" "no qemu-aarch64 (Debian: qemu-user)"
        fi
        return 0
    fi
    local emulator=(qemu-aarch64)
    [ "$machine" = aarch64 ] || emulator+=(-L /usr/aarch64-linux-gnu)
    # sve-default-vector-length=-1 is the widest there is, sve-max-vq that in units of 128 bits.
    run "qemu-aarch64, 512 bits" 512 "${emulator[@]}" -cpu max,sve-max-vq=4,sve-default-vector-length=-1 "$folder/$name"
    [[ $ran == *sve* ]] || return 0
    for bits in 128 256 2048; do
        run "qemu-aarch64, $bits bits" $bits "${emulator[@]}" \
            -cpu "max,sve-max-vq=$((bits / 128)),sve-default-vector-length=-1" "$folder/$name" --isa sve --isa sve2
    done
}

[ "$quick" = 0 ] || echo "quick: 125 of 1000 shapes, and 32 of 256 of doubles"
machine=$(uname -m)
ran=
for compiler in "${compilers[@]}"; do
    if ! command -v "$compiler" > /dev/null; then
        skip "$compiler" "not found"
        continue
    fi
    label=$(basename "$compiler")
    case $("$compiler" -dumpmachine) in
        aarch64-*) aarch64 "$label" "$compiler" ;;
        x86_64-*)
            if [ "$machine" = x86_64 ]; then x86 "$compiler" "$label"
            else skip "$compiler" "this machine is $machine"
            fi
            # Clang is a cross compiler where another's libraries are installed.
            if ! "$compiler" --version | grep -q clang; then continue; fi
            if [ -d /usr/aarch64-linux-gnu/include ]; then aarch64 "$label" "$compiler" --target=aarch64-linux-gnu
            else skip "aarch64 $compiler" "no libraries (Debian: g++-aarch64-linux-gnu)"
            fi
            ;;
        *) skip "$compiler" "$("$compiler" -dumpmachine)" ;;
    esac
done
if [ "$machine" != aarch64 ]; then
    if command -v aarch64-linux-gnu-g++ > /dev/null; then aarch64 g++ aarch64-linux-gnu-g++
    else skip "aarch64 g++" "no aarch64-linux-gnu-g++ (Debian: g++-aarch64-linux-gnu)"
    fi
fi

distinct() { printf '%s\n' "$@" | sort -u; }
for s in "${skipped[@]}"; do echo "skipped $s"; done

# compare WHAT forward backward: the names of two arrays of checksums.
compare() {
    local -n sums=$2 backwards=$3
    local one other
    if [ ${#sums[@]} -lt 2 ] || [ ${#backwards[@]} -lt 2 ]; then
        fail "$1: nothing to compare"
        return
    fi
    mapfile -t one < <(distinct "${sums[@]}")
    mapfile -t other < <(distinct "${backwards[@]}")
    echo "reverse-k of $1, all ${#backwards[@]} lines: ${other[*]}"
    [ ${#one[@]} -eq 1 ] || fail "checksums of $1 differ: ${one[*]}"
    [ ${#other[@]} -eq 1 ] || fail "checksums of $1 with reversed k differ: ${other[*]}"
    if [ -n "$(comm -12 <(distinct "${sums[@]}") <(distinct "${backwards[@]}"))" ]; then
        fail "the order of the sums does not show in the checksum of $1"
    fi
}
compare f32 checksums reversed
compare f64 checksums_f64 reversed_f64
if [ $failed -gt 0 ]; then
    echo "NOT reproducible: $failed failures"
    exit 1
fi
echo "reproducible: $((${#checksums[@]} + ${#checksums_f64[@]})) lines, one checksum ${checksums[0]} of f32 and" \
    "${checksums_f64[0]} of f64; with k reversed others; ${#skipped[@]} skipped"
