#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tests/device/run with an archive whose steps pass, fail, hang and skip: each has its line in
# report.md, none stops the next one, and the exit status is 0 only when all passed.
run=$abs_srcdir/tests/device/run
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
expect() { # WHAT: fails unless the command before returned 0
    test $? -eq 0 || { echo "FAIL: $1"; failed=1; }
}
archive() { # writes $work/archive.tar.gz with the steps from standard input
    rm -rf "$work/tenon-device" "$work/out"
    mkdir -p "$work/tenon-device"
    cat >"$work/tenon-device/steps"
    (cd "$work" && tar cf - tenon-device | gzip >archive.tar.gz)
}
go() { # EXPECTED STATUS, VARIABLES: runs it as on a machine without a compiler
    wanted=$1
    shift
    env -i PATH=/usr/bin:/bin OUT="$work/out" "$@" sh "$run" "$work/archive.tar.gz" >"$work/said" \
        2>&1
    status=$?
    test $status -eq "$wanted" || { cat "$work/said"; false; }
    expect "exit status $status, expected $wanted"
}

archive <<'STEPS'
# seconds	name	command
5	passes	echo all is well
5	fails, with | in it	echo "a | b: wrong"; exit 3
1	hangs	echo begins; sleep 60
5	does not apply	echo "SKIP: not here"; exit 77
5	is killed	kill -9 $$
5	names	test -n "$TN_TEST_BUILDDIR" -a "$TN_TEST_NEEDED" = cuda && pwd && echo kept >"$OUT/kept"
STEPS
go 1 FAKE=1
report=$work/out/report.md
grep -q '^| passes | ok | [0-9]* | all is well |$' "$report"
expect "a step that passes"
grep -q '^| fails, with | in it | FAILED with status 3 | [0-9]* | a  b: wrong |$' "$report"
expect "a step that fails"
grep -q '^    a | b: wrong$' "$report"
expect "the output of a step that fails"
grep -q '^| hangs | FAILED: took more than 1 s | [0-9]* | begins |$' "$report"
expect "a step that hangs"
grep -q '^| does not apply | SKIPPED | [0-9]* | SKIP: not here |$' "$report"
expect "a step that does not apply"
grep -q '^| is killed | FAILED' "$report"
expect "a step that is killed"
grep -q '^| names | ok |' "$report" && test "$(cat "$work/out/kept")" = kept
expect "the step after those that fail"
tail -n 1 "$report" | grep -q '^2 passed, 3 failed, 1 skipped$'
expect "the summary"
tail -n 1 "$work/said" | grep -q '^device: 2 passed, 3 failed, 1 skipped; '
expect "the last line"

archive <<'STEPS'
5	passes	true
5	does not apply	exit 77
STEPS
go 0 FAKE=1
tail -n 1 "$report" | grep -q '^1 passed, 0 failed, 1 skipped$'
expect "a summary without failures"
go 1 FAKE=1 SECONDS_LEFT=0 # nothing ran, so nothing passed
grep -q 'no time is left for it' "$report"
expect "steps for which no time is left"
if test ! -e /dev/nvidiactl && test ! -e /dev/dxg; then
    go 77
fi
rm "$work/archive.tar.gz"
go 1 FAKE=1
grep -q 'tests/device/pack makes it' "$work/said"
expect "what a missing archive needs"
test $failed -eq 0 && echo "PASS: test_run.sh"
exit $failed
