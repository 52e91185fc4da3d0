#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon eval: losses and counts are those of PyTorch (make_models.py); models by spec, name and
# file; errors say what is wrong.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
test_data='Digits(split="test")'
net='Sequential(Flatten(), Linear(64, 10))'

# PyTorch's numbers, for every way to name the model and to read the data
set -- --data "$test_data" --topk 3 --confusion --worst 3 --json
check 0 '' eval "$files/digits.safetensors" "$@"
same eval
check 0 '' eval "$files/digits.safetensors" "$@" --batch-size 100 --workers 2
same eval
check 0 '' eval "$files/run.safetensors" "$@"
same eval
for weights in digits.safetensors digits.pt run.safetensors; do
    check 0 '' eval "$net" --weights "$files/$weights" --data "$test_data" --json
    "$PERL" -MJSON::PP -e 'local $/; my $j = decode_json(<STDIN>);
        exit !($j->{correct} == 308 && $j->{samples} == 359)' <out || complain "$weights"
done
echo "$net" >net.txt
check 0 '^accuracy +0\.8579' eval net.txt --weights "$files/digits.pt" --data "$test_data"
also '^samples +359 in 359 batches of 1 on cpu:0$' '^loss +1\.47458 CrossEntropyLoss\(\)$' \
    '^CLASS +SAMPLES +CORRECT +RECALL +PRECISION +F1 +AUC$'
check 0 '^top +0\.9610 \(345 within the first 3\)$' eval "$files/digits.safetensors" \
    --data "$test_data" --topk 3 --batch-size 64 --confusion
also '^f1 +0\.8552 \(mean of the classes\)$' '^auc +0\.9812 \(' \
    '^TRUE \\ RESULT +null +eins' '^null +27 +0 '

# numbers: the mean of squares, another loss, smaller last batches
line='CSV("'$files/line.csv'", target="number")'
check 0 '' eval "$files/line.safetensors" --data "$line" --json
same line
check 0 '' eval "$files/line.safetensors" --data "$line" --batch-size 2 --json
same line
check 0 '' eval "$files/line.safetensors" --data "$line" --batch-size 3 --loss 'L1Loss()' --json
same line_l1

# what a model is
check 1 'model "nothing": no spec .*no file \(No such file .*no layer' \
    eval nothing --data "$test_data"
check 1 'none/net\.pt": cannot be opened: No such' eval none/net.pt --data "$test_data"
check 1 'did you mean "ReLU"' eval ReLu --data "$test_data"
: >ReLU
check 1 'names a file and a layer; expected @ReLU .*or ReLU\(\) for the layer' \
    eval ReLU --data "$test_data"
check 1 'empty' eval '' --data "$test_data"
"$tenon" convert "$files/digits.pt" plain.safetensors >/dev/null
check 1 'no metadata "tenon\.spec"' eval plain.safetensors --data "$test_data"
"$tenon" convert "$files/digits.safetensors" extra.safetensors --prefix =module. >/dev/null
check 1 'does not fit the model; missing: 1\.weight, 1\.bias; unexpected: module\.1\.' \
    eval extra.safetensors --data "$test_data"
also 'tenon convert FROM TO --prefix module\.. removes'
check 0 'missing, so these keep their initial values: 1\.weight' \
    eval extra.safetensors --loose --data "$test_data" --batch-size 359
check 1 'size mismatch for 1\.weight' eval 'Sequential(Flatten(), Linear(64, 9))' \
    --weights "$files/digits.pt" --data "$test_data"
head -c 200 "$files/digits.safetensors" >cut.safetensors
check 1 'cut\.safetensors: ' eval cut.safetensors --data "$test_data"
check 1 'none\.pt: cannot open' eval "$net" --weights none.pt --data "$test_data"

# data with only some of the classes, or in another order, is compared by names
printf '1,0,0,bird\n0,1,0,cat\n0,0,1,dog\n' >three.csv
sed 1d three.csv >two.csv
sed 's/bird/fish/' three.csv >fish.csv
sed 's/bird/3/; s/cat/4/; s/dog/5/' three.csv >numbers.csv
check 0 '' train 'Sequential(Linear(3, 3))' --data "CSV('three.csv')" --optim 'SGD(lr=1.0)' \
    --epochs 40 --out pets
pets=pets/model.safetensors
check 0 '^accuracy +1\.0000 \(3 of 3\)' eval $pets --data "CSV('three.csv')"
check 0 '^accuracy +1\.0000 \(2 of 2\)' eval $pets --data "CSV('two.csv')"
also '^bird +0 +0 ' '^dog +1 +1 '
check 0 '^accuracy +1\.0000 \(3 of 3\)' eval $pets --batch-size 3 \
    --data "CSV('three.csv', classes=['dog', 'cat', 'bird'])"
check 1 'no class "fish"; expected .* 3 \(bird, cat, dog\); .* 3 \(cat, dog, fish\)' \
    eval $pets --data "CSV('fish.csv')"
check 0 '^accuracy +100\.00 %, before 100\.00 %, of 2' quantize $pets --scheme int8_dynamic \
    --data "CSV('two.csv')" --out int8.safetensors

# what does not fit
check 1 '--data: given 2 times; expected one dataset' eval $pets --data "CSV('two.csv')" \
    --data "CSV('three.csv')"
(echo a,b,c,label && cat two.csv) >table.csv
check 1 'entry 0: it is a row of a table; expected a --transform' eval $pets \
    --data "Table('table.csv', label='label')"
: >empty.safetensors
check 1 'empty\.safetensors: too short for a safetensors file' eval empty.safetensors \
    --data "$test_data"
check 2 '--data is missing' eval "$net"
check 2 '--batch-size: wrong value, got "0"' eval "$net" --data "$test_data" --batch-size 0
check 1 'input float32 \[1, 1, 8, 8\]: in Sequential, module "b" \(Linear\)' \
    eval 'Sequential(a=Flatten(), b=Linear(63, 10))' --data "$test_data"
check 1 '--device nowhere: not present; the devices are .*cpu:0' \
    eval "$net" --data "$test_data" --device nowhere
check 1 'meta:0 has no memory' eval "$net" --data "$test_data" --device meta
check 1 '--topk: too large, got 11' eval "$net" --data "$test_data" --topk 11
check 1 '--confusion: results are no scores of classes' eval "$files/line.safetensors" \
    --data "$line" --confusion
printf 'abcdefgh' >text
check 1 '--worst: samples with several classes each, got results .* with targets .*; expected' \
    eval 'Embedding(256, 256)' --data 'TextBytes("text", length=3)' --worst 1
check 0 '^accuracy' eval 'Embedding(256, 256)' --data 'TextBytes("text", length=3)'
check 1 '--loss: ' eval "$net" --data "$test_data" --loss 'Nowhere()'
check 1 '--loss: wrong result, got float32 \[2\]' eval "$net" --data "$test_data" \
    --batch-size 2 --loss 'CrossEntropyLoss(reduction="none")'
check 1 'no default for results' eval 'Flatten(0)' --data "$test_data"
check 1 'the last entry of a sample is no target' eval "$net" --data "CSVRows('$files/line.csv')"
check 1 'target: wrong shape' eval 'Linear(2, 3)' --data "$line"
check 1 '"code": "TN_ERR_' eval "$net" --data "$test_data" --device nowhere --json
if test -e /dev/full; then
    "$tenon" eval "$files/digits.safetensors" --data "$test_data" >/dev/full 2>err </dev/null
    test $? -eq 1 && grep -q 'standard output cannot be written' err || complain 'a full disk'
fi
exit $bad
