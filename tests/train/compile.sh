#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon train --compile and --compile-step: the weights are those without, also of a run that
# continues.
tenon=${TENON-$abs_builddir/tools/tenon}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0
"$tenon" info safetensors >/dev/null 2>&1 || {
    echo "SKIP: this build lacks safetensors"; exit 77; }

# train OUT ARGUMENTS...
train() {
    out=$1
    shift
    "$tenon" train --out "$out" "$@" >log 2>&1 || { cat log; exit 1; }
}
net='Sequential(Flatten(), Linear(64, 32), BatchNorm1d(32), Dropout(0.2), Linear(32, 10))'
set -- --model "$net" \
    --data "Digits(split='train')" --val "Digits(split='test')" --optim 'Adam(lr=0.003)'
train plain "$@" --epochs 3
train whole "$@" --compile --epochs 3
train parts "$@" --compile --epochs 1
train parts --resume --epochs 3
train step "$@" --compile-step --epochs 1
train step --resume --epochs 3
for run in whole parts step; do
    cmp plain/model.safetensors $run/model.safetensors || { echo "$run differs"; bad=1; }
done
"$tenon" train --out refused "$@" --compile --amp --epochs 1 >log 2>&1 && bad=1
grep -q -e '--compile: calls in mixed precision have no plans' log || { cat log; bad=1; }
train clip "$@" --epochs 1 --clip-norm 0.1 --ema 0.9
train clip-step "$@" --epochs 1 --clip-norm 0.1 --ema 0.9 --compile-step
cmp clip/model.safetensors clip-step/model.safetensors || bad=1
# refuse TEXT ARGUMENTS...
refuse() {
    text=$1
    shift
    "$tenon" train --out refused --epochs 1 --compile-step "$@" >log 2>&1 && bad=1
    grep -q -e "$text" log || { cat log; bad=1; }
}
refuse '--compile-step: a step has one batch, got --accumulate 2' "$@" --accumulate 2
refuse '--compile-step: tn_step_new: optimizer LBFGS: it evaluates the loss itself' "$@" \
    --optim 'LBFGS()'
exit $bad
