#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The command with closed standard streams: what it prints does not get into the files that it
# writes.
tenon=${TENON-$abs_builddir/tools/tenon}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
fail() { echo "$1"; exit 1; }

from=$abs_srcdir/tests/io/files/f32.npy
test -f "$from" || from=$(ls "$abs_srcdir"/tests/io/files/*.npy | head -n 1)
plugin=$(ls "$abs_builddir"/plugins/.libs/optim.so) || exit 1
"$tenon" convert "$from" right.npz || fail "convert fails"
"$tenon" check "$plugin" --level contract --json right.json --tap - >/dev/null ||
    fail "check fails"

run() {
    TENON_LOG=debug "$tenon" convert "$from" got.npz
    cmp -s right.npz got.npz || echo convert >>bad
    "$tenon" check "$plugin" --level contract --json got.json --tap got.tap --junit got.xml
    grep -q '"plugin"\|"tests"' got.json || echo report >>bad
    sed 's/[0-9.]* *s//' right.json | wc -l >right.lines
    sed 's/[0-9.]* *s//' got.json | wc -l >got.lines
    cmp -s right.lines got.lines || echo lines >>bad
}

: >bad
( run ) >&-
( run ) 2>&-
( run ) <&- >&- 2>&-
test ! -s bad || fail "with closed streams: $(sort -u bad | tr '\n' ' ')"
# Writing to a closed stream is still an error.
( "$tenon" env >&- ) 2>/dev/null && fail "printing to a closed stream succeeds"
ls .tenon-* >/dev/null 2>&1 && fail "something is left"
exit 0
