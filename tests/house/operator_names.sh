#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Checks that every required operator exists, as an operator of sdk/operators or under the name
# after a sign =: what docs/reference/operators.md or a public header says of it. The list:
# tests/house/operator_names.txt. Also checks that grep finds every operator of the schema by
# its name: its definition in plugins/ops, a test, and a page of docs/.
list=$abs_srcdir/tests/house/operator_names.txt
page=$abs_builddir/docs/reference/operators.md # a distribution brings it
test -f "$page" || page=$abs_srcdir/docs/reference/operators.md
failed=0
count=0
for word in $(sed 's/#.*//' "$list"); do
    name=${word%%=*}
    ours=${word#*=}
    count=$((count + 1))
    if grep -qE "^op ([a-z0-9_]+ )*$ours( |\$)" "$abs_srcdir"/sdk/operators/*.ops; then
        grep -q "^### $ours\$" "$page" && continue
        echo "$name: operator $ours is not in docs/reference/operators.md"
    elif grep -qE "(TN_API|static inline|TN_INLINE).* \*?tn_$ours\(" \
        "$abs_srcdir"/sdk/include/tenon/*.h; then
        continue
    else
        echo "$name: there is no operator and no documented function $ours"
    fi
    failed=$((failed + 1))
done
test $count -gt 200 || { echo "only $count names in $list"; exit 1; }
operators=$(mktemp) || exit 99
trap 'rm -f "$operators"' EXIT
sed -n 's/^op //p' "$abs_srcdir"/sdk/operators/*.ops | tr ' ' '\n' | LC_ALL=C sort -u >"$operators"
for folder in plugins/ops tests docs; do
    missing=$(cd "$abs_srcdir" && grep -rhowFI -f "$operators" "$folder" | LC_ALL=C sort -u |
        LC_ALL=C comm -13 - "$operators")
    test -z "$missing" || { echo "not in $folder:" $missing; failed=$((failed + 1)); }
done
test "$(wc -l <"$operators")" -gt 400 || { echo "only few operators in the schema"; exit 1; }
echo "$count names, $failed not there"
test $failed = 0
