#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon train and tenon finetune of a program of PyTorch: the losses of PyTorch
# (files/training.txt, which make_training.py writes), runs that continue without the original to
# the bit, files that open again, and copies of the program that are missing, damaged or others.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
from=$(cd "${abs_srcdir:-$srcdir}" && pwd)/tests/foreign/files
"$tenon" info pt2 >/dev/null 2>&1 && "$tenon" summary "$from/training.pt2" >/dev/null 2>&1 || {
    echo "SKIP: this build reads no programs of PyTorch"; exit 77; }
data="TensorFile('samples.npz')"
cp "$from/training.pt2" net.pt2
cp "$from/training.npz" samples.npz
cat >run.toml <<END
data = "$data"
val = "$data"
batch-size = 12
epochs = 4
checkpoint-every = 1
END

# loss MODEL NUMBER: compares the loss of all samples
loss() {
    check 0 '' eval "$1" --data "$data" --json
    awk -v want="$2" '$1 == "\"loss\":" { d = $2 - want; found = d < 1e-12 && d > -1e-12 }
        END { exit !found }' out || complain "the loss of $1 is not $2"
}

# ---- beside PyTorch ----
while read -r name first _ _ _ last; do
    case $name in
    sgd) optim='SGD(lr=0.1, momentum=0.9, weight_decay=0.01)' ;;
    *) optim='Adam(lr=0.02)' ;;
    esac
    check 0 "^weights: $name/best.pt2; those of the end: $name/model.pt2\$" train net.pt2 \
        --config run.toml --optim "$optim" --out "$name"
    loss "$name/model.pt2" "$last"
done <"$from/training.txt"

check 0 '^program ' convert sgd back.pt2
cmp back.pt2 sgd/best.pt2 || complain 'a run is converted to another program'

# ---- a file of ONNX ----
samples="TensorFile('$from/onnx_samples.npz')"
check 0 '^weights: of_onnx/best.onnx; those of the end: of_onnx/model.onnx$' train \
    "$from/onnx_net.onnx" --data "$samples" --val "$samples" --batch-size 24 --epochs 2 \
    --optim 'SGD(lr=0.1)' --checkpoint-every 1 --seed 1 --out of_onnx
check 0 '' train "$from/onnx_net.onnx" --data "$samples" --val "$samples" --batch-size 24 \
    --epochs 1 --optim 'SGD(lr=0.1)' --checkpoint-every 1 --seed 1 --out cut_onnx
check 0 '^epoch 2/2 ' train --resume --out cut_onnx --epochs 2
cmp of_onnx/model.onnx cut_onnx/model.onnx || complain 'continued, the model of ONNX differs'
for file in of_onnx of_onnx/checkpoints/best.checkpoint; do
    check 0 '"accuracy"' eval "$file" --data "$samples" --json
done
check 0 '^head: fc$' finetune of_onnx --data "$samples" --val "$samples" --epochs 1 --out tuned_onnx

# ---- without the original ----
optim='SGD(lr=0.1, momentum=0.9, weight_decay=0.01)'
check 0 '' train net.pt2 --config run.toml --optim "$optim" --epochs 2 --out cut
rm net.pt2
check 0 '^epoch 4/4 ' train --resume --out cut --epochs 4
cmp cut/model.pt2 sgd/model.pt2 || complain 'continued, the program differs'
# what a run left that was killed before its first checkpoint
mkdir -p killed/checkpoints
echo junk >killed/checkpoints/program.pt2
check 0 '' train sgd/best.pt2 --config run.toml --epochs 1 --out killed
check 0 '^epoch 2/2 ' train --resume --out killed --epochs 2
for file in cut cut/best.pt2 cut/checkpoints/best.checkpoint; do
    check 0 '"accuracy"' eval "$file" --data "$data" --json
done
check 0 'fc' summary cut
check 0 '' predict cut --data "$data"
check 0 '' script cut --input 4,2,5,5 --dtype float64 --out net.script

# ---- the copy of the program ----
copy=cut/checkpoints/program.pt2
mv $copy kept.pt2
check 1 'cut/checkpoints/step-00000004.checkpoint: the copy of the program, which the run wrote' \
    train --resume --out cut --epochs 5
also 'program.pt2: cannot open: No such file'
check 1 'the copy of the program' eval cut/checkpoints/best.checkpoint --data "$data"
head -c 9000 kept.pt2 >$copy
check 1 'the copy of the program, which' train --resume --out cut --epochs 5
# one letter of the program
LC_ALL=C sed 's/torch\.ops\.aten\.relu/torch.ops.aten.relv/' kept.pt2 >$copy
cmp -s kept.pt2 $copy && complain 'the copy was not changed'
check 1 'the copy of the program, which.*relu|checksum' train --resume --out cut --epochs 5
cp "$from/module_old.pt2" $copy
check 1 'another program, got [0-9a-f]{16}; expected [0-9a-f]{16}' \
    train --resume --out cut --epochs 5
# what can take its place
cp cut/best.pt2 $copy
check 0 '^epoch 5/5 ' train --resume --out cut --epochs 5
check 1 'another model' train --resume "$from/module_old.pt2" --out cut --epochs 6
check 0 '^epoch 6/6 ' train --resume "$from/training.pt2" --out cut --epochs 6

# ---- a new head ----
check 0 '^head: fc$' finetune cut --config run.toml --optim 'Adam(lr=0.05)' --epochs 3 --out tuned
check 0 '' finetune cut --config run.toml --optim 'Adam(lr=0.05)' --epochs 2 --out again
check 0 '^epoch 3/3 ' finetune --resume --out again --epochs 3
cmp again/model.pt2 tuned/model.pt2 || complain 'a continued head differs'
# another convolution does not fit the norm after it
check 1 'running_mean: wrong shape, got .4.; expected .3.' finetune cut --config run.toml \
    --head features.0 --epochs 1 --out conv
check 1 'module "features.2" \(ReLU\) has no option' finetune cut --config run.toml \
    --head features.2 --out none
exit $bad
