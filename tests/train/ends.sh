#!/bin/sh
# SPDX-License-Identifier: MIT
#
# How tenon train ends: within an epoch (--max-steps), early (--patience), and continued after both;
# a loss that is not for the classes; batches that are mixed.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
digits="Digits(split='test')"
net='Sequential(Flatten(), Linear(64, 16), ReLU(), Linear(16, 10))'
train() { # CODE PATTERN ARGUMENT...: of 8 steps in each epoch
    wanted=$1 pattern=$2
    shift 2
    check "$wanted" "$pattern" train "$net" --data "$digits" --val-split 0.3 --seed 3 \
        --config fast.toml "$@"
}

echo 'optim = "Adam(lr=0.02)"' >fast.toml

# rows FILE COLUMN: the step and the value of each row that has a value in this column
rows() {
    awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
        at && $at != "" { print $1, $at }' "$1/metrics.csv"
}
# steps FILE: the steps with a validation
steps() {
    rows "$1" loss/validation | cut -d' ' -f1 | tr '\n' ' '
}

# within an epoch: the last step is validated and recorded, and is the best one if it is better
train 0 '^best: epoch 1, val_accuracy ' --epochs 5 --max-steps 5 --out part
test "$(steps part)" = '5 ' || complain "validated at $(steps part)"
test -s part/best.safetensors || complain 'no best.safetensors'
cmp part/best.safetensors part/model.safetensors || complain 'the only weights are not the best'
train 0 '^best: epoch 2, val_accuracy ' --epochs 5 --max-steps 15 --out parts
test "$(steps parts)" = '8 15 ' || complain "validated at $(steps parts)"
cmp parts/best.safetensors parts/model.safetensors || complain 'the last step is not the best'
best=$(sed -n 's/^best: .*val_accuracy //p' out)
test "$(rows parts accuracy/validation | tail -n 1 | awk '{ printf "%.4f", $2 }')" = "$best" ||
    complain "metrics.csv does not end with $best"
# an empty resume changes nothing; the rest of the epoch gives the weights of a run without a stop
cp parts/metrics.csv before.csv
check 0 '^best: epoch 2, ' train --resume --out parts
cmp before.csv parts/metrics.csv || complain 'an empty resume records again'
check 0 '^epoch 2/2 ' train --resume --out parts --epochs 2 --max-steps 1000
test "$(steps parts)" = '8 15 16 ' || complain "continued, validated at $(steps parts)"
train 0 '^epoch 2/2 ' --epochs 2 --out whole
cmp parts/model.safetensors whole/model.safetensors || complain 'continued, the weights differ'

# early: with a rate of 0 no epoch is better than the first
train 0 '^stopped early: no better result in 2 epochs$' --optim 'SGD(lr=0.0)' --patience 2 \
    --epochs 9 --out early
also '^best: epoch 1, ' '^epoch 3/9 '
test "$(steps early)" = '8 16 24 ' || complain "validated at $(steps early)"
grep -q 'finished early' early/report.html || complain 'the page does not say that it ended early'
check 0 '^stopped early: no better result in 2 epochs$' train --resume --out early
test "$(steps early)" = '8 16 24 ' || complain 'continued without more patience'
check 0 '^epoch 4/9 ' train --resume --out early --patience 3 --json
grep -q '"outcome": "finished early"' out || complain 'the JSON does not say that it ended early'
test "$(steps early)" = '8 16 24 32 ' || complain "with more patience, validated at $(steps early)"
# counted across a run that ended, by the loss of the training without validation data
train 0 '^epoch 2/2 ' --optim 'SGD(lr=0.0)' --patience 3 --epochs 2 --out two
check 0 '^stopped early: no better result in 3 epochs$' train --resume --out two --epochs 9
test "$(steps two)" = '8 16 24 32 ' || complain "across a resume, validated at $(steps two)"
check 0 '^stopped early: no better result in 1 epoch$' train "$net" --data "$digits" --epochs 9 \
    --optim 'SGD(lr=0.0)' --patience 1 --batch-size 359 --out bare
train 0 '^epoch 3/3 ' --patience 1 --epochs 3 --out better
check 2 '--patience: wrong, got "0"; expected a whole number from 1' train --patience 0

# a loss that would broadcast results and classes
for loss in 'MSELoss()' 'L1Loss()'; do
    train 1 'is not for classes, got results float32 \[10, 10\] with classes int64 \[10\]' \
        --batch-size 10 --loss "$loss" --out wrong
    check 1 'is not for classes, got results float32 \[1, 10\]' eval whole --data "$digits" \
        --loss "$loss"
done
for loss in 'CrossEntropyLoss(label_smoothing=0.1)' 'MultiMarginLoss()'; do
    train 0 '^epoch 1/1 ' --epochs 1 --loss "$loss" --out "l$(printf %.5s "$loss")"
    check 0 '^loss ' eval whole --data "$digits" --loss "$loss"
done

# mixed batches: classes become probabilities; the spec is a setting of the run
flat='Sequential(Flatten(), Linear(64, 10))'
check 0 '^best: ' train "$flat" --data "$digits" --val-split 0.3 --transform 'ToFloat()' \
    --mix '[MixUp(alpha=0.2), CutMix()]' --epochs 2 --out mixed
grep -q '^epoch 2/2 .* loss [0-9.]*  val_loss' out || complain 'mixed: an accuracy of the training'
check 1 '--mix: .*mix: \[MixUp\(alpha=0.2\), CutMix\(\)\]; here MixUp\(\)|--mix: .*; here MixUp' \
    train --resume --out mixed --mix 'MixUp()'
check 1 '^tenon: --mix: .*ToFloat changes samples, not batches' train "$flat" --data "$digits" \
    --mix 'ToFloat()' --out wrong
exit $bad
