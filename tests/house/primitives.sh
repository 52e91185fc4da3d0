#!/bin/sh
# SPDX-License-Identifier: MIT
#
# docs/plugins/backends.md names the primitives that the schema (sdk/operators) has, all of them
# and no other, and their number.
page=$abs_srcdir/docs/plugins/backends.md
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
awk '/^op /{$1 = ""; op=$0} /^ *flags/ && / primitive( |$)/{print op}' \
    "$abs_srcdir"/sdk/operators/*.ops | xargs -n 1 | sort >"$work/schema"
sed -n '/^### The primitives/,/^Kernels that are worth/p' "$page" >"$work/part"
grep '^|' "$work/part" | grep -o '`[a-z0-9_]*`' | tr -d '`' | sort >"$work/page"
count=$(wc -l <"$work/schema")
test "$count" -gt 50 || { echo "only $count primitives in the schema"; exit 1; }
diff "$work/schema" "$work/page" || {
    echo "$page and sdk/operators differ: < is missing in the page, > is no primitive"; \
    exit 1; }
# The same for those with the flag basic, which the page lists in a paragraph.
awk '/^op /{$1 = ""; op=$0} /^ *flags/ && / basic( |$)/{print op}' \
    "$abs_srcdir"/sdk/operators/*.ops | xargs -n 1 | sort >"$work/schema"
sed -n '/^### The basic kernels/,/^### The primitives/p' "$page" >"$work/basic"
grep '^`' "$work/basic" | grep -o '`[a-z0-9_]*`' | tr -d '`' | sort >"$work/page"
basic=$(wc -l <"$work/schema")
test "$basic" -le 25 || { echo "$basic basic operators; expected at most 25"; exit 1; }
diff "$work/schema" "$work/page" || {
    echo "$page and sdk/operators differ: < is missing in the page, > is not basic"
    exit 1
}
grep -q "begins with these $((basic))," "$work/basic" || {
    echo "docs/plugins/backends.md does not say that there are $((basic)) basic kernels"
    exit 1
}
grep -q "kernels for these $((count)) operators" "$page" || {
    echo "docs/plugins/backends.md does not say that there are $((count)) primitives"; exit 1; }
echo "$((count)) primitives, $((basic)) basic"
