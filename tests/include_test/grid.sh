#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# grid.sh FOLDER JOBS COMPILER FLAG…
#
# Compiles without a warning: hone.hpp under every combination of an optimisation level, -march, a language level, and
# exceptions and RTTI on and off, in half of them with all that unit.cpp does with it; unit.cpp with -ffast-math; each
# public header alone, under the first and the last language level. Prints what failed; the last line is
# `N passed, M failed`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$1 jobs=$2
shift 2
mkdir -p "$folder"
rm -f "$folder"/*.failed
printf '%s\0' "$@" -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Werror \
    > "$folder/compiler"
cp "$here/unit.cpp" "$folder/unit.cpp"

newest=c++23
printf '' | "$1" -std=c++23 -x c++ -fsyntax-only - 2>/dev/null || newest=c++2b
machines=("")
[[ $("$1" -dumpmachine) != x86_64-* ]] || machines+=(-march=native -march=haswell)

# A line is a unit and flags.
lines=()
for level in -O0 -O2 -O3; do
    for machine in "${machines[@]}"; do
        for standard in -std=c++20 "-std=$newest"; do
            for without in "" "-fno-exceptions -fno-rtti"; do
                # Half of them, with every level and -march, compile what is instantiated, too.
                what=unit
                if [ "$standard" = -std=c++20 ] && [ -n "$without" ]; then what=hone; fi
                if [ "$standard" != -std=c++20 ] && [ -z "$without" ]; then what=hone; fi
                lines+=("$what $level $machine $standard $without")
            done
        done
    done
done
for flags in "-O2 -std=c++20" "-O3 -std=$newest ${machines[${#machines[@]} - 1]} -fno-exceptions -fno-rtti"; do
    lines+=("unit -ffast-math $flags")
done
for header in "$here"/../../include/hone/*.hpp; do
    name=$(basename "$header" .hpp)
    printf '#include <hone/%s.hpp>\n' "$name" > "$folder/$name.cpp"
    lines+=("$name -O0 -std=c++20" "$name -O0 -std=$newest -fno-exceptions -fno-rtti")
done

# shellcheck disable=SC2016
printf '%s\n' "${lines[@]}" | xargs -P "$jobs" -I LINE bash -c '
    folder=$1
    read -r name flags <<< "$2"
    mapfile -d "" -t compiler < "$folder/compiler"
    object=$(mktemp "$folder/XXXXXX")
    if ! "${compiler[@]}" $flags -c "$folder/$name.cpp" -o "$object" > "$object.log" 2>&1; then
        cp "$object.log" "$object.failed"
        { echo "does not compile cleanly: $name, ${compiler[0]} $flags"; head -n 20 "$object.log"; } >&2
    fi
    rm -f "$object" "$object.log"' bash "$folder" LINE
failed=$(find "$folder" -name '*.failed' | wc -l)
echo "$((${#lines[@]} - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
