#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon train that is killed at each write, rename, link, removal and flush of a run in turn, and
# continued: all files are those of the run that was not killed, but for times. The same where the
# call fails. With the large rate the second epoch is not the best one.
set -u
tenon=$abs_builddir/tools/tenon
fault=$abs_builddir/tests/train/.libs/fault.so
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset TENON_DEVICE
# The driver of OpenCL takes longer to start than the command runs here.
TENON_PLUGINS='!backend-opencl'
export TENON_PLUGINS
test "${TN_SANITIZERS-no}" = no || {
    echo "SKIP: a library that is preloaded cannot have a sanitizer"; exit 77; }
TENON_NUM_THREADS=1
export TENON_NUM_THREADS
"$tenon" info safetensors >/dev/null 2>&1 || {
    echo "SKIP: this build lacks safetensors"; exit 77; }
bad=0
awk 'BEGIN { for (i = 0; i < 12; i++) print i % 5 "," i % 4 "," i % 3 }' >train.csv
awk 'BEGIN { for (i = 0; i < 6; i++) print i % 4 "," i % 5 "," i % 3 }' >val.csv

# train FAULT FOLDER EPOCHS RATE: begins or continues the run
train() {
    TN_FAULT=$1 TN_FAULT_CALLS=$work/calls LD_PRELOAD=$fault \
        "$tenon" train --model 'Linear(2, 3)' --data "CSV('train.csv')" \
        --val "CSV('val.csv')" --optim "SGD(lr=$4)" --epochs "$3" --batch-size 4 \
        --checkpoint-every 3 --keep 2 --out "$2" --resume >log 2>&1 </dev/null
}

# files FOLDER: a line for each file, with its bytes or, where times vary, with what must be equal
files() {
    (cd "$1" && find . -type f | LC_ALL=C sort | while read -r file; do
        case $file in
            ./metrics.csv)
                awk -F, 'NR == 1 { for (i = 1; i <= NF; i++)
                        if ($i == "epoch_seconds" || $i == "samples_per_second") out[i] = 1 }
                    { for (i = 1; i <= NF; i++) if (!(i in out)) printf "%s,", $i; print "" }' \
                    "$file" ;;
            ./report.html | ./events.*) echo "$file" ;;
            *) cksum "$file" ;;
        esac
    done)
}

# every EPOCHS RATE: kills and fails at every call
every() {
    rm -rf whole
    train count whole "$1" "$2" || {
        # A build with sanitizers wants to be loaded first.
        grep -q 'runtime does not come first' log && { echo "SKIP: no preloading"; exit 77; }
        cat log; exit 1; }
    files whole >wanted
    calls=$(cat calls 2>/dev/null || echo 0)
    if test "$calls" -lt 20; then
        echo "too few calls are seen, got $calls; expected at least 20"
        exit 1
    fi
    for how in kill fail; do
        call=0
        while test $call -lt "$calls"; do
            call=$((call + 1))
            rm -rf cut
            train "$how:$call" cut "$1" "$2"
            code=$?
            # A call that fails may be one that the run can do without. Times in texts make a run
            # of fewer calls possible, which then ends before the one that would have killed it.
            expected=137
            test $code -eq 0 && test "$(cat calls)" -lt $call && expected=0
            test $how = kill && test $code -ne $expected && {
                echo "$how:$call: status $code"; cat log; bad=1; }
            train none cut "$1" "$2" || {
                echo "$how:$call: the run that continues fails"; cat log; bad=1; continue; }
            files cut >got
            cmp -s wanted got || {
                echo "$1 epochs, $how at call $call of $calls: other files"; diff wanted got
                bad=1; }
        done
    done
    echo "$1 epochs: $calls calls, killed and failing"
}

every 1 0.1
every 2 0.1
every 2 50
exit $bad
