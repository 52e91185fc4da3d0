#!/bin/sh
# SPDX-License-Identifier: MIT
#
# sdk/api.json and sdk/operators.json have all that a binding needs, and each exported function has
# a user or a reason; see api.pl.
find_file() {
    for f in "$abs_builddir/$1" "$abs_srcdir/$1"; do
        test -f "$f" && echo "$f" && return
    done
    echo "api.sh: no $1 in $abs_builddir or $abs_srcdir" >&2
    exit 1
}
api=$(find_file sdk/api.json) || exit 1
operators=$(find_file sdk/operators.json) || exit 1
exports=$(find_file lib/libtenon.sym) || exit 1
header=$(find_file sdk/include/tenon/ops.h) || exit 1
if test "$(getconf LONG_BIT)" != 64; then
    echo "SKIP: layout.golden is of a 64-bit machine"
    exit 77
fi
exec "${PERL:-perl}" "$abs_srcdir/tests/house/api.pl" "$api" "$operators" \
    "$abs_srcdir/tests/house/layout.golden" "$exports" "$abs_srcdir" "$header"
