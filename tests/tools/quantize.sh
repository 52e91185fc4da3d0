#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon quantize: the table, accuracy, --max-loss; what it writes is a model for the other commands,
# with the same bits in another process; errors.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
model=$files/digits.safetensors
digits="Digits(split='test')"

# dynamic: the table, and the comparison with the float model
check 0 '^MODULE +TYPE +SQNR dB +COSINE +SIZE +AFTER +TIME +AFTER +RESULT$' quantize "$model" \
    --scheme int8_dynamic --data "$digits" --batch-size 32 --out small.safetensors
also '^1 +Linear +4[0-9]\.[0-9] +0\.9999[0-9] +2\.5 KiB +720 B .* quantized$' \
    '^modules +1 of 1 quantized$' '^results +SQNR 4[0-9]\.[0-9] dB, cosine 0\.9999' \
    '^accuracy +8[5-6]\.[0-9]+ %, before 85\.79 %, of 359$' '^size +720 B, before 2\.5 KiB' \
    '^time +.* per batch, before ' '^written +small\.safetensors$'

# the file is a model for every command, and the metadata of the float model stays
check 0 '^1\.weight +int8 +\[10, 64\] +640 B$' inspect small.safetensors
also '^1\.weight_scale +float32 +\[10\]' '^tenon\.classes' "QuantizedLinear"
check 0 'QuantizedLinear +\[1, 10\] +' summary small.safetensors --input 1,1,8,8
check 0 '"runs": ' bench small.safetensors --input 1,1,8,8 --repeat 3 --json
check 0 '^accuracy +0\.8[56]' eval small.safetensors --data "$digits"
check 0 '"name": "vier"' predict small.safetensors "$files/digits.npy" --json --top 3
"$tenon" predict small.safetensors "$files/digits.npy" --raw --output first.npy >out 2>err
"$tenon" predict small.safetensors "$files/digits.npy" --raw --output second.npy >out 2>err
cmp first.npy second.npy || complain 'two processes give other bits'
check 0 '"written": true' quantize "$model" --scheme int8_dynamic --out again.safetensors --json
cmp small.safetensors again.safetensors || complain 'the same command writes other bytes'
check 0 '^script +|^written +net\.script$' script small.safetensors --input 1,1,8,8 --eval \
    --out net.script
"$tenon" predict net.script "$files/digits.npy" --raw --output third.npy >out 2>err
cmp first.npy third.npy || complain 'a script of the quantized model gives other bits'

# the other schemes
check 0 '"becomes": "QuantizedLinear"' quantize "$model" --scheme int8_static --data "$digits" \
    --batch-size 64 --batches 3 --out static.safetensors --json
also '"accuracy_before": 0\.857' '"accuracy_after": 0\.8[56]' '"quantized": 1'
check 0 '^1\.input_zero_point +uint8 ' inspect static.safetensors
check 0 '^accuracy +0\.8[56]' eval static.safetensors --data "$digits"
check 0 '^1 +Linear .* quantized$' quantize "$model" --scheme 'int4_weight(group=16)' \
    --out four.safetensors
check 0 '^1\.weight +uint8 +\[10, 32\]' inspect four.safetensors
check 0 '^accuracy +0\.8' eval four.safetensors --data "$digits"
check 0 'stays in float: SQNR below 99\.0 dB' quantize "$model" --scheme 'int8_dynamic(limit=99)' \
    --out same.safetensors
also '^modules +0 of 1 quantized$'

# networks: fusion, paths that are skipped, an example of the input in place of data
net='Sequential(conv=Conv2d(1, 4, 3), bn=BatchNorm2d(4), act=ReLU(), flat=Flatten(),
    mid=Linear(144, 16), head=Linear(16, 10))'
check 0 '^conv\.0 +Conv2d .* quantized$' quantize "$net" --fuse 'conv, bn, act' \
    --scheme 'int8_dynamic(skip=[head])' --input 4,1,8,8 --out net.safetensors
also '^modules +2 of 2 quantized$' '^results +SQNR [34][0-9]'
check 0 '^head\.weight +float32' inspect net.safetensors
also '^conv\.0\.weight +int8 +\[4, 1, 3, 3\]'
check 0 '^accuracy' eval net.safetensors --data "$digits"

# a loss of accuracy: columns without noise in the weight make four bits wrong
check 3 '^not written: [0-9.]+ points of accuracy are lost, more than --max-loss -99$' quantize \
    "$model" --scheme int8_dynamic --data "$digits" --max-loss -99 --out lost.safetensors
test ! -e lost.safetensors || complain 'a file in spite of --max-loss'
check 3 '"written": false' quantize "$model" --scheme int8_dynamic --data "$digits" \
    --max-loss -99 --out lost.safetensors --json
check 0 '^written' quantize "$model" --scheme int8_dynamic --data "$digits" --max-loss 0.5 \
    --out kept.safetensors

# a network without elements: no size to divide by
check 0 '^size +0 B, before 0 B \(-\)$' quantize 'Sequential(Linear(4, 0, bias=False))' \
    --scheme int8_dynamic --out empty.safetensors

# wrong usage
check 2 '\-\-scheme is missing' quantize "$model" --out x.safetensors
check 2 '\-\-out is missing' quantize "$model" --scheme int8_dynamic
check 2 '\-\-max-loss: wrong value, got "much"' quantize "$model" --scheme int8_dynamic \
    --max-loss much --out x.safetensors
check 1 'no plugin provides a layer "int9"' quantize "$model" --scheme int9 --out x.safetensors
check 1 'Linear is no scheme' quantize "$model" --scheme 'Linear(2, 2)' --out x.safetensors
check 1 '\-\-data: missing; expected a dataset, because the scheme needs calibration' quantize \
    "$model" --scheme int8_static --out x.safetensors
check 1 'no module of the model fits int8_dynamic' quantize 'Sequential(ReLU())' \
    --scheme int8_dynamic --out x.safetensors --json
also '"code": "TN_ERR_VALUE"'
check 1 '\-\-max-loss: the accuracy is not known' quantize "$model" --scheme int8_dynamic \
    --max-loss 1 --out x.safetensors
check 1 'Cannot fuse modules: Flatten, Linear' quantize "$model" --scheme int8_dynamic \
    --fuse '0, 1' --out x.safetensors
check 1 'the format npz has no metadata for the spec' quantize "$model" --scheme int8_dynamic \
    --out x.npz
check 1 'no/such/folder' quantize "$model" --scheme int8_dynamic \
    --out no/such/folder/x.safetensors
test ! -e x.safetensors || complain 'a file after a failure'
exit $bad
