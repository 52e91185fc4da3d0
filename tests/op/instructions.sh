#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Calls that compute next to nothing cost a bounded number of instructions (time would depend on the
# machine): scope, memory and kernel included. SKIP without valgrind, under sanitizers, and for
# builds that are not optimized. `make instructions` prints all cases of bench/dispatch.
#
# case, bound; the count with gcc 12 -O2. The bounds leave a margin for other compilers.
bounds="
add             1700    1353
add-gradient    2800    2264
add-in-place    1900    1472
transpose       1450    1103
linear-backward 48000   26608
"
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
*) echo "SKIP: instructions.sh: the bounds are for x86-64"; exit 77 ;;
esac
folder=${TMPDIR-/tmp}/tenon-instructions.$$
mkdir -p "$folder" || exit 1
trap 'rm -rf "$folder"' EXIT
calls=400

# count CASE: instructions of one call
count() {
    ./libtool --mode=execute valgrind \
        --tool=callgrind --toggle-collect=counted --callgrind-out-file="$folder/out" \
        ./bench/dispatch --only "$1" --instructions $calls >"$folder/log" 2>&1 || {
        cat "$folder/log" >&2; return 1; }
    total=$(sed -n 's/^\(summary\|totals\): *\([0-9]*\).*/\2/p' "$folder/out" | head -n 1)
    test -n "$total" && test "$total" -gt $calls || {
        echo "instructions.sh: callgrind gave no totals for $1" >&2; return 1; }
    echo $((total / calls))
}
if test "$1" = --all; then
    ./run bench/dispatch --help 2>&1 | sed -n 's/^cases: //p' | tr ' ' '\n' >"$folder/cases"
    while read -r name; do
        each=$(count "$name") || exit 1
        printf '%-16s %7d instructions\n' "$name" "$each"
    done <"$folder/cases"
    exit 0
fi
status=0
echo "$bounds" >"$folder/bounds"
while read -r name bound usual; do
    test -n "$name" || continue
    each=$(count "$name") || exit 1
    echo "instructions.sh: $name: $each instructions; the bound is $bound (gcc 12: $usual)"
    test "$each" -le "$bound" || status=1
done <"$folder/bounds"
if grep -q '^CFLAGS = .*-O0' Makefile; then
    echo "SKIP: instructions.sh: the build is not optimized"
    exit 77
fi
exit $status
