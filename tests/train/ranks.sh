#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon train with several processes and with shards: the same weights to the bit on 1, 2 and 4
# processes, interrupted and continued on other numbers of them; a process that is killed; settings
# that are refused.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
TENON_NUM_THREADS=1
export TENON_NUM_THREADS
cat >run.toml <<'TOML'
data = "Digits(split='test')"
val-split = 0.2
seed = 3
batch-size = 32
epochs = 2
optim = "Adam(lr=0.01)"
TOML
net='Sequential(Flatten(), Linear(64, 16), BatchNorm1d(16), ReLU(), Dropout(0.2), Linear(16, 10))'

# alone CODE PATTERN ARGUMENT...: one process
alone() {
    wanted=$1 pattern=$2
    shift 2
    check "$wanted" "$pattern" train "$net" --config run.toml "$@"
}
# ranks N CODE PATTERN ARGUMENT...: N processes
ranks() {
    n=$1 wanted=$2 pattern=$3
    shift 3
    check "$wanted" "$pattern" run -n "$n" -- "$tenon" train "$net" --config run.toml "$@"
}
same_weights() {
    cmp "$1/model.safetensors" "$2/model.safetensors" || complain "$1 and $2: other weights"
    cmp "$1/best.safetensors" "$2/best.safetensors" || complain "$1 and $2: other best weights"
}

# rank 0 alone prints and writes; the names of the weights are those of the model
alone 0 '^1 process, 2 shards' --shards 2 --out one
ranks 2 0 '2 processes, 2 shards' --out two
test "$(grep -c 'epoch 1/2' out)" = 1 || complain 'the epoch was printed more than once'
same_weights one two
cut -d, -f1-7 one/metrics.csv >one.csv
cut -d, -f1-7 two/metrics.csv >two.csv
cmp one.csv two.csv || complain 'the metrics differ'
"$tenon" inspect two/model.safetensors >out 2>&1
grep -q 'module\.' out && complain 'names with module.'
grep -q '1\.weight' out || complain 'no 1.weight'

# four shards on one, two and four processes
alone 0 '' --shards 4 --out one4
ranks 4 0 '' --out four
ranks 2 0 '2 processes, 4 shards' --shards 4 --out two4
same_weights one4 four
same_weights one4 two4

# interrupted and continued on another number of processes: the weights of a run without a stop
ranks 2 0 '' --max-steps 5 --checkpoint-every 5 --out parts
alone 0 'continues after step 5' --resume --max-steps 7 --out parts
ranks 2 0 'continues after step 7' --resume --max-steps 1000 --out parts
cmp parts/model.safetensors two/model.safetensors || complain 'parts and two: other weights'
ranks 4 1 'shards: wrong, got 2 with 4 processes' --resume --out parts

# a process that is killed: the others end, and the run can be continued
"$tenon" run -n 2 -- sh -c "test \$TENON_COMM_RANK = 0 || {
        (until ls killed/checkpoints/step-*; do sleep 0.1; done; kill -9 \$\$) >/dev/null 2>&1 & }
    exec '$tenon' train '$net' --config run.toml --epochs 100000 --checkpoint-every 10 \
        --out killed" >out 2>err
test $? != 0 || complain 'a killed process is no failure'
grep -q 'rank 1' err || complain 'the killed rank is not named'
ranks 2 0 'continues after step' --resume --epochs 1 --out killed

# SIGTERM for all: a checkpoint, and the status of the signal
"$tenon" run -n 2 -- "$tenon" train "$net" --config run.toml --epochs 100000 --out stopped \
    >out 2>err &
launcher=$!
until ls stopped/checkpoints/step-* >/dev/null 2>&1 || ! kill -0 $launcher; do sleep 0.1; done
kill -TERM $launcher
wait $launcher
test $? = 143 || complain 'SIGTERM: another status'
grep -q 'the checkpoint is saved, --resume continues' out || complain 'SIGTERM: no checkpoint'

# what several processes or shards refuse
alone 1 '^tenon: --shards: wrong, got 3 with 1 process; expected a power of two' --shards 3 --out x
refused() { # PATTERN ARGUMENT...
    pattern=$1
    shift
    alone 1 "$pattern" --out x "$@"
}
refused 'it is the batch of all processes and shards, got 32; expected a multiple of 64' --shards 64
refused 'accumulate: not possible with several processes or shards' --accumulate 2 --shards 2
refused 'skip-damaged: not possible with several' --skip-damaged --shards 2
refused 'mix: not possible with several' --mix 'MixUp()' --shards 2
refused 'compile-step: not possible with several' --compile-step --shards 2
refused 'LBFGS evaluates the loss itself' --optim 'LBFGS()' --shards 2
exit $bad
