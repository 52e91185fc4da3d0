#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon train --amp: it learns, computes otherwise than without, and continues to the bit.
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
set -- --model 'Sequential(Flatten(), Linear(64, 64), ReLU(), Linear(64, 10))' \
    --data "Digits(split='train')" --val "Digits(split='test')" --optim 'Adam(lr=0.003)'
train whole "$@" --amp --epochs 6
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "accuracy/validation") column = i; next }
    column && $column != "" { last = $column }
    END { print "accuracy", last; exit !(last > 0.93) }' whole/metrics.csv || bad=1
train parts "$@" --amp --epochs 2
train parts --resume --epochs 6
train plain "$@" --epochs 6
cmp whole/model.safetensors parts/model.safetensors || { echo "resumed, it differs"; bad=1; }
cmp -s whole/model.safetensors plain/model.safetensors &&
    { echo "with --amp the weights are those without"; bad=1; }
exit $bad
