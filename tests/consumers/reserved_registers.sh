#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# reserved_registers.sh FOLDER OBJDUMP COMPILER FLAG…   (the first -I is hone's)
#
# Public reports B112, B70: inline assembly that takes a register which some system keeps to itself (x18 of AArch64) or
# more operands than a compiler can give it (29), or reads a system register, which traps where the system does not
# emulate it. Every asm of the headers is read; on AArch64 a unit compiled without x18 must not hold either. Statements
# that break each rule must be seen.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$1 objdump=$2
shift 2
compiler=("$1" -std=c++20)
headers=${2#-I}
shift 2
rm -rf "$folder"
mkdir -p "$folder"

# Each asm statement of a folder of headers on a line, from `asm` to its `;`.
statements() {
    find "$1" -name '*.hpp' -o -name '*.inl' -o -name '*.def' | sort | xargs cat |
        sed -E 's,//.*,,' | tr '\n' ' ' | grep -oE '\b(__)?asm(__)?( +(__)?volatile(__)?)? *\([^;]*;' || true
}
# Constraints and clobbers are the strings behind the first one, which is the code.
faults() {
    statements "$1" | awk '
        /[^a-z0-9_][xw]18[^0-9]/ { print "x18: " $0 }
        /[^a-z0-9_]mrs[^a-z0-9_]/ { print "a system register: " $0 }
        { n = gsub(/"[^"]*"/, "s") - 1; if (n > 29) print n " operands and clobbers: " $0 }'
}
count=$(statements "$headers" | wc -l)
[ "$count" -ge 1 ] || { echo "no asm is seen, and there is some"; exit 1; }
failed=0
if faults "$headers" | grep .; then failed=1; fi
for fault in 'asm("mov x18, %0" : : "r"(1));' 'asm("" : : : "w18");' '__asm__("mrs %0, midr_el1" : "=r"(x));' \
    "asm(\"\" : : $(for i in $(seq 30); do printf '"r"(%d), ' "$i"; done | sed 's/, $//'));"; do
    mkdir -p "$folder/broken"
    printf '%s\n' "$fault" > "$folder/broken/broken.hpp"
    faults "$folder/broken" | grep -q . || { echo "not seen: $fault"; failed=1; }
done

if [[ $("${compiler[0]}" -dumpmachine) == aarch64-* ]]; then
    x18() { "$objdump" -d --no-show-raw-insn "$1" | grep -E '\b[xw]18\b|\bmrs\b.*, (midr|id_aa64)'; }
    "${compiler[@]}" -O2 -ffixed-x18 "-I$headers" "$@" -c "$here/../include_test/unit.cpp" -o "$folder/unit.o"
    if x18 "$folder/unit.o"; then
        echo "x18 is used where the compiler was told to keep it, or a system register is read"
        failed=1
    fi
    printf 'long f(long a) { asm volatile("mov x18, %%0" : : "r"(a)); return a; }\n' |
        "${compiler[@]}" -O2 -ffixed-x18 -x c++ -c - -o "$folder/broken.o"
    x18 "$folder/broken.o" > /dev/null || { echo "x18 is not seen"; failed=1; }
fi
echo "$count asm statements read"
exit $failed
