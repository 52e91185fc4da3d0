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
grep -q "must have these $((count));" "$work/part" || {
    echo "docs/plugins/backends.md does not say that there are $((count)) primitives"; exit 1; }
echo "$((count)) primitives"
