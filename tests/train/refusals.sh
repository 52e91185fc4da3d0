#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon train and tenon finetune with bad input: the exit status and the words of each failure, and
# that nothing is lost.
set -u
tenon=$abs_builddir/tools/tenon
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset TENON_DEVICE
# The driver of OpenCL takes longer to start than the command runs here.
TENON_PLUGINS='!backend-opencl'
export TENON_PLUGINS
"$tenon" info safetensors >/dev/null 2>&1 || {
    echo "SKIP: this build lacks safetensors"; exit 77; }
bad=0
net='Sequential(Flatten(), Linear(64, 16), ReLU(), Linear(16, 10))'
digits="Digits(split='test')"

# train CODE WORDS ARGUMENT...: tenon train ends with this status and prints these words
train() {
    wanted=$1 words=$2
    shift 2
    "$tenon" train "$@" >log 2>&1 </dev/null
    code=$?
    if test $code -ne "$wanted" || ! grep -qF -e "$words" log; then
        echo "tenon train $*: status $code, wanted $wanted and \"$words\""
        cat log
        bad=1
    fi
}

# ---- the command line and files of settings ----
train 2 'unknown setting "epocs"; did you mean "epochs"?' --epocs 3
train 2 '--epochs: wrong, got "x"' --epochs x
train 2 '--clip-norm: out of range, got 0; expected more than 0' --clip-norm 0
train 2 '--model: it is missing' --data "$digits" --out a
train 2 'lists the options' --model
printf 'epochs = 2\nbatch_sise = 4\n' >wrong.toml
train 2 'wrong.toml:2: unknown setting "batch_sise"; did you mean "batch-size"?' --config wrong.toml
printf '{"epochs": 2, "optimm": "SGD()"}' >wrong.json
train 2 'wrong.json:1: unknown setting "optimm"; did you mean "optim"?' --config wrong.json
printf 'epochs = 1\nepochs = 2\n' >twice.toml
train 2 'twice.toml:2: epochs is given twice' --config twice.toml
printf '{"model": "%s", "data": "%s", "epochs": 1, "out": "json"}' "$net" "$digits" >good.json
train 0 'epoch 1/1' --config good.json

printf 'lr = 0.1\n' >option.toml
train 2 'option.toml:1: unknown setting "lr"; expected one of the options' --config option.toml

# files that are no regular files, and a long list, end at once
mkfifo pipe && mkdir folder2
train 2 '--config: pipe: cannot be read: it is not a regular file' --config pipe
train 2 '--config: folder2: cannot be read: it is not a regular file' --config folder2
train 2 '--config: /dev/zero: cannot be read: it is not a regular file' --config /dev/zero
mkdir piped && mkfifo piped/metrics.csv
train 1 'piped/metrics.csv": it is a pipe; expected a regular file' --model "$net" \
    --data "$digits" --epochs 1 --out piped
awk 'BEGIN { printf "freeze = ["; for (i = 0; i < 200000; i++) printf "\"a\","; print "]" }' \
    >long.toml
train 2 '--model: it is missing' --config long.toml

# ---- specs ----
mkdir folder
train 1 'folder: it is a folder; expected the spec of a dataset, such as ImageFolder("folder")' \
    --model "$net" --data folder --out a
train 1 "option.toml: it is a file; expected the spec of a dataset, such as CSV" \
    --model "$net" --data option.toml --out a
train 1 'did you mean "Linear"' --model 'Linea(2, 2)' --data "$digits" --out a
train 1 'did you mean "Digits"' --model "$net" --data 'Digts()' --out a
printf '1,2.5\n2,3.5\n' >numbers.csv
train 1 '--loss: it is missing' --model 'Linear(1, 1)' \
    --data "CSV('numbers.csv', target='number')" --out a
train 1 '--accumulate: LBFGS evaluates one batch in each step, got 2' --model 'Linear(1, 1)' \
    --data "CSV('numbers.csv', target='number')" --loss 'MSELoss()' --optim 'LBFGS()' \
    --accumulate 2 --out a
train 1 'no parameter or module fits "conv*"' --model "$net" --data "$digits" --freeze 'conv*' \
    --out a
train 1 'too few outputs, got 4; expected one for each of the 10 classes' \
    --model 'Sequential(Flatten(), Linear(64, 4))' --data "$digits" --out b

# ---- data ----
awk 'BEGIN { for (i = 0; i < 20; i++) print i ",1," i % 3 }' >good.csv
head -c 97 good.csv >cut.csv
printf '1,2,0\n' >one.csv
train 1 '--val-split: the data has 1 sample; expected two or more' --model 'Linear(2, 1)' \
    --data "CSV('one.csv', header=False)" --val-split 0.5 --out c
train 1 'dataset CSV: cut.csv' --model 'Linear(2, 3)' --data "CSV('cut.csv')" --out c
awk 'BEGIN { for (i = 0; i < 20; i++) print (i == 7 ? "nan" : i) ",1," i % 3 }' >nan.csv
train 1 'the input of the batch has NaN' --model 'Linear(2, 3)' \
    --data "CSV('nan.csv', missing=inf)" --out d --batch-size 4

# the validation has the names of the training: another name would shift every label
if "$tenon" predict 'Flatten()' "$abs_srcdir/tests/data/files/pictures/dog/rgb.png" >/dev/null 2>&1
then
    for class in circle square; do
        mkdir -p "named/$class" "same/$class"
        cp "$abs_srcdir/tests/data/files/pictures/dog/rgb.png" "named/$class/"
        cp "$abs_srcdir/tests/data/files/pictures/dog/rgb.png" "same/$class/"
    done
    cp -R same other && mv other/circle other/zircle
    set -- --model 'Sequential(AdaptiveAvgPool2d(2), Flatten(), Linear(12, 2))' --epochs 1 \
        --data "ImageFolder('named')" --transform 'ToFloat()'
    train 1 '"circle"; the classes are 2 (square, zircle); those of --data are 2 (circle, square)' \
        "$@" --val "ImageFolder('other')" --out n1
    rm -r other/square
    train 1 'another number of classes, got 1 (zircle); expected those of --data: 2 (circle,' \
        "$@" --val "ImageFolder('other')" --out n1
    train 0 'epoch 1/1' "$@" --val "ImageFolder('same')" --out n2
fi

# ---- pictures in folders: a damaged one is left out only if asked, and counted ----
if "$tenon" predict 'Flatten()' "$abs_srcdir/tests/data/files/pictures/dog/rgb.png" >/dev/null 2>&1
then
    cp -R "$abs_srcdir/tests/data/files/pictures" . && chmod -R u+w pictures
    head -c 60 pictures/dog/rgb.png >pictures/cat/bad.png
    # files with other endings are left out, and counted
    for name in dog/a.svg dog/b.SVG cat/c.heic cat/.hidden cat/none; do : >pictures/$name; done
    small='Sequential(AdaptiveAvgPool2d(2), Flatten(), Linear(12, 2))'
    set -- --model "$small" --data "ImageFolder('pictures')" --transform 'ToFloat()' --epochs 2
    train 1 'pictures/cat/bad.png: damaged' "$@" --out f
    grep -q 'ImageFolder: sample [0-9]*: .*; --skip-damaged leaves such samples out' log || {
        echo "damaged picture: no advice"; cat log; bad=1; }
    mkdir sizes && mkdir sizes/a &&
        cp pictures/dog/rgb.png sizes/a/1.png && "$tenon" predict 'Identity()' \
        pictures/dog/rgb.png --transform 'Resize((4, 5))' --output sizes/a/2.png >log 2>&1 || bad=1
    train 1 "; for pictures: --transform '[Resize(256), CenterCrop(224), ToFloat()]'" \
        --model "$small" --data "ImageFolder('sizes')" --out f2
    # a run in the folder of the samples would be a class
    for out in sizes sizes/run sizes/a/new/run ./pictures/../sizes/run; do
        train 1 'where its files would become samples; expected another folder' --model "$small" \
            --data "ImageFolder('sizes')" --out $out
    done
    test "$(ls sizes)" = a && test "$(ls sizes/a | tr '\n' ' ')" = '1.png 2.png ' || {
        echo 'files among the samples'; ls sizes sizes/a; bad=1; }
    # so is a picture that a transform does not take
    train 1 '; --skip-damaged leaves such samples out' --model "$small" --epochs 2 --out f3 \
        --data "ImageFolder('sizes')" --transform '[RandomCrop(6), ToFloat()]'
    train 0 'left out 2 damaged samples, counted in each epoch' --model "$small" --epochs 2 \
        --data "ImageFolder('sizes')" --transform '[RandomCrop(6), ToFloat()]' --out f4 \
        --skip-damaged
    for workers in 0 2; do
        train 0 'epoch 2/2' "$@" --skip-damaged --workers $workers --out g$workers
        grep -q 'left out 2 damaged samples, counted in each epoch' log || {
            echo "damaged picture: not counted"; cat log; bad=1; }
    done
    cmp g0/model.safetensors g2/model.safetensors || bad=1
    # also if it is a batch by itself, the last one of an epoch
    grep -qF 'pictures: 4 files left out: no pictures by their ending (1 .heic, 2 .svg); ' log || {
        echo "files with other endings are not counted"; cat log; bad=1; }
    test "$(grep -c 'sample left out: .*pictures/cat/bad.png: damaged PNG' log)" = 1 || {
        echo "a damaged sample is not listed once"; cat log; bad=1; }
    train 0 'left out 2 damaged samples' "$@" --skip-damaged --batch-size 1 --out h1
    train 0 'left out 2 damaged samples' --model "$small" --data "ImageFolder('pictures')" \
        --transform 'ToFloat()' --epochs 1 --skip-damaged --val "ImageFolder('pictures')" \
        --batch-size 1 --out h2
    "$tenon" eval g0/model.safetensors --data "ImageFolder('pictures')" >log 2>&1 && {
        echo "eval reads a damaged picture"; cat log; bad=1; }
    train 1 'data: samples without a target, entry 1 of a batch is list' --model "$small" \
        --data "ImageFiles('pictures/dog/rgb.png')" --transform 'ToFloat()' --loss 'MSELoss()' \
        --out h3
    # the file has the transform, which eval, predict and finetune use
    "$tenon" eval g0/model.safetensors --data "ImageFolder('pictures')" --skip-damaged >log 2>&1
    grep -q '^transform *ToFloat()$' log && grep -q '^skipped *1 damaged sample$' log || {
        echo "eval does not use the transform of the file"; cat log; bad=1; }
    "$tenon" predict g0/model.safetensors pictures/dog/rgb.png >log 2>&1 || {
        echo "predict does not use the transform of the file"; cat log; bad=1; }
    "$tenon" predict g0/model.safetensors pictures/dog/rgb.png --transform '[]' >log 2>&1 && {
        echo "predict uses the transform of the file, though it has another one"; bad=1; }
    grep -q 'uint8' log || { cat log; bad=1; }
    "$tenon" finetune --model g0/model.safetensors --data "ImageFolder('pictures')" --epochs 1 \
        --skip-damaged --out tuned0 >log 2>&1
    grep -q '^transform: ToFloat(), from the file of the model$' log || {
        echo "finetune does not use the transform of the file"; cat log; bad=1; }
    "$tenon" inspect tuned0/model.safetensors --json | grep -q '"ToFloat()"' || {
        echo "finetune does not save the transform"; bad=1; }
    find pictures -type f -exec cp pictures/cat/bad.png {} ';' 2>/dev/null
    train 1 'no sample of epoch' "$@" --skip-damaged --out h
else
    echo "note: this build reads no PNG; damaged pictures were not tried"
fi

# ---- a last batch of one sample, which has no deviation ----
train 1 'the last one of an epoch, has 1 sample, which another --batch-size avoids: in Sequential' \
    --model 'Sequential(Flatten(), BatchNorm1d(64), Linear(64, 10))' --data "$digits" \
    --batch-size 358 --epochs 1 --out alone

# ---- a report that cannot be written: the epoch is saved, and continued to the same bits ----
mkdir -p page/report.html.part
train 1 'saved the checkpoint of step 12; --resume continues there' --model "$net" \
    --data "$digits" --epochs 2 --out page
grep -qF 'report.html.part' log || { cat log; bad=1; }
rmdir page/report.html.part
train 0 'epoch 2/2' --resume --out page
train 0 'epoch 2/2' --model "$net" --data "$digits" --epochs 2 --out paged
cmp page/model.safetensors paged/model.safetensors || { echo "after a failed report"; bad=1; }

# ---- a loss that is not finite names the module, and the checkpoints stay ----
train 1 'input are finite, but the output of module' --model "$net" --data "$digits" \
    --optim 'SGD(lr=1e30)' --out e

# ---- a folder that has a run, another model, other settings ----
train 0 'epoch 2/2' --model "$net" --data "$digits" --epochs 2 --out run
cp run/model.safetensors before.safetensors
# classes without names are known by their numbers
"$tenon" predict run/model.safetensors --data "$digits" >log 2>&1
grep -q '^INPUT *CLASS *PROBABILITY' log || {
    echo "predict shows no classes:"; head -3 log; bad=1; }
# a checkpoint is a model as well
"$tenon" predict run/checkpoints/step-00000024.checkpoint --data "$digits" >log2 2>&1
cmp log log2 || { echo "the checkpoint predicts otherwise"; head -3 log2; bad=1; }
"$tenon" summary run/checkpoints/step-00000024.checkpoint --input 2,64 >log 2>&1
grep -q '^  (3): Linear *\[2, 10\] *170 *320$' log || { cat log; bad=1; }
train 1 'run has a run with 24 steps; expected --resume' --model "$net" --data "$digits" --out run
train 1 '1.weight: [16, 64] in the checkpoint; here [8, 64]' --resume --out run \
    --model 'Sequential(Flatten(), Linear(64, 8), ReLU(), Linear(8, 10))'
grep -q 'another model than that of the run in run, 3 tensors differ' log || { cat log; bad=1; }
train 1 '--batch-size: 32; here 64' --resume --out run --batch-size 64
train 1 '--optim: Adam(lr=0.001); here SGD(lr=0.1)' --resume --out run --optim 'SGD(lr=0.1)'
cmp -s run/model.safetensors before.safetensors || { echo "a refusal changed the weights"; bad=1; }
train 0 'weights: run/model.safetensors' --resume --out run
cmp -s run/model.safetensors before.safetensors || { echo "an empty resume changes them"; bad=1; }
train 0 'epoch 3/3' --resume --out run --epochs 3

# ---- a disk that is full (here: the size limit of a process), the old checkpoint stays ----
train 0 'epoch 1/1' --model 'Sequential(Flatten(), Linear(64, 2000), ReLU(), Linear(2000, 10))' \
    --data "$digits" --epochs 1 --out full
ls full/checkpoints >before
(ulimit -f 600 && "$tenon" train --resume --out full --epochs 2 >log 2>&1)
code=$?
test $code -eq 1 && grep -q 'checkpoint of step' log || {
    echo "full disk: status $code"; cat log; bad=1; }
ls full/checkpoints >after
cmp -s before after || { echo "full disk: other checkpoints"; diff before after; bad=1; }
train 0 'epoch 2/2' --resume --out full --epochs 2

# ---- a damaged checkpoint, a missing plugin ----
newest=$(find run/checkpoints -name 'step-*' | sort | tail -n 1)
dd if=/dev/zero of="$newest" bs=1 seek=2000 count=64 conv=notrunc 2>/dev/null
train 1 'damaged checkpoint, remove it' --resume --out run
rm "$newest"
mkdir few
for plugin in "$TENON_PLUGIN_PATH"/*.so; do
    case $plugin in */optim.so | */data.so) ;; *) ln -s "$plugin" few/ ;; esac
done
(TENON_PLUGIN_PATH=$work/few "$tenon" train --resume --out run >log 2>&1)
grep -q 'it needs the plugins .*"tenon.optim".* not loaded; searched: TENON_PLUGIN_PATH=' log || {
    echo "missing plugin:"; cat log; bad=1; }

# ---- an interrupt saves, and the run continues to the same weights ----
train 0 'epoch 40/40' --model "$net" --data "$digits" --epochs 40 --out whole --batch-size 8
"$tenon" train --model "$net" --data "$digits" --epochs 40 --out parts --batch-size 8 >log 2>&1 &
pid=$!
while ! test -s parts/metrics.csv && kill -0 $pid 2>/dev/null; do sleep 0.02; done
kill -TERM $pid 2>/dev/null
wait $pid
code=$?
test $code -eq 143 && grep -q 'the checkpoint is saved' log || test $code -eq 0 || {
    echo "SIGTERM: status $code"; cat log; bad=1; }
train 0 'epoch 40/40' --resume --out parts
cmp whole/model.safetensors parts/model.safetensors || bad=1

# ---- a terminal that is closed sends SIGHUP twice; under nohup it does nothing ----
# Perl, because a shell cannot restore a signal that it was started to ignore.
perl -e '$SIG{HUP} = "DEFAULT"; exec @ARGV' \
    "$tenon" train --model "$net" --data "$digits" --epochs 4000 --out hup --batch-size 8 \
    >log 2>&1 &
pid=$!
while ! test -s hup/metrics.csv && kill -0 $pid 2>/dev/null; do sleep 0.02; done
kill -HUP $pid 2>/dev/null
kill -HUP $pid 2>/dev/null
wait $pid
code=$?
test $code -eq 129 && grep -q 'the checkpoint is saved' log || {
    echo "SIGHUP: status $code"; cat log; bad=1; }
(trap '' HUP
    exec "$tenon" train --model "$net" --data "$digits" --epochs 40 --out kept2 --batch-size 8) \
    >log 2>&1 &
pid=$!
while ! test -s kept2/metrics.csv && kill -0 $pid 2>/dev/null; do sleep 0.02; done
kill -HUP $pid 2>/dev/null
wait $pid
code=$?
test $code -eq 0 && grep -q 'epoch 40/40' log || { echo "nohup: status $code"; cat log; bad=1; }

# ---- without a reader of its output a training goes on ----
"$tenon" train --model "$net" --data "$digits" --epochs 40 --out parts2 --batch-size 8 2>/dev/null |
    head -1 >log
cmp whole/model.safetensors parts2/model.safetensors || bad=1

# ---- a folder whose checkpoints were removed, but the best one ----
cp -R parts2 lost && rm lost/checkpoints/step-*
train 1 'has no checkpoint of a step, but lost/checkpoints/best.checkpoint; expected' \
    --resume --out lost
cp lost/checkpoints/best.checkpoint lost/checkpoints/step-00000000.checkpoint
train 0 'continues after step' --resume --out lost
# fewer epochs than there were: the run ends, and does not count to more than all
train 0 'weights: ' --resume --epochs 1 --out hup
! grep -Eq 'epoch ([2-9]|[1-9][0-9]+)/1' log || { echo 'epochs beyond the last'; cat log; bad=1; }
train 2 '--data: given twice; expected one dataset' --model "$net" --data "$digits" \
    --data "$digits" --out twice

# ---- a second signal ends the process at once: the step, of all batches, does not end ----
"$tenon" train --model 'Sequential(Flatten(), Linear(64, 700), ReLU(), Linear(700, 700), ReLU(),
    Linear(700, 10))' --data "$digits" --epochs 400 --out slow --batch-size 1 --accumulate 10000 \
    >log 2>&1 &
pid=$!
while ! test -s slow/metrics.csv && kill -0 $pid 2>/dev/null; do sleep 0.02; done
kill -TERM $pid 2>/dev/null
sleep 0.02
kill -TERM $pid 2>/dev/null
wait $pid
code=$?
test $code -eq 143 && ! grep -q 'the checkpoint is saved' log || {
    echo "two signals: status $code"; cat log; bad=1; }

# ---- an optimizer that evaluates the loss fits a line in a few steps, also after a resume ----
awk 'BEGIN { for (i = 0; i < 50; i++) print i / 10 "," i % 7 "," 3 * i / 10 - 2 * (i % 7) + 1 }' \
    >line.csv
set -- --model 'Linear(2, 1)' --data "CSV('line.csv', target='number')" --loss 'MSELoss()' \
    --optim 'LBFGS(line_search_fn="strong_wolfe", max_iter=4)' --batch-size 50
train 0 'epoch 4/4' "$@" --epochs 4 --out fit
train 0 'epoch 2/2' "$@" --epochs 2 --out fits
train 0 'epoch 4/4' --resume --epochs 4 --out fits
cmp fit/model.safetensors fits/model.safetensors || { echo "LBFGS: resumed, it differs"; bad=1; }
"$tenon" eval fit/model.safetensors --data "CSV('line.csv', target='number')" --batch-size 50 >log
awk '$1 == "loss" { found = $2 < 1e-6 } END { exit !found }' log || {
    echo "LBFGS does not fit the line"; cat log; bad=1; }
train 1 'is the first module' --model "$net" --data "$digits" --optim 'LBFGS(lr=1e30)' --out e2
# the best checkpoint and the last ones are kept
train 0 'epoch 4/4' --model "$net" --data "$digits" --epochs 4 --keep 2 --out kept
test "$(ls kept/checkpoints | tr '\n' ' ')" = \
    'best.checkpoint step-00000036.checkpoint step-00000048.checkpoint ' || {
    echo "--keep 2: other checkpoints:"; ls kept/checkpoints; bad=1; }

# ---- finetune ----
tune() {
    "$tenon" finetune "$@" >log 2>&1 || { echo "tenon finetune $*"; cat log; bad=1; }
}
awk 'BEGIN { for (i = 0; i < 60; i++) {
    for (j = 0; j < 64; j++) printf "%d,", (i * 7 + j * (i % 3 + 1)) % 5
    print i % 3 } }' >three.csv
tune --model whole/model.safetensors --data "CSV('three.csv')" --epochs 2 --out tuned
# values FILE NAME: the numbers of a tensor
values() {
    "$tenon" inspect "$1" --values "$2" | awk '/^[^ ].* [a-z0-9]+\[.*\]$/ { on = 1; next }
        on { gsub(/[][,]/, " "); for (i = 1; i <= NF; i++) if ($i ~ /^[-+0-9.e]+$/) print $i }'
}
"$tenon" inspect tuned/model.safetensors >log
grep -q '^3.weight *float32 *\[3, 16\]' log || { echo "finetune: no new head"; cat log; bad=1; }
values whole/model.safetensors 1.weight >wanted
test "$(wc -l <wanted)" -gt 10 || { echo "no values"; bad=1; }
values tuned/model.safetensors 1.weight >got
cmp wanted got || { echo "finetune: the body has changed"; bad=1; }
tune --model whole/model.safetensors --data "CSV('three.csv')" --epochs 2 --out all --unfreeze '*'
values all/model.safetensors 1.weight >got
cmp -s wanted got && { echo "finetune --unfreeze: the body has not changed"; bad=1; }
"$tenon" finetune --model "$net" --data "$digits" --out none >log 2>&1 && bad=1
grep -q 'it has no weights' log || { cat log; bad=1; }
exit $bad
