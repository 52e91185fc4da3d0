#!/bin/sh
# SPDX-License-Identifier: MIT
#
# docs/reference/operator-results.md is what tests/oracle/results.pl finds in the recorded cases.
#   tests/house/operator_results.sh             compares (make check)
#   tests/house/operator_results.sh --update    writes the page
here=$(cd "$(dirname "$0")" && pwd)
abs_srcdir=${abs_srcdir-$(cd "$here/../.." && pwd)}
abs_builddir=${abs_builddir-$abs_srcdir/build}
page=$abs_srcdir/docs/reference/operator-results.md
json=$abs_builddir/sdk/operators.json # a distribution brings it
test -f "$json" || json=$abs_srcdir/sdk/operators.json
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# Files without results of operators: options, layers.
set -- "${1-}" "$abs_srcdir"/tests/oracle/*.txt
update=$1
shift
for file in "$@"; do
    shift
    case $file in
    */layer_options.txt | */operator_options.txt | */layers.txt) ;;
    *) set -- "$@" "$file" ;;
    esac
done
"${PERL:-perl}" "$abs_srcdir/tests/oracle/results.pl" "$json" "$@" >"$work/page" || exit 1
test "$(wc -l <"$work/page")" -gt 400 || { echo "only few operators have results"; exit 1; }
if test "$update" = --update; then
    cp "$work/page" "$page"
    exit
fi
diff "$page" "$work/page" && exit
echo "docs/reference/operator-results.md: not what the cases say; run" \
    "tests/house/operator_results.sh --update"
exit 1
