#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# uninitialised.sh FOLDER COMPILER FLAG…: uninitialised.cpp under MemorySanitizer, which must see nothing, and must see C
# where beta is 1. Exit code 77: this compiler has no MemorySanitizer.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$1
shift
compiler=("$1" -std=c++20 -O1 -g -fsanitize=memory)
shift
mkdir -p "$folder"
if ! printf 'int main() {}\n' | "${compiler[@]}" -x c++ - -o "$folder/probe" 2> /dev/null || ! "$folder/probe"; then
    echo "${compiler[0]} has no MemorySanitizer: skipped"
    exit 77
fi
"${compiler[@]}" "$@" "$here/uninitialised.cpp" -o "$folder/uninitialised"
"$folder/uninitialised"
if "$folder/uninitialised" beta > /dev/null; then
    echo "with beta = 1 C must be read: this test sees nothing"
    exit 1
fi
