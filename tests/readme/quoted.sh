#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# quoted.sh PAGE ROOT
#
# Every ```cpp block of a Markdown page quotes the file that a comment on the line before the block names, as a path from
# ROOT: <!-- examples/NAME.cpp -->. The block must be a run of lines of that file, the indentation that they share left
# out, and each of ROOT/examples/*.cpp must be quoted by some block.
set -euo pipefail
page=$1 root=$2

examples=$(cd "$root" && echo examples/*.cpp)
awk -v page="$page" -v root="$root" -v examples="$examples" '
    function fault(line, what) {
        printf "%s:%d: %s\n", page, line, what
        ++faults
    }
    # text[1 .. lines] of `name`; no lines where it cannot be read.
    function load(name,    line) {
        if (name == loaded) return
        loaded = name
        lines = 0
        while ((getline line < (root "/" name)) > 0) text[++lines] = line
        close(root "/" name)
    }
    # How many lines of the block follow one another in the file from line `at` on, all indented alike.
    function alike(at,    i, whole, space, indent) {
        for (i = 1; i <= size && at + i - 1 <= lines; ++i) {
            whole = text[at + i - 1]
            if (i == 1) {
                space = length(whole) - length(block[1])
                indent = substr(whole, 1, space < 0 ? 0 : space)
                if (indent !~ /^ *$/) return 0
            }
            if (block[i] == "" ? whole != "" : whole != indent block[i]) break
        }
        return i - 1
    }
    function check(    at, n, best) {
        if (name == "") return fault(first - 1, "no comment before this block names its file")
        load(name)
        if (lines == 0) return fault(first - 2, "there is no " name)
        quoted[name] = 1
        if (size == 0) return fault(first, "this block is empty")
        if (!flush) return fault(first, "this block is indented as a whole")
        for (at = 1; at <= lines; ++at) {
            n = alike(at)
            if (n > best) best = n
            if (n == size) return
        }
        fault(first + best, "from here on this block is not in " name)
    }
    /^```/ && inside {
        inside = 0
        if (cpp) check()
        name = ""
        next
    }
    inside {
        block[++size] = $0
        if (/^[^ ]/) flush = 1
        next
    }
    /^```/ {
        inside = 1
        cpp = /^```cpp[ \t]*$/
        if (name != "" && !cpp) fault(NR - 1, "no ```cpp block follows")
        blocks += cpp
        first = NR + 1
        size = flush = 0
        next
    }
    {
        if (name != "") fault(NR - 1, "no ```cpp block follows")
        name = $0 ~ /^<!-- [^ ]+ -->$/ ? $2 : ""
    }
    END {
        if (inside) fault(NR, "the last block is not closed")
        if (name != "") fault(NR, "no ```cpp block follows")
        n = split(examples, each, " ")
        for (i = 1; i <= n; ++i) {
            if (each[i] in quoted) continue
            printf "%s: no block quotes %s\n", page, each[i]
            ++faults
        }
        printf "%s: %d blocks, %d faults\n", page, blocks, faults
        exit faults > 0
    }
' "$page"
