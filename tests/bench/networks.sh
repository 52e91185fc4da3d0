#!/bin/sh
# SPDX-License-Identifier: MIT
#
# bench/train and bench/infer build a network, step it, and print a row of numbers. Nothing is
# measured here: one step of each, without a peer.
status=0
row() { # PROGRAM TITLE OPTION...
    program=$1
    title=$2
    shift 2
    if ! out=$("$abs_builddir/bench/$program" --rounds 1 --seconds 0 "$@" 2>&1); then
        echo "FAIL: bench/$program $*: $out"
        status=1
        return
    fi
    found=$(printf '%s\n' "$out" |
        grep -cE "^\| $title.* \| [0-9.e+-]+ \([0-9.e+-]+\) \| [0-9]+ \| 0 \|\$")
    if test "$found" -ne 1; then
        echo "FAIL: bench/$program $*: $found rows of \"$title\"; expected 1 in:"
        printf '%s\n' "$out"
        status=1
    fi
}
row train 'LeNet-5, 1x28x28 \| 2 \| 1 \| float32' --net lenet --batch 2
row train 'BERT-tiny' --net bert-tiny --batch 1 --type bf16
row infer 'face detector, 3x24x24 \| 1 \| 2 \| float32' --net faces-r --batch 1 --threads 2
row infer '1-d convolutions, .* \| 1 \| 1 \| bfloat16' --net audio --batch 1 --type bf16
if "$abs_builddir/bench/infer" --net nothing >/dev/null 2>&1; then
    echo "FAIL: bench/infer --net nothing: succeeded; expected a failure"
    status=1
fi
exit $status
