#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Rule 9: the layout of every public struct and the value of every public constant are those of
# layout.golden.
#   tests/house/layout.sh             compares (make check)
#   tests/house/layout.sh --update    writes a new layout.golden from a build folder ($abs_builddir,
# else ./build)
here=$(cd "$(dirname "$0")" && pwd)
abs_srcdir=${abs_srcdir-$(cd "$here/../.." && pwd)}
abs_builddir=${abs_builddir-$abs_srcdir/build}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
find_header() {
    for d in "$abs_builddir" "$abs_srcdir"; do
        test -f "$d/sdk/include/tenon/$1" && echo "$d/sdk/include/tenon/$1" && return
    done
    echo "layout.sh: no $1 in $abs_builddir or $abs_srcdir: build first" >&2
    exit 1
}
# Every public header, but those that only include others and the one that is generated from them.
headers=
for h in $(cd "$abs_srcdir/sdk/include/tenon" && ls ./*.h) ops.h; do
    case $h in
    ./plugin.h | ./tenon.h | ./host.h | ./ops.h) ;;
    *) headers="$headers $(find_header "${h#./}")" || exit 1 ;;
    esac
done
# shellcheck disable=SC2086
"${PERL:-perl}" "$here/layout.pl" $headers >"$work/layout.c" || exit 1
# shellcheck disable=SC2086
${CC:-cc} -std=gnu11 -o "$work/layout" \
    -I"$abs_builddir/sdk/include" -I"$abs_srcdir/sdk/include" "$work/layout.c" || exit 1
"$work/layout" >"$work/now" || exit 1
if test "${1-}" = --update; then
    cp "$work/now" "$here/layout.golden"
    exit 0
fi
if test "$(getconf LONG_BIT)" != 64; then
    echo "SKIP: layout.golden is of a 64-bit machine"
    exit 77
fi
if ! diff -u "$here/layout.golden" "$work/now"; then
    echo "A public struct or constant changed. Interfaces are drafts (revision 0): allowed now:"
    echo "see that it is meant, run tests/house/layout.sh --update, and say why in the commit."
    exit 1
fi
echo "$(grep -c '^struct' "$work/now") structs," \
    "$(sed '1,/^constants/d' "$work/now" | grep -c .) constants"
