#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# build.sh FOLDER COMPILER FLAG…
#
# hone in a consumer's program: unit.cpp without a warning under every set of flags, then two units of other flags linked
# into one program, which must compute the same bits in both, -ffast-math among the flags (include/hone/README.md says
# what is promised of it). HONE_TEST_EMULATOR runs what this machine cannot. Where qemu-x86_64 is found, a unit without
# flags linked with one for AVX-512 runs on a Haswell and on a Nehalem.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$1
shift
compiler=("$@" -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Werror)

sets=("-O0" "-O3" "-O2 -fno-exceptions -fno-rtti" "-O2 -DHONE_XSIMD=1")
second=("-O2 -DNDEBUG" "-O1 -fno-exceptions -fno-rtti" "-O2 -DHONE_XSIMD=1")
case $("${compiler[0]}" -dumpmachine) in
    x86_64-*)
        sets+=("-O2 -march=native" "-O2 -march=haswell" "-O2 -march=x86-64-v4")
        second+=("-O2 -march=haswell")
        ;;
    aarch64-*) sets+=("-O2 -march=armv8.2-a+sve") ;;
esac
clang=$("${compiler[@]}" -x c++ -dM -E /dev/null | awk '$2 == "__clang_major__" { print $3 }')
case ${clang:-gcc}-$("${compiler[0]}" -dumpmachine) in
    gcc-x86_64-*) sets+=("-O2 -masm=intel") ;;&  # under Clang its own <cpuid.h> does not compile so
    gcc-*) second+=("-O2 -ffast-math") ;;&
    gcc-x86_64-*) second+=("-O3 -ffast-math -march=haswell") ;;
    1[4-8]-x86_64-*) second+=("-O2 -ffast-math -DHONE_TEST_WITHOUT_SCALAR" "-O3 -ffast-math -march=haswell") ;;
    *-x86_64-*)
        # Clang 20 warns of the one option behind the other.
        nearly="-ffast-math -fno-finite-math-only -ffp-contract=on -Wno-unknown-warning-option -Wno-overriding-option"
        second+=("-O2 -ffast-math -DHONE_TEST_FINITE" "-O3 $nearly -march=haswell")
        ;;
esac

mkdir -p "$folder"
failed=0
object() {  # name flags…
    local name=$1
    shift
    "${compiler[@]}" "$@" "-DHONE_TEST_UNIT=$name" -c "$here/unit.cpp" -o "$folder/$name.o"
}
for flags in "${sets[@]}"; do
    # shellcheck disable=SC2086
    if ! object unit $flags; then
        echo "${compiler[0]} $flags: unit.cpp does not compile cleanly"
        failed=$((failed + 1))
    fi
done

left_out=none
"${compiler[@]}" -O2 -c "$here/main.cpp" -o "$folder/main.o"
for flags in "${second[@]}"; do
    # shellcheck disable=SC2086
    if ! object second_unit $flags; then failed=$((failed + 1)); continue; fi
    leave_out=$(grep -oE -- '-DHONE_TEST_[A-Z_]+' <<< "$flags" || true)
    if [ "$leave_out" != "$left_out" ]; then
        # shellcheck disable=SC2086
        object first_unit -O2 $leave_out
        left_out=$leave_out
    fi
    # Either order: the linker keeps the first copy of what both units define.
    for order in "first_unit second_unit" "second_unit first_unit"; do
        read -r x y <<< "$order"
        if ! "${compiler[@]}" "$folder/$x.o" "$folder/$y.o" "$folder/main.o" -o "$folder/program"; then
            echo "${compiler[0]} $flags: two units do not link"
            failed=$((failed + 1))
        elif ! ${HONE_TEST_EMULATOR:-} "$folder/program"; then
            echo "${compiler[0]} $flags ($order): two units compute other bits"
            failed=$((failed + 1))
        fi
    done
done
if [[ $("${compiler[0]}" -dumpmachine) == x86_64-* ]] && command -v qemu-x86_64 > /dev/null; then
    object first_unit -O2
    object second_unit -O2 -march=x86-64-v4
    for order in "first_unit second_unit" "second_unit first_unit"; do
        read -r x y <<< "$order"
        "${compiler[@]}" "$folder/$x.o" "$folder/$y.o" "$folder/main.o" -o "$folder/program"
        for cpu in Haswell Nehalem; do
            if ! qemu-x86_64 -cpu "$cpu" "$folder/program" first; then
                echo "${compiler[0]} ($order): a $cpu reaches code compiled for AVX-512"
                failed=$((failed + 1))
            fi
        done
    done
fi
echo "${compiler[0]}: ${#sets[@]} sets of flags, ${#second[@]} pairs of units, $failed failed"
[ "$failed" -eq 0 ]
