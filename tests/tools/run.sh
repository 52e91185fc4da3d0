#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon run: ranks find each other, lines are whole, failures of each kind give the documented
# status, and no process, socket or folder is left.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
program=$abs_builddir/tests/tools/run_program
test -x "$program" || { echo "SKIP: no $program"; exit 77; }
TMPDIR=$work/temporary
mkdir "$TMPDIR" || exit 1
export TMPDIR
unset TENON_NUM_THREADS
nothing_left() {
    test -z "$(ls "$TMPDIR")" || complain "$1: left $(find "$TMPDIR")"
}

# ranks, threads, lines; a line without an end is printed, too
check 0 '^\[2\] rank 2 of 3: sum 15$' run -n 3 "$program"
also '^\[0\] half of a line$' '^\[1\] half of a line$' '^\[0\] no end$' '^\[0\] threads [0-9]+$'
test "$(wc -l <out)" -eq 12 || complain 'not 12 lines'
grep -Eqv '^\[[0-2]\] (threads|half of a line|rank [0-2] of 3: sum 15|no end)' out &&
    complain 'a line is not whole'
check 0 '^\[1\] rank 1 of 2: sum 10$' run -n 2 --tcp -- "$program"
check 0 '^\[0\] rank 0 of 1: sum 5$' run -n 1 "$program"
TENON_NUM_THREADS=1
export TENON_NUM_THREADS
check 0 '^\[0\] threads 1$' run -n 2 --log logs "$program"
cmp -s logs/rank-0.txt - <<END || complain 'the log of rank 0'
threads 1
half of a line
rank 0 of 2: sum 10
no end
END
"$program" >out 2>err || complain 'alone'
also '^rank 0 of 1: sum 5$'
nothing_left 'good runs'

# a rank ends: the others say so, and the status tells how
check 75 '^tenon run: rank 1 was ended by SIGKILL$' run -n 3 "$program" kill 1
also '^\[0\] .*rank 1 is lost, its process has ended: all_reduce #0' '^\[2\] .*rank 1 is lost'
# the process that fails first ends a moment before the other one, which may be seen first
"$tenon" run -n 2 --restarts 2 "$program" fail 0 >out 2>err
code=$?
test $code -eq 3 || test $code -eq 4 || complain "fail: status $code"
also '^tenon run: rank [01] ended with status [34]$' '^\[1\] .*rank 0 is lost'
grep -q restart err && complain 'a program that fails was started again'
check 4 '^\[0\] .*rank 1 is lost' run -n 2 "$program" leave 1
check 4 '^\[0\] .*all_reduce #0 .*: no progress for 1\.' run -n 2 --timeout 1 "$program" stop 1
check 0 '^\[1\] rank 1 of 2: sum 10$' run -n 2 --restarts 1 "$program" kill 1 "$work/mark"
also '^tenon run: restart 1 of 1$'
check 75 '^tenon run: restart 2 of 2$' run -n 2 --restarts 2 "$program" kill 0

# a signal goes to all ranks
"$tenon" run -n 2 "$program" sleep 1 >out 2>err &
launcher=$!
sleep 1
kill -TERM $launcher
wait $launcher
test $? -eq 143 || complain 'SIGTERM: another status'

# what a rank has started ends with it
check 75 '' run -n 2 -- sh -c '(sleep 1; touch survived) & kill -9 $$'
sleep 1.5
test ! -e survived || complain 'what a killed process had started went on'

# output without an end does not keep the launcher from its signals
"$tenon" run -n 2 yes >/dev/null 2>err &
launcher=$!
(sleep 20 && kill -KILL $launcher) 2>/dev/null &
guard=$!
sleep 1
kill -TERM $launcher
wait $launcher
test $? -eq 143 || complain 'endless output: another status'
kill $guard
nothing_left 'failures'

# wrong usage
check 127 'run: /nowhere/x: process 1 of 2 cannot be started: No such file' run -n 2 /nowhere/x
check 2 'too few arguments; expected -n N' run
check 2 'too few arguments; expected -n N' run "$program"
check 2 'too few arguments; expected COMMAND' run -n 2
check 2 'too few arguments; expected COMMAND' run -n 2 --
check 2 'run: -n: wrong number, got 0; expected 1 to 256' run -n 0 "$program"
check 2 'run: -n: wrong number, got 257; expected 1 to 256' run -n 257 "$program"
check 2 'run: -n: wrong number, got two' run -n two "$program"
check 2 'run: --restarts: wrong number, got -1' run -n 2 --restarts=-1 "$program"
check 2 'run: --timeout: wrong number, got nothing' run -n 2 --timeout
check 2 'run: unknown option --fast' run -n 2 --fast=1 "$program"
check 2 'run: --log: cannot be made, got /proc/x' run -n 2 --log /proc/x "$program"
nothing_left 'wrong usage'
exit $bad
