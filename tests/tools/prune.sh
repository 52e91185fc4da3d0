#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon prune: entries and channels; what it writes is a model for the other commands, with the same
# results; errors.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
model=$files/digits.safetensors

# entries: half of the weights, none of the biases; the metadata stays
check 0 '^tensors +1 pruned$' prune "$model" --amount 0.5 --out half.safetensors
also '^parameters +650, before 650; 49\.2 % are 0$' '^written +half\.safetensors$'
check 0 '^1\.weight +float32 +\[10, 64\]' inspect half.safetensors
check 0 '"name": "vier"' predict half.safetensors "$files/digits.npy" --json --top 3
check 0 '"zeros": 320' prune "$model" --amount 320 --out half.safetensors --json
also '"tensors": 1' '"parameters_after": 650'
check 0 '"zeros": 162' prune "$model" --method 'L1Unstructured(amount=0.25), Identity' \
    --tensors '*.weight 1.bias' --out some.safetensors --json
also '"tensors": 2'
check 0 '"zeros": 64' prune "$model" --method 'LnStructured(amount=1, n=2, dim=0)' --out \
    row.safetensors --json
check 0 '"zeros": 100' prune "$model" --global --amount 100 --tensors '*' --out some.safetensors \
    --json
check 0 '"zeros": 0' prune "$model" --method Identity --out copy.safetensors --json
check 0 '' predict "$model" "$files/digits.npy" --json --top 3
sed 's/"model": *"[^"]*"//' out >wanted
check 0 '' predict copy.safetensors "$files/digits.npy" --json --top 3
sed 's/"model": *"[^"]*"//' out >got
cmp wanted got || complain 'Identity changed the model'

# channels: first the rows 0 of a layer, then the same without them
net='Sequential(Linear(6, 8), Tanh(), Linear(8, 3))'
printf '1,2,3,4,5,6\n0.5,-1,2,0.25,-3,1\n0,0,0,0,0,0\n' >rows.csv
check 0 '"zeros": 24' prune "$net" --method 'LnStructured(amount=4, n=2, dim=0)' \
    --tensors '0.weight' --out a.safetensors --json
check 0 '' prune a.safetensors --method 'L1Unstructured(amount=1.0)' --tensors '0.bias' \
    --out b.safetensors --json
check 0 '^channels +4 of 11 removed; 0 masked ones stay$' prune b.safetensors --compact \
    --input 1,6 --out small.safetensors
also '^parameters +43, before 83;'
check 0 '^0\.weight +float32 +\[4, 6\]' inspect small.safetensors
also '^2\.weight +float32 +\[3, 4\]' 'out_features=4'
"$tenon" predict b.safetensors rows.csv --output wanted.csv >out 2>err || complain 'predict b'
"$tenon" predict small.safetensors rows.csv --output got.csv >out 2>err || complain 'predict small'
"$PERL" -e 'open A, "wanted.csv"; open B, "got.csv"; my $n = 0;
    while (defined(my $a = <A>)) { my $b = <B>; my @a = split /,/, $a; my @b = split /,/, $b;
        for (1 .. $#a) { next if $a[$_] !~ /[0-9]\./; $n++;
            exit 1 if abs($a[$_] - $b[$_]) > 1e-5 } }
    exit($n == 9 ? 0 : 1)' || { cat wanted.csv got.csv; complain 'results without the channels'; }
# it can be pruned, and compacted, again
check 0 '^channels +2 of 7 removed' prune small.safetensors --compact --amount 0.5 --input 1,6 \
    --out smaller.safetensors
check 0 '^parameters +23, before 43' prune small.safetensors --compact --input 1,6 --out \
    smaller.safetensors --method 'RandomStructured(amount=2, dim=0)'

# a model of a plugin: its spec has the new sizes
if "$tenon" info resnet18 >/dev/null 2>&1; then
    check 0 '"channels_removed": 300' prune 'resnet18(num_classes=10, width=8)' --compact \
        --amount 0.5 --input 1,3,32,32 --out net.safetensors --json
    also '"channels_before": 610' '"parameters_after": 45102'
    check 0 '^conv1\.weight +float32 +\[4, 3, 7, 7\]' inspect net.safetensors
    check 0 "flatten : float32\[2, 32\]" graph net.safetensors \
        --input 2,3,64,64
    # 7212, and those few of the random weights that are 0 from the start
    check 0 '"zeros": 721[2-4]' prune net.safetensors --amount 0.5 \
        --tensors 'layer4.*.conv1.weight' --out again.safetensors --json
    # it gets a new head, although its options would make all channels; also after another pruning
    check 0 '"channels_removed": ' prune 'resnet18(num_classes=7, in_channels=1, stem="small",
        width=8)' --compact --amount 0.5 --input 1,1,8,8 --out few.safetensors --json
    check 0 '^head: fc$' finetune few.safetensors --data "Digits(split='test')" --batch-size 64 \
        --max-steps 2 --out tuned
    check 0 '^fc\.weight +float32 +\[10, 32\]' inspect tuned
    also '^layer1\.0\.conv1\.weight +float32 +\[4, 4, 3, 3\]'
    check 0 '^accuracy' eval tuned --data "Digits(split='test')" --batch-size 64
    check 0 '^channels +' prune tuned --compact --amount 0.5 --input 1,1,8,8 --out fewer.safetensors
    check 0 '^head: fc$' finetune fewer.safetensors --data "Digits(split='test')" \
        --batch-size 64 --max-steps 1 --out tuned2 --unfreeze '*'
    check 0 '^fc\.weight +float32 +\[10, 16\]' inspect tuned2
    # a head that is not there, or is no head, is an error, also if everything learns
    check 0 '' prune 'resnet18(num_classes=10, width=8)' --method Identity --out whole.safetensors
    for model in few.safetensors whole.safetensors; do
        check 1 '--head: resnet18 has no attribute `fcc` .*children: conv1, .*fc' finetune $model \
            --data "Digits(split='test')" --head fcc --unfreeze '*' --out none
        check 1 '--head: module "bn1" \(BatchNorm2d\) has no option for the number of classes' \
            finetune $model --data "Digits(split='test')" --head bn1 --unfreeze '*' --out none
    done
    check 1 '--head: module "layer4.0.conv1" \(Conv2d\) is not the one to which num_classes of' \
        finetune whole.safetensors --data "Digits(split='test')" --head layer4.0.conv1 \
        --unfreeze '*' --out none
fi

# what is not known
check 0 '' prune 'Sequential(Linear(6, 8), LayerNorm(8), Linear(8, 3))' --out c.safetensors \
    --tensors '0.*' --method 'L1Unstructured(amount=1.0)'
check 1 'channel 0 cannot be removed, because "1" \(LayerNorm\) uses it' prune c.safetensors \
    --compact --input 1,6 --out d.safetensors
test ! -e d.safetensors || complain 'a file after a failure'
check 0 '^channels +0 of 11 removed; 8 masked ones stay$' prune c.safetensors --compact --loose \
    --input 1,6 --out d.safetensors

# wrong usage
check 2 'too few arguments; expected MODEL --out FILE' prune
check 2 '\-\-out is missing' prune "$model" --amount 0.5
check 2 'amount or --method is missing' prune "$model" --out x.safetensors
check 2 'exclude each other' prune "$model" --amount 1 --method Identity --out x.safetensors
check 2 '--amount: wrong value, got "half"' prune "$model" --amount half --out x.safetensors
check 2 '\-\-compact needs --input' prune "$model" --compact --out x.safetensors
check 2 'not for --compact' prune "$model" --compact --input 1,8,8 --global --out x.safetensors
check 2 'are for --compact' prune "$model" --amount 1 --input 1,8,8 --out x.safetensors
check 2 'are for --compact' prune "$model" --amount 1 --loose --out x.safetensors
check 1 'L1Unstructured: amount: out of range, got 1\.5' prune "$model" --amount 1.5 \
    --out x.safetensors
check 1 'no plugin provides a pruning method "Magic"' prune "$model" --method Magic \
    --out x.safetensors --json
also '"code": "TN_ERR_KEY"'
check 1 'no parameter to prune, got "nothing\.\*"' prune "$model" --amount 1 --tensors 'nothing.*' \
    --out x.safetensors
check 1 'not a shape, got "1,a"' prune "$model" --compact --input 1,a --out x.safetensors
check 1 'calling the network with the example' prune "$model" --compact --amount 0.5 --input 1,9 \
    --out x.safetensors
check 1 'absent\.safetensors' prune absent.safetensors --amount 1 --out x.safetensors
if "$tenon" info npz >/dev/null 2>&1; then
    check 1 'the format npz has no metadata for the spec' prune "$model" --amount 1 --out x.npz
fi
check 1 'no/such/folder' prune "$model" --amount 1 --out no/such/folder/x.safetensors
test ! -e x.safetensors || complain 'a file after a failure'
# the model that is read is not overwritten, by whatever path
cp "$model" own.safetensors
ln -s own.safetensors link.safetensors
for out in own.safetensors ./own.safetensors link.safetensors; do
    check 1 'is the file that is read; expected another file' prune @own.safetensors --amount 0.5 \
        --out $out
done
check 1 'is the file that is read' prune 'Sequential(Flatten(), Linear(64, 10))' --amount 0.5 \
    --weights own.safetensors --out own.safetensors
check 1 'is the file that is read' quantize own.safetensors --scheme int8_dynamic \
    --out own.safetensors
cmp "$model" own.safetensors || complain 'the model was overwritten'
exit $bad
