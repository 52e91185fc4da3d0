#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The same command trains on every device present, and no operator may run on another one
# (TENON_FALLBACK=error): the losses of the epochs are near those of the cpu, and the weights work
# there and here.
set -u
tenon=$abs_builddir/tools/tenon
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset TENON_DEVICE
"$tenon" info safetensors >/dev/null 2>&1 || {
    echo "SKIP: this build lacks safetensors"; exit 77; }
TENON_FALLBACK=error
export TENON_FALLBACK
bad=0
devices=$("$tenon" devices | awk '$1 ~ /^[a-z][a-z0-9_]*:[0-9]+$/ && $1 !~ /^meta:/ { print $1 }')
# losses FOLDER: those of the validations
losses() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "loss/validation") at = i; next }
        $at != "" { print $at }' "$1/metrics.csv"
}
for device in cpu:0 $devices; do
    folder=$(echo "$device" | tr ':' '-')
    test -d "$folder" && continue
    "$tenon" train --device "$device" --out "$folder" --epochs 2 --max-steps 40 --seed 3 \
        --model 'Sequential(Conv2d(1, 8, 3, padding=1), BatchNorm2d(8), ReLU(), MaxPool2d(2),
                 Flatten(), Linear(128, 10))' \
        --data "Digits(split='train')" --val "Digits(split='test')" \
        --augment 'RandomCrop(8, padding=1)' --optim 'AdamW(lr=0.003)' \
        --schedule 'CosineAnnealingLR(T_max=2)' --ema 0.9 --clip-norm 5 >log 2>&1 || {
        echo "$device:"; cat log; bad=1; continue; }
    losses "$folder" >losses
    test -s losses || { echo "$device: no losses"; bad=1; }
    losses cpu-0 | paste losses - | awk -v device="$device" '
        { gap = $1 - $2; if (gap < 0) gap = -gap
          if (NF != 2 || gap > 2e-3 * $2) {
              print device ": loss " $1 ", on the cpu " $2
              bad = 1
          } }
        END { exit bad }' || bad=1
    for place in "$device" cpu:0; do
        "$tenon" eval "$folder/model.safetensors" --data "Digits(split='test')" --device "$place" \
            --batch-size 64 >log 2>&1 || { echo "eval on $place:"; cat log; bad=1; }
    done
    echo "$device: trains"
done
exit $bad
