#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon train and tenon eval with a model of texts: the results [N, L, C] are the scores of targets
# [N, L]. Without training the loss is near that of equal chances, log 256.
set -u
tenon=$abs_builddir/tools/tenon
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset TENON_DEVICE
"$tenon" info safetensors >/dev/null 2>&1 || {
    echo "SKIP: this build lacks safetensors"; exit 77; }
bad=0
net='gpt2_small(vocab_size=256, n_positions=16, n_embd=32, n_layer=1, n_head=2, dropout=0.0)'
cp "$abs_srcdir/LICENSE" text
data="TextBytes('text', 16, stride=4)"

# loss LOW HIGH: the loss that eval prints is between these numbers
loss() {
    awk -v low="$1" -v high="$2" '$1 == "loss" { found = $2 > low && $2 < high }
        END { exit !found }' log || { echo "not between $1 and $2:"; cat log; bad=1; }
}
"$tenon" eval "$net" --data "$data" --batch-size 8 >log 2>&1 || bad=1
loss 5.45 5.65
grep -q '^accuracy' log || { echo "no accuracy of characters"; cat log; bad=1; }
for model in "$net" 'lstm_lm(256, embedding_dim=32, hidden_size=32, num_layers=1, dropout=0.0)'; do
    rm -rf run
    "$tenon" train --model "$model" --data "$data" --val-split 0.1 --optim 'Adam(lr=0.01)' \
        --epochs 20 --batch-size 16 --clip-norm 1 --out run >log 2>&1 || { cat log; bad=1; }
    # a sample has no class, so the best epoch is that of the least loss
    awk -F, 'NR == FNR && FNR == 1 { for (i = 1; i <= NF; i++) if ($i == "loss/validation") at = i }
        NR == FNR && FNR > 1 && $at != "" && (least == "" || $at < least) { least = $at }
        NR != FNR && /^best: epoch [0-9]+, val_loss / {
            sub(/.* /, ""); gap = $0 - least; found = 1 }
        END { exit !(found && gap < 0.001 && gap > -0.001) }' run/metrics.csv log &&
        ! grep -q accuracy log run/metrics.csv || {
        echo "an accuracy, or another best loss"; cat log; bad=1; }
    "$tenon" eval run/model.safetensors --data "$data" --batch-size 8 >log 2>&1 || bad=1
    loss 0.1 2.5
done
exit $bad
