#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A network of PyTorch comes to C in few lines: each file of examples/networks has at most 25
# lines, GPT-2 and Swin-T at most 60. Not counted are blank lines, comments,
# #include lines and lines that are only a brace. run.c, which holds no network, is not counted.
status=0
for file in "$abs_srcdir"/examples/networks/*.c; do
    name=$(basename "$file" .c)
    most=25
    case $name in
    run) continue ;;
    gpt2 | swin_t) most=60 ;;
    esac
    lines=$(awk '/^ *\/\*/ { comment = 1 }
        !comment && NF && !/^#include/ && !/^ *[{}] *;?$/ { n++ }
        /\*\// { comment = 0 }
        END { print n + 0 }' "$file")
    echo "$name: $lines lines"
    test "$lines" -gt 0 && test "$lines" -le $most || {
        echo "FAILED: $name has more than $most lines"
        status=1
    }
done
test -n "$lines" || { echo "FAILED: no networks in $abs_srcdir/examples/networks"; status=1; }
exit $status
