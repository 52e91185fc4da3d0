#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A 4-element add costs a bounded number of instructions (time would depend on the machine). Measured with gcc 12 -O2: 1688 a call, scope,
# memory and kernel included; the bound leaves room for other compilers. SKIP without valgrind, under sanitizers, and for builds that are not optimised.
bound=2400
if ! command -v valgrind >/dev/null 2>&1; then
    echo "SKIP: instructions.sh: no valgrind"
    exit 77
fi
if test "${TN_SANITIZERS-no}" != no; then
    echo "SKIP: instructions.sh: the build has sanitizers"
    exit 77
fi
case $(uname -m) in
x86_64) ;;
*) echo "SKIP: instructions.sh: the bound is for x86-64"; exit 77 ;;
esac
folder=${TMPDIR-/tmp}/tenon-instructions.$$
mkdir -p "$folder" || exit 1
trap 'rm -rf "$folder"' EXIT

# count N: instructions of a run with N adds
count() {
    ./libtool --mode=execute valgrind --tool=callgrind --callgrind-out-file="$folder/out" \
        ./bench/dispatch --instructions "$1" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; return 1; }
    sed -n 's/^\(summary\|totals\): *\([0-9]*\).*/\2/p' "$folder/out" | head -n 1
}
few=$(count 1000) || exit 1
many=$(count 21000) || exit 1
if test -z "$few" || test -z "$many"; then
    echo "instructions.sh: callgrind gave no totals" >&2
    exit 1
fi
each=$(((many - few) / 20000))
echo "instructions.sh: $each instructions a 4-element add; the bound is $bound"
if grep -q '^CFLAGS = .*-O0' Makefile; then
    echo "SKIP: instructions.sh: the build is not optimised"
    exit 77
fi
test "$each" -le "$bound"
