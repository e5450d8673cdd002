#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# compile.sh PAGE FOLDER LEAST COMPILER [FLAG…]
#
# Compiles every ```cpp block of a Markdown page. A block with a main() is a program and stands alone; a block that
# defines something at namespace scope comes behind prelude.hpp; any other is the body of a function behind prelude.hpp.
# What the compiler says names the page and its lines. Blocks that are not meant to compile are marked ```text or not at
# all. A page with fewer than LEAST blocks is a failure too.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
page=$1 folder=$2 least=$3
shift 3

rm -rf "$folder"
mkdir -p "$folder"
awk -v folder="$folder" '
    /^```/ && inside { inside = 0; close(file); next }
    /^```cpp[ \t\r]*$/ {
        inside = 1
        file = sprintf("%s/%03d", folder, ++count)
        print NR + 1 > (file ".line")
        close(file ".line")
        next
    }
    inside { print > file }
    END { if (inside) { print "the last block is not closed" > "/dev/stderr"; exit 1 } }
' "$page"

definition='^(template|struct|class|enum|namespace|using namespace|inline|#define)'
definition+='|^[A-Za-z_][A-Za-z0-9_:<>,&* ]* [&*]?[A-Za-z_][A-Za-z0-9_]*\([^=]*\)( const| noexcept)* \{$'
count=0 failed=0
for line_file in "$folder"/*.line; do
    [ -e "$line_file" ] || break
    block=${line_file%.line} line=$(cat "$line_file")
    [ -e "$block" ] || : > "$block"
    {
        if grep -Eq '^int main\(' "$block"; then
            printf '#line %d "%s"\n' "$line" "$page"
            cat "$block"
        elif grep -Ev '^(if|for|while|switch|else|do|return) ?\(' "$block" | grep -Eq "$definition"; then
            printf '#include "%s/prelude.hpp"\n#line %d "%s"\n' "$here" "$line" "$page"
            cat "$block"
        else
            # Includes go in front of the function, their lines stay empty.
            printf '#include "%s/prelude.hpp"\n' "$here"
            grep -E '^#include' "$block" || true
            printf 'hone::status block();\nhone::status block() {\n#line %d "%s"\n' "$line" "$page"
            sed 's/^#include.*//' "$block"
            printf 'return {};\n}\n'
        fi
    } > "$block.cpp"
    count=$((count + 1))
    if ! "$@" -fsyntax-only "$block.cpp"; then
        echo "$page:$line: this block does not compile"
        failed=$((failed + 1))
    fi
done
echo "$page: $count blocks, $failed do not compile"
[ "$count" -ge "$least" ] && [ "$failed" -eq 0 ]
