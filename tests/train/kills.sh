#!/bin/sh
# SPDX-License-Identifier: MIT
#
#   kills.sh [TIMES]
#
# tenon train that is killed (SIGKILL) at random moments and continued has the same weights, byte
# for byte, as an uninterrupted run: with augmentation, worker threads, dropout, an average of the
# weights, accumulation and a schedule, at 1, 2 and 4 threads. TIMES is the number of kills (8);
# `make kills` has 50.
set -u
times=${1-8}
tenon=$abs_builddir/tools/tenon
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset TENON_DEVICE TENON_NUM_THREADS
# The driver of OpenCL takes longer to start than the command runs here.
TENON_PLUGINS='!backend-opencl'
export TENON_PLUGINS
"$tenon" info safetensors >/dev/null 2>&1 || {
    echo "SKIP: this build lacks safetensors"; exit 77; }
cat >run.toml <<'END'
# the settings of all runs
model = '''Sequential(Conv2d(1, 8, 3, padding=1), BatchNorm2d(8), ReLU(), MaxPool2d(2), Flatten(),
           Dropout(0.2), Linear(128, 10))'''
data = "Digits(split='train')"
val = "Digits(split='test')"
augment = "RandomCrop(8, padding=1)"
optim = "AdamW(lr=0.003)"
schedule = "CosineAnnealingLR(T_max=6)"
epochs = 6
batch-size = 32
accumulate = 2
ema = 0.99
clip_norm = 5.0
workers = 2
checkpoint-every = 5
END

whole() {
    TENON_NUM_THREADS=$1 "$tenon" train --config run.toml --out "whole$1" >log 2>&1 || {
        cat log; exit 1; }
}
# Random numbers of the test itself: 0 to 32767, from a file of numbers that differ each time.
number() { od -An -N2 -tu2 /dev/urandom | tr -d ' '; }

began=$(date +%s%N)
whole 1
took=$((($(date +%s%N) - began) / 1000000))
whole 2
whole 4
for threads in 1 2 4; do
    TENON_NUM_THREADS=$threads
    export TENON_NUM_THREADS
    kills=0 tries=0
    wanted=$(((times + 2) / 3))
    while test "$kills" -lt "$wanted"; do
        tries=$((tries + 1))
        rm -rf cut
        # Several kills in one run, until it is complete.
        while :; do
            "$tenon" train --config run.toml --out cut --resume >log 2>&1 &
            pid=$!
            sleep "$(awk "BEGIN { print $(number) % ($took + 50) / 1000 }")"
            if test "$kills" -lt "$wanted" && kill -KILL $pid 2>/dev/null; then
                kills=$((kills + 1))
                wait $pid 2>/dev/null
            else
                wait $pid || { echo "the run that continues fails:"; cat log; exit 1; }
                break
            fi
        done
        cmp "whole$threads/model.safetensors" cut/model.safetensors || {
            echo "$threads threads, after $kills kills: other weights"; exit 1; }
        "$tenon" inspect cut/best.safetensors >/dev/null || exit 1
        # One row for each step, each once.
        cut -d, -f1 whole$threads/metrics.csv >a && cut -d, -f1 cut/metrics.csv >b
        cmp a b || { echo "$threads threads: metrics.csv has other steps"; diff a b; exit 1; }
        test "$tries" -lt 200 || { echo "no process could be killed"; exit 1; }
    done
done
echo "$times kills: the same weights"
