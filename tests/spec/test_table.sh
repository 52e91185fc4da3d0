#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The table of the rows of the specification counts rows that are named in logs of programs that
# passed, and reports errors. Also checks that the lines that tests/spec/break changes exist.
set -u
top=$(cd "${abs_srcdir:-${srcdir:-.}}" && pwd)
place=$(mktemp -d) || exit 99
trap 'rm -rf "$place"' EXIT
failed=0
fail() { echo "FAIL: $*"; cat "$place/out"; failed=1; }

mkdir -p "$place/source/tests/spec" "$place/source/docs/reference" "$place/build/tests/a" || exit 99
cat >"$place/source/tests/spec/rows.txt" <<'END'
# AAA The first
AAA-001 one
AAA-002 two
AAA-003 three
# BBB The second
BBB-001 four
END
: >"$place/source/tests/spec/whole.txt"
: >"$place/source/docs/reference/behaviour-notes.md"
table() { perl "$top/tests/spec/table" "$@" "$place/source" "$place/build" >"$place/out" 2>&1; }
log() { printf '%s\n' "$3" >"$place/build/tests/a/$1.log"; printf ':test-result: %s\n' "$2" \
    >"$place/build/tests/a/$1.trs"; }

table && fail "a build without tests gave a table"
log good PASS 'PROVES AAA-001'
log bad FAIL 'PROVES AAA-002'
table || fail "a plain table failed"
grep -q '^AAA  *3  *1  *0  *0  *2  ' "$place/out" ||
    fail "what a failed program says counts, or what a good one says does not"
table --open
grep -q 'AAA-002 two' "$place/out" || fail "open rows are not listed"

echo 'AAA' >"$place/source/tests/spec/whole.txt"
table && fail "an open row in a whole area passed"
printf '| AAA-002 | waiting | for the sea |\n| AAA-003 | differently | why not |\n' \
    >"$place/source/docs/reference/behaviour-notes.md"
table && fail "a row met differently, without a test, passed"
log more PASS 'PROVES AAA-003'
table || fail "a whole area failed"
grep -q '^AAA  *3  *1  *1  *1  *0  ' "$place/out" || fail "the notes do not count"
log odd PASS 'PROVES CCC-001'
table && fail "a row that is not there was proven"

perl "$top/tests/spec/break" --check "$top" >"$place/out" 2>&1 ||
    fail "what tests/spec/break breaks is not there any more"
exit $failed
