#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `./bootstrap demo` runs this script (through ./run): `tenon train` trains a small convolutional
# network on the bundled digits, on every device found or on the devices that the arguments name.
# 1,438 of the 1,797 digits are for training, every fifth one is held out. The files go to
# examples/demo in the build tree: for each device a folder with weights, checkpoints and
# report.html, whose curves are the picture of the training.
set -eu
wanted=0.985
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$here/demo"
cd "$here/demo"

if test $# -eq 0; then
    # shellcheck disable=SC2046
    set -- $(tenon devices | awk '$1 ~ /^[a-z][a-z0-9_]*:[0-9]+$/ && $1 !~ /^meta:/ { print $1 }')
fi
if test $# -eq 0; then
    echo "demo: no device was found; \`tenon devices\` prints the reasons" >&2
    exit 1
fi
# No operator may run on another device than the one that is named.
TENON_FALLBACK=${TENON_FALLBACK-error}
export TENON_FALLBACK
status=0
for device; do
    folder=$(echo "$device" | tr ':' '-')
    rm -rf "./$folder"
    tenon train --device "$device" --out "$folder" \
        --model 'Sequential(Conv2d(1, 64, 4, padding=1), ReLU(), Flatten(), Linear(3136, 128),
                 ReLU(), Linear(128, 10))' \
        --data "Digits(split='train')" --val "Digits(split='test')" \
        --augment 'RandomCrop(8, padding=1)' \
        --optim 'AdamW(lr=0.008)' --schedule 'CosineAnnealingLR(T_max=16)' --ema 0.95 \
        --epochs 16 --batch-size 32 | tee "$folder.log" || true
    awk -v device="$device" -v wanted=$wanted '
        /^best: / { for (i = 1; i < NF; i++) if ($i == "val_accuracy") accuracy = $(i + 1) }
        /^report: / { done = 1 }
        END {
            if (!done) exit 1
            printf "%s: accuracy on the held-out digits %.4f, in the best epoch\n", device, accuracy
            if (accuracy <= wanted) {
                printf "demo: %s: the accuracy is not above %s\n", device, wanted
                exit 1
            }
        }' "$folder.log" || status=1
    echo "the report is $here/demo/$folder/report.html"
    echo "the weights of the best epoch are $here/demo/$folder/best.safetensors"
    echo
done
exit $status
