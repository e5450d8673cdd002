#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# flags.sh FOLDER COMPILER FLAG…   (the first -I is hone's)
#
# Public reports B67 and B113: flags.cpp under flags that raise the baseline and that switch instruction sets off, which
# the target regions must not heed. Each compiles without a warning; those that this CPU can run decide the same tiles
# and blocks and compute the same bits. A copy of the headers whose registered tile follows the flags must be seen.
# HONE_TEST_EMULATOR runs what this machine cannot.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$1
shift
compiler=("$1" -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Werror)
shift
machine=$("${compiler[0]}" -dumpmachine)
rm -rf "$folder"
mkdir -p "$folder"
failed=0 compiled=0 compared=0

# Sets that run anywhere the baseline runs, then "FEATURE: flags" that need what /proc/cpuinfo calls so.
sets=("-O0")
needs=()
case $machine in
    x86_64-*)
        sets+=("-O2 -mno-avx512vl" "-O2 -mno-avx2 -mno-fma")
        needs=("avx2: -O2 -march=haswell -mno-fma" "avx512vl: -O2 -march=x86-64-v4"
            "avx512f: -O2 -march=skylake-avx512 -mno-avx512vl" "avx: -O2 -march=native")
        ;;
    aarch64-*) needs=("none: -O2 -march=armv8.2-a+sve" "none: -O2 -march=armv9-a") ;;
esac
# build NAME HEADERS flags…: flags.cpp into folder/NAME.
build() {
    local name=$1 headers=$2
    shift 2
    "${compiler[@]}" "$@" "$headers" "${flags[@]}" "$here/flags.cpp" -o "$folder/$name"
}
headers=$1
shift
flags=("$@")

run() { ${HONE_TEST_EMULATOR:-} "$folder/$1" > "$folder/$1.txt"; }
build first "$headers" -O2
run first
[ "$(wc -l < "$folder/first.txt")" -ge 7 ] || { echo "a unit decides too little"; exit 1; }
try() {  # flags…
    compiled=$((compiled + 1))
    # shellcheck disable=SC2086
    build "set$compiled" "$headers" $1 && return 0
    echo "${compiler[0]} $1: does not compile cleanly"
    failed=$((failed + 1))
    return 1
}
same() {  # flags…: what try() compiled decides what -O2 does
    compared=$((compared + 1))
    if ! run "set$compiled"; then
        echo "${compiler[0]} $1: does not run"
    elif diff "$folder/first.txt" "$folder/set$compiled.txt"; then
        return 0
    else
        echo "${compiler[0]} $1: decides or computes something else than -O2"
    fi
    failed=$((failed + 1))
}
for set in "${sets[@]}"; do
    if try "$set"; then same "$set"; fi
done
for line in "${needs[@]}"; do
    set=${line#*: }
    try "$set" || continue
    if [ -z "${HONE_TEST_EMULATOR:-}" ] && grep -qsw "${line%%:*}" /proc/cpuinfo; then same "$set"; fi
done

# The check sees a tile that follows the flags.
mkdir -p "$folder/headers"
cp -R "${headers#-I}/hone" "$folder/headers/hone"
kernels=$folder/headers/hone/kernels.def
sed -i -E 's/^(HONE_GEMM\(scalar, float, )4(, 1\))$/#ifdef HONE_TEST_OTHER\n\12\2\n#else\n&\n#endif/' "$kernels"
build other "-I$folder/headers" -O0 -DHONE_TEST_OTHER
run other
if diff -q "$folder/first.txt" "$folder/other.txt" > /dev/null; then
    echo "a tile that follows the flags is not seen"
    failed=$((failed + 1))
fi
echo "${compiler[0]}: $compiled sets of flags compiled, $compared compared, $failed failed"
[ "$failed" -eq 0 ]
