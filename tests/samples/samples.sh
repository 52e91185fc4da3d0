#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The samples have one source: the README shows examples/xor.c and examples/swish.c word for word,
# the pages of docs/guides/recipes the programs of examples/recipes, and the ones built here run.
# (That they compile against installed headers alone is tests/house/outside.sh.) The demo reaches
# its accuracy on the cpu, draws, saves and says what is wrong.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0
fail() {
    echo "FAILED: $1"
    test ! -s "$work/log" || tail -n 20 "$work/log" | sed 's/^/    /'
    status=1
}
run() { "$abs_builddir/run" "$abs_builddir/examples/$@"; }
expect() { # CODE WORDS COMMAND...
    code=$1 words=$2
    shift 2
    result=0
    (cd "$work" && run "$@") >"$work/log" 2>&1 || result=$?
    test $result -eq "$code" || fail "$*: ended with $result, not $code"
    grep -qF -- "$words" "$work/log" || fail "$*: does not say '$words'"
}

# ---- one place ----
# sample NAME PAGE: the block of code that follows `<!-- sample: NAME -->`
sample() {
    awk -v mark="<!-- sample: $1 -->" '$0 == mark { on = 1; next }
        on && /^```[a-z]/ { copy = 1; next } copy && /^```/ { exit } copy' "$2"
}
sample program "$abs_srcdir/README.md" >"$work/program.c"
sample plugin "$abs_srcdir/README.md" >"$work/plugin.c"
diff "$work/program.c" "$abs_srcdir/examples/xor.c" >"$work/log" ||
    fail "the program of the README is not examples/xor.c"
diff "$work/plugin.c" "$abs_srcdir/examples/swish.c" >"$work/log" ||
    fail "the plugin of the README is not examples/swish.c"
sample printed "$abs_srcdir/README.md" >"$work/printed"
awk '/^\/\* The forward of the class BasicBlock/ { on = 1 } /^\/\* Prints the class/ { exit } on' \
    "$abs_srcdir/examples/recipes/printed_model.c" | sed '$d' >"$work/functions"
test -s "$work/functions" && diff "$work/printed" "$work/functions" >"$work/log" ||
    fail "the functions of the README are not those of examples/recipes/printed_model.c"

for path in "$abs_srcdir"/examples/recipes/*.*; do
    name=$(basename "$path")
    page=$(grep -lFx "<!-- sample: $name -->" "$abs_srcdir"/docs/guides/recipes/*.md)
    test -f "$page" || { : >"$work/log"; fail "not one page shows $name: $page"; continue; }
    sample "$name" "$page" >"$work/shown"
    diff "$work/shown" "$path" >"$work/log" || fail "the program of $page is not $path"
done

sample rules.c "$abs_srcdir/docs/guides/from-pytorch.md" >"$work/rules.c"
diff "$work/rules.c" "$abs_srcdir/examples/rules.c" >"$work/log" ||
    fail "the plugin of docs/guides/from-pytorch.md is not examples/rules.c"

# ---- the program ----
formats=yes
"$abs_builddir/run" tenon info safetensors >/dev/null 2>&1 || formats=no
if test $formats = yes; then
    expect 0 '400  0.0' xor
    test -s "$work/xor.safetensors" || fail "xor saved nothing"
else
    expect 1 'xor.safetensors: no format has this extension' xor
fi

# ---- ResNet-18: what it needs PyTorch for is `make interchange` ----
expect 2 'usage: resnet18' resnet18
expect 1 'none.pth: cannot open' resnet18 none.pth none.npy
grep -q '(0): BasicBlock($' "$work/log" &&
    grep -q '(fc): Linear(in_features=512, out_features=1000, bias=True)$' "$work/log" ||
    fail "resnet18 does not print itself"

# ---- the same from printed text ----
run resnet18 none.pth none.npy >"$work/resnet18.txt" 2>/dev/null
exec <"$work/resnet18.txt"
expect 1 'none.pth: cannot open' recipes/printed_model none.pth none.npy
exec </dev/null
expect 2 'usage: printed_model' recipes/printed_model
expect 2 'usage: printed_model' recipes/printed_model none.pth none.npy

# ---- the demo ----
data=$abs_srcdir/examples/data/digits.csv.gz
gzip -dc "$data" >"$work/digits.csv" || fail "gzip"
expect 0 'usage: digits' digits --help
expect 0 '1437 images for training, 360 for testing' digits --epochs 6 digits.csv cpu
grep -q 'epoch *6/6 *loss 0\.[01]' "$work/log" || fail "the demo does not learn"
grep -q 'training loss on cpu:0' "$work/log" || fail "the demo draws no curve"
grep -q ' $' "$work/log" && fail "the demo draws blanks at the ends of lines"
test $formats = no ||
    grep -q 'saved digits-cpu-0.safetensors; loaded into a new network, accuracy 0\.9' \
    "$work/log" ||
    fail "the demo does not save"
grep -q '</svg>' "$work/digits-loss.svg" &&
    test "$(grep -c '<polyline' "$work/digits-loss.svg")" -eq 2 || fail "digits-loss.svg"
expect 0 'SGD(lr=0.05, momentum=0.9)' digits --epochs 6 --optimizer 'SGD(lr=0.05, momentum=0.9)' \
    digits.csv cpu
expect 1 'is not above 0.95' digits --epochs 1 --optimizer 'SGD(lr=0.001)' digits.csv cpu
expect 1 'nosuch' digits digits.csv nosuch
expect 1 'No such file' digits none.csv cpu
expect 1 'Linaer' digits --net 'Linaer(64, 10)' digits.csv cpu
expect 2 'digits --help' digits
expect 2 '--epochs' digits --epochs x digits.csv
printf '1,2,3\n' >"$work/short.csv"
expect 1 'short.csv, line 1: malformed' digits short.csv cpu
exit $status
