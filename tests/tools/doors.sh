#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What tenon train, finetune and prune write opens by its name alone: in every command the file, the
# checkpoint and the folder of the run; and what one command writes is a model for the next.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
digits="Digits(split='test')"
net='Sequential(Flatten(), Linear(64, 16), ReLU(), Linear(16, 10))'

# the model needs no --model; the last epoch, of a much larger rate, is not the best
check 0 '^weights: run/best\.safetensors; those of the end: run/model\.safetensors$' train "$net" \
    --data "$digits" --val-split 0.3 --epochs 2 --optim 'Adam(lr=0.02)' --out run \
    --schedule 'ExponentialLR(gamma=500.0)'
also '^best: epoch 1, val_accuracy '
check 2 'unexpected argument "two"; expected options' train "$net" two --data "$digits" --out x

# a folder is its best weights, then its last ones
for door in run run/best.safetensors run/checkpoints/best.checkpoint; do
    check 0 '^accuracy' eval "$door" --data "$digits"
    grep '^accuracy\|^loss' out >"got.$(echo $door | tr / -)"
done
cmp got.run got.run-best.safetensors || complain 'the folder is not its best weights'
cp got.run got.best
cmp got.run got.run-checkpoints-best.checkpoint || complain 'the best checkpoint differs'
check 0 '^accuracy' eval run/model.safetensors --data "$digits"
grep '^accuracy\|^loss' out >got.last
cmp -s got.run got.last && complain 'best and last weights are the same: the test says nothing'
for door in run run/best.safetensors run/checkpoints/best.checkpoint; do
    check 0 '^INPUT +CLASS +PROBABILITY' predict "$door" --data "$digits"
    cp out "got.$(echo $door | tr / -)"
done
cmp got.run got.run-best.safetensors || complain 'the folder predicts otherwise'
cmp got.run got.run-checkpoints-best.checkpoint || complain 'the checkpoint predicts otherwise'
check 0 '"runs": ' bench run --input 1,64 --repeat 3 --json
check 0 'Linear' summary run --input 1,64
check 0 '^written +net\.script$' script run --input 1,1,8,8 --dynamic '[N, 1, 8, 8]' \
    --out net.script
check 0 '^INPUT +CLASS +PROBABILITY' predict net.script --data "$digits"
check 0 '^written +small\.safetensors$' prune run --amount 0.5 --out small.safetensors
check 0 '^best: ' finetune run --data "$digits" --val-split 0.2 --epochs 1 --seed 1 --out tuned

# a file that stores a module comes after best.*; two files of the same stem are an error with both
mkdir rival && cp run/best.safetensors rival && cp net.script rival/model.script
check 0 '^accuracy' eval rival --data "$digits"
grep '^accuracy\|^loss' out | cmp - got.best || complain 'a script goes before the best weights'
check 0 '^best: ' finetune rival --data "$digits" --val-split 0.2 --epochs 1 --out tuned2
cp net.script rival/best.script
check 1 'several files of tensors: best\..*, best\.' eval rival --data "$digits"
rm rival/best.safetensors rival/best.script
check 0 '^accuracy' eval rival --data "$digits"
mkdir plain && "$tenon" convert run/best.safetensors plain.npz >/dev/null &&
    cp plain.npz plain/model.npz
check 1 '^tenon: plain: has tensors, but no metadata "tenon.spec".*after --weights' eval plain \
    --data "$digits"
check 0 '^accuracy' eval "$net" --weights plain --data "$digits"

# a program of PyTorch: its folder, and that of its checkpoints, which has the copy
program=$here/../foreign/files/training
if "$tenon" info pt2 >/dev/null 2>&1 && "$tenon" summary "$program.pt2" >/dev/null 2>&1; then
    samples="TensorFile('$program.npz')"
    check 0 '' train "$program.pt2" --data "$samples" --val "$samples" --epochs 1 --out foreign
    for door in foreign foreign/checkpoints foreign/checkpoints/; do
        check 0 '"accuracy"' eval "$door" --data "$samples" --json
    done
fi

# files of other programs: what they are, and a way in
other() { # FILE BYTES WORDS
    printf "$2" >"$1"
    check 1 "$1: cannot be read, got $3.*; expected " inspect "$1"
}
other net.gguf 'GGUF\003\000\000\000' 'weights of llama\.cpp'
other weights.bin 'GGUF\003\000\000\000' 'weights of llama\.cpp'
other net.h5 '\211HDF\r\n\032\n\000\000' 'HDF5, as Keras'
other net.keras 'PK\003\004\024\000' 'a network of Keras'
other net.tflite '\034\000\000\000TFL3\024\000' 'a network of TensorFlow Lite'
other forest.pkl '\200\004\225\000\000' 'objects of Python'
other a.mat 'MATLAB 5.0 MAT-file \000' 'a file of MATLAB'
printf '\010\010\022\007pytorch\032\000' >net.onnx
onnx='net\.onnx: onnx: graph: missing; expected a model of ONNX'
check 1 "$onnx" inspect net.onnx
check 1 "$onnx" convert net.onnx x.npz
check 1 "$onnx" eval net.onnx --data "$digits"
check 1 "$onnx" predict "$net" net.onnx
check 1 "$onnx" finetune net.onnx --data "$digits" --out x
# such a file is no rival of the weights of a folder, and no format to write
mkdir both && cp run/best.safetensors both/model.safetensors && cp net.keras both/model.keras
check 0 '^accuracy' eval both --data "$digits"
check 1 'no format has this extension' convert run/best.safetensors x.keras
check 1 'no format recognizes its content or its extension; formats: ' inspect "$here/doors.sh"
grep -q 'other-programs' err && complain 'a format without extensions among those with'

# --json: standard output has JSON alone, the progress goes to standard error
check 0 '' train "$net" --data "$digits" --val-split 0.3 --epochs 2 --out told --json
$PERL -MJSON::PP -e 'local $/; my $o = JSON::PP->new->decode(<STDIN>);
    exit !($o->{outcome} eq "finished" && $o->{epochs} == 2 && $o->{steps} == 2 * 8
        && $o->{best}{epoch} == 2 && $o->{best}{step} == 16 && $o->{best}{val_accuracy} > 0
        && -s $o->{weights} && -s $o->{last_weights} && -s $o->{metrics} && -s $o->{report}
        && $o->{weights} eq "told/best.safetensors")' <out || complain 'train --json'
grep -q '^epoch 2/2' err || complain 'train --json: no progress on standard error'
check 1 '"code": "TN_ERR_REFUSED"' train "$net" --data "$digits" --out told --json
exit $bad
