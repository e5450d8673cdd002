#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Reads the disassembly of a binary and checks the innermost loop of every register tile (gemm_micro, packing_micro,
# depthwise_micro, grouped_micro, dot_micro, split_micro) of the ISAs that have registers: no stack access (a spilled sum), no call, and
# multiply-adds of the ISA's own register width.
# Prints a line per loop that breaks a rule and one for the number of loops seen; fails if there is none.
#   tests/disassembly.sh BINARY [OBJDUMP]
set -euo pipefail
binary=$1
objdump=${2:-objdump}
"$objdump" -d -C --no-show-raw-insn "$binary" | awk '
# Whether the jump at `to` is reached from `from` by code in between: else it leads back from a block that was put aside.
function reaches(from, to,    k, again, seen, t) {
    seen[from] = 1
    do {
        again = 0
        for (k = from; k < to; ++k) {
            if (!(k in seen)) continue
            if (code[k] !~ /^(jmp|b|ret)([ \t]|$)/ && !((k + 1) in seen)) { seen[k + 1] = 1; again = 1 }
            t = target[k] != "" && (target[k] in at) ? at[target[k]] : 0
            if (t > from && t <= to && !(t in seen)) { seen[t] = 1; again = 1 }
        }
    } while (again)
    return to in seen
}
function finish_function(    i, j, k, from, inner, fma, bad, text, framed, begin) {
    if (!watched) return
    # rbp is a pointer like others where no frame is made with it.
    for (i = 1; i <= n; ++i) if (code[i] ~ /^(mov +%rsp|lea +[-x0-9a-f]*\(%rsp\)),%rbp/) framed = 1
    for (i = 1; i <= n; ++i) {
        if (target[i] == "" || !(target[i] in at) || at[target[i]] >= i) continue
        if (reaches(at[target[i]], i)) begin[i] = at[target[i]]
    }
    for (i = 1; i <= n; ++i) {
        if (!(i in begin)) continue
        from = begin[i]
        inner = 1
        for (j = from; j < i; ++j) if ((j in begin) && begin[j] >= from) inner = 0
        if (!inner) continue
        fma = 0; bad = ""
        for (k = from; k <= i; ++k) {
            text = code[k]
            if (text ~ /^vfmadd|^fmla|^fmad/) {
                ++fma
                if (isa == "avx512" && text !~ /zmm/) bad = "a multiply-add narrower than its registers: " text
                if (isa == "avx2" && text !~ /ymm/) bad = "a multiply-add narrower than its registers: " text
            }
            if (text ~ /\(%rsp|\[sp/ || (framed && text ~ /-0x[0-9a-f]+\(%rbp/)) bad = "a stack access: " text
            if (text ~ /^call|^bl[ \t]/) bad = "a call: " text
        }
        if (fma == 0) continue
        ++loops
        if (bad != "") { ++failed; print name ": " bad }
    }
}
/^[0-9a-f]+ <.*>:$/ {
    finish_function()
    name = $0
    sub(/^[0-9a-f]+ </, "", name); sub(/>:$/, "", name)
    watched = 0
    if (match(name, /::(avx512|avx2|neon|sve2|sve)::(gemm_micro|packing_micro|depthwise_micro|grouped_micro|dot_micro|split_micro)/)) {
        watched = 1
        isa = substr(name, RSTART + 2); sub(/::.*/, "", isa)
    }
    n = 0
    delete at; delete target; delete code
    next
}
watched && /^ +[0-9a-f]+:/ {
    ++n
    address = $1; sub(/:$/, "", address)
    at[address] = n
    line = $0
    sub(/^ +[0-9a-f]+:[ \t]*/, "", line)
    code[n] = line
    target[n] = ""
    if (line ~ /^(j[a-z]+|b\.?[a-z]*|cbn?z|tbn?z)[ \t]/ && match(line, /[0-9a-f]+ </)) target[n] = substr(line, RSTART, RLENGTH - 2)
}
END {
    finish_function()
    printf "%d loops of register tiles read, %d with a fault\n", loops, failed
    exit loops == 0 || failed > 0
}'
