#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# two_versions.sh FOLDER NM COMPILER FLAG…   (the first -I is hone's)
#
# Two shared libraries made from different versions of hone in one process (public reports B109, B116): a copy of the
# headers gets another version and writes another number into packed weights. Both libraries must compute the right
# product and pack with their own number, in either order of loading, and define no symbol of hone in common. With the
# version changed but not HONE_ABI the check must fail: that is tried, too.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$1 nm=$2
shift 2
compiler=("$1" -std=c++20 -fPIC)
headers=${2#-I}
shift 2
flags=("$@")

rm -rf "$folder"
mkdir -p "$folder"
copy() {  # name packed-version [HONE_ABI]: headers in folder/name
    mkdir -p "$folder/$1"
    cp -R "$headers/hone" "$folder/$1/hone"
    sed -i -E "s/(packed_version = )[0-9]+;/\1$2;/" "$folder/$1/hone/pack.hpp"
    grep -q "packed_version = $2;" "$folder/$1/hone/pack.hpp"
    [ $# -lt 3 ] || sed -i -E "s/^(#define HONE_ABI ).*/\1$3/; s/^(#define HONE_VERSION_MINOR ).*/\177/" \
        "$folder/$1/hone/version.hpp"
}
copy this 41
copy other 42 v0_77
copy unnamed 42
abi=$(sed -nE 's/^#define HONE_ABI (.*)/\1/p' "$folder/this/hone/version.hpp")
[ "$abi" != v0_77 ]

symbols() { "$nm" -D --defined-only "$1" | awk '{print $NF}' | grep hone | sort -u; }
program=$folder/program
"${compiler[@]}" "$here/two_versions_main.cpp" -o "$program" -ldl

for level in -O0 -O2; do
    for name in this other unnamed; do
        "${compiler[@]}" $level -shared "-I$folder/$name" "${flags[@]}" "$here/two_versions_library.cpp" \
            -o "$folder/lib$name.so"
        symbols "$folder/lib$name.so" > "$folder/$name.txt"
        [ -s "$folder/$name.txt" ] || { echo "$level: lib$name.so defines no symbol of hone"; exit 1; }
    done
    # Itanium mangling: hone is 4hone, v0_1 is 4v0_1. Whatever speaks of hone speaks of its version.
    for pair in "this $abi" "other v0_77"; do
        read -r name version <<< "$pair"
        if grep -v "4hone${#version}$version" "$folder/$name.txt"; then
            echo "$level: lib$name.so defines these outside hone::$version"
            exit 1
        fi
    done
    if comm -12 "$folder/this.txt" "$folder/other.txt" | grep .; then
        echo "$level: both libraries define these"
        exit 1
    fi
    if ! comm -12 "$folder/this.txt" "$folder/unnamed.txt" | grep . > /dev/null; then
        echo "$level: nm does not see what is shared"
        exit 1
    fi
    "$program" "$folder/libthis.so" 41 "$folder/libother.so" 42
    "$program" "$folder/libother.so" 42 "$folder/libthis.so" 41
    if [ $level = -O0 ] && "$program" "$folder/libthis.so" 41 "$folder/libunnamed.so" 42 > /dev/null; then
        echo "$level: two versions under one HONE_ABI do not disturb each other, so this test shows nothing"
        exit 1
    fi
    echo "$level: $(wc -l < "$folder/this.txt") and $(wc -l < "$folder/other.txt") symbols of hone, none in common"
done
