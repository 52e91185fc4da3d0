#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Rule 24: the functions of each table keep their places. tests/house/host_tables.golden lists them
# in order, with their types; a function may be added at the end of its table and nowhere else.
#   tests/house/host_tables.sh             compares (make check)
#   tests/house/host_tables.sh --update    writes host_tables.golden from a build folder
# ($abs_builddir, else ./build); the commit says why a place changed
here=$(cd "$(dirname "$0")" && pwd)
abs_srcdir=${abs_srcdir-$(cd "$here/../.." && pwd)}
abs_builddir=${abs_builddir-$abs_srcdir/build}
golden=$abs_srcdir/tests/house/host_tables.golden
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
host=$abs_builddir/sdk/include/tenon/host.h
test -f "$host" || host=$abs_srcdir/sdk/include/tenon/host.h
if ! test -f "$host"; then
    echo "host_tables.sh: no host.h in $abs_builddir or $abs_srcdir: build first"
    exit 1
fi

# "table place type": one line for each function.
awk '/^struct tn_[a-z]+_table \{/ { table = substr($2, 4, length($2) - 9); place = 0; next }
    /^};/ { table = ""; next }
    table != "" { sub(/^ +/, ""); sub(/;$/, ""); printf "%s %d %s\n", table, place++, $0 }' \
    "$host" >"$work/tables"
count=$(wc -l <"$work/tables")
test "$count" -gt 200 || { echo "host_tables.sh: $host lists only $count functions"; exit 1; }
if test "${1-}" = --update; then
    cp "$work/tables" "$golden"
    exit
fi
cut -d ' ' -f 1,2 "$golden" >"$work/places"
awk 'NR == FNR { known[$1 " " $2] = 1; next } ($1 " " $2) in known' "$work/places" "$work/tables" \
    >"$work/common"
if ! diff "$golden" "$work/common"; then
    echo "host_tables.sh: functions moved, changed or went ('<' golden, '>' now): a plugin that was"
    echo "compiled before calls the wrong one. Declare new functions at the end of their header."
    exit 1
fi
if ! cmp -s "$work/common" "$work/tables"; then
    diff "$work/common" "$work/tables"
    echo "host_tables.sh: new functions: run tests/house/host_tables.sh --update"
    exit 1
fi
echo "$count functions keep their places"
