#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Compiles examples/custom_epilogue.cpp with -O2 and no -m flag, and reads what became of its lambda in the AVX-512 kernel: no
# call, and no packed arithmetic on less than whole registers.
#   tests/disassembly_epilogue.sh FOLDER OBJDUMP COMPILER FLAG…
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$1 objdump=$2
shift 2
mkdir -p "$folder"
"$@" -std=c++20 -O2 "$here/../examples/custom_epilogue.cpp" -o "$folder/custom_epilogue"
"$objdump" -d -C --no-show-raw-insn "$folder/custom_epilogue" | awk '
/^[0-9a-f]+ <.*>:$/ {
    watched = /::avx512::finish<float, hone::[^>]*map_stage/
    functions += watched
    next
}
!watched { next }
/%zmm/ && /\tv(add|sub|mul|div|max|min|fmadd[0-9]*|fnmadd[0-9]*|fmsub[0-9]*)ps/ { ++whole }
/\tcall/ { print; ++faults }
/%[xy]mm/ && !/%zmm/ && /\tv(add|sub|mul|div|max|min|fmadd[0-9]*|fnmadd[0-9]*|fmsub[0-9]*)p[sd]/ { print; ++faults }
END {
    printf "%d kernels with the lambda, %d operations on whole registers, %d faults\n", functions, whole, faults
    exit functions == 0 || whole < 10 || faults > 0
}'
