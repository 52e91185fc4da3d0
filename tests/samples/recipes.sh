#!/bin/sh
# SPDX-License-Identifier: MIT
#
#   recipes.sh ROOT
#
# The recipes (examples/recipes, docs/guides/recipes) with the copy of Tenon that is installed in
# ROOT, and pkg-config: each is compiled by the plain compiler, runs, and says what its page says.
# tests/house/outside.sh installs and calls this; samples.sh compares the pages with the programs.
root=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
files=$abs_srcdir/tests/samples/files
recipes=$abs_srcdir/examples/recipes
status=0
fail() {
    echo "FAILED: $1"
    test ! -s "$work/log" || tail -n 30 "$work/log" | sed 's/^/    /'
    status=1
}
pc=$(find "$root" -name tenon.pc)
tenon=$(find "$root" -name tenon -path '*/bin/*')
test -n "$pc" && test -n "$tenon" || { fail "no tenon is installed in $root"; exit 1; }
PKG_CONFIG_PATH=$(dirname "$pc") PATH=$(dirname "$tenon"):$PATH
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
export PKG_CONFIG_PATH PATH LD_LIBRARY_PATH
tenon info safetensors >/dev/null 2>&1 || {
    echo "SKIP: the recipes save safetensors, which this build lacks"; exit 0; }
cd "$work" || exit 1
sanitize=
test "${TN_SANITIZERS-no}" = no || sanitize=$TN_SANITIZE

# built NAME COMPILER FLAG...: compiles examples/recipes/NAME.* with these
built() {
    name=$1
    shift
    # shellcheck disable=SC2046,SC2086
    "$@" -Wall -Wextra -Werror -o "$name" "$recipes/$name".c* \
        $(pkg-config --cflags --libs tenon) >log 2>&1 || { fail "$name does not compile"; false; }
}
# ran NAME COMMAND...: its output is NAME.out and has no error
ran() {
    name=$1
    shift
    "$@" >"$name.out" 2>log || { cat "$name.out" >>log; fail "$name does not run"; false; }
}
# says NAME LINE: the output has this line
says() {
    cp "$1.out" log
    grep -qFx -- "$2" "$1.out" || fail "$1 does not say: $2"
}
# falls NAME FIRST LAST FACTOR: the number after FIRST is more than FACTOR times that after LAST
falls() {
    cp "$1.out" log
    awk -v first="$2" -v last="$3" -v factor="$4" '
        index($0, first) == 1 { a = substr($0, length(first) + 1) + 0 }
        index($0, last) == 1 { b = substr($0, length(last) + 1) + 0 }
        END { exit !(a > 0 && b > 0 && a > factor * b) }' "$1.out" ||
        fail "$1: the loss does not fall from '$2' to '$3'"
}
# values FILE NAMES: the numbers of these tensors, one a line
values() {
    tenon inspect "$1" --values "$2" | awk '/^[^ ].* [a-z0-9]+\[.*\]$/ { on = 1; next }
        on { gsub(/[][,]/, " "); for (i = 1; i <= NF; i++) if ($i ~ /^[-+0-9.e]+$/) print $i }'
}
one_c() { built "$1" ${CC:-cc} $sanitize -pthread; }

# ---- a model of PyTorch, with the logits that PyTorch computed ----
if one_c printed_model && ran printed_model ./printed_model "$files/resnet.pth" \
    "$files/images.npy" logits.npy <"$files/resnet.txt"; then
    says printed_model 'class 4'
    values "$files/logits.npy" '*' >expected
    values logits.npy '*' >got
    paste expected got >log
    test "$(wc -l <expected)" -eq 10 && awk 'NF != 2 || ($1 - $2) ^ 2 > 1e-10 { bad = 1 }
        END { exit bad }' log || fail "printed_model: the logits are not those of PyTorch"
fi

# ---- fine-tuning: the head learns, the rest stays as PyTorch saved it ----
if one_c fine_tune && ran fine_tune ./fine_tune "$files/resnet.pth" tuned.safetensors \
    <"$files/resnet.txt"; then
    test "$(grep '^learns: ' fine_tune.out | tr '\n' ' ')" = 'learns: fc.weight learns: fc.bias ' ||
        fail "fine_tune trains other tensors than those of the head"
    falls fine_tune 'step   0  loss' 'step 100  loss' 1.5
    for tensor in conv1.weight layer4.0.conv2.weight layer4.0.bn2.running_mean bn1.running_var; do
        values "$files/resnet.pth" $tensor >expected
        values tuned.safetensors $tensor >got
        test -s expected && diff expected got >log || fail "fine_tune changed $tensor"
    done
    tenon inspect tuned.safetensors >log
    grep -q '^fc.weight  *float32  *\[3, 8\]' log || fail "fine_tune did not save the new head"
fi

# ---- threads ----
if one_c threads && ran threads ./threads; then
    says threads '4 threads: the same bits'
    says threads 'the others: the same bits'
    grep -q '^thread 2: in Sequential, module "0" (Linear): linear: ' threads.out ||
        fail "threads: the failure of thread 2 is not reported"
    test "$(grep -c '^thread ' threads.out)" -eq 1 || fail "threads: more threads failed"
fi

# ---- a module of the program ----
if one_c own_module && ran own_module ./own_module; then
    says own_module '  (gate): Gate('
    says own_module '    (skip): Linear(in_features=2, out_features=8, bias=True)'
    says own_module 'calls 50'
    falls own_module 'loss before ' 'loss after  ' 10
    awk '/^loss after / { same = $3 == $7 && $3 == $9 "," }
        END { exit !same }' own_module.out ||
        fail "own_module: the copy, or the loaded one, computes something else"
fi

# ---- the profile ----
if one_c profile && ran profile ./profile; then
    cp profile.out log
    for row in 'conv conv2d' 'act relu' 'pool adaptive_avg_pool2d' 'fc linear' '(outside) mean'; do
        awk -v row="$row" '$1 " " $2 == row && $3 == 10 && $4 > 0 { found = 1 }
            END { exit !found }' profile.out || fail "profile: no row of 10 calls: $row"
    done
    # conv2d is a call of convolution, so that the totals are more than the sum
    awk 'NR > 1 { sum += $6; total += $4; self += $5; if ($5 > $4 + 0.001) bad = 1 }
        END { exit bad || sum < 98 || sum > 102 || total < 1.05 * self }' profile.out ||
        fail "profile: the parts are not the whole"
fi

# ---- C++ ----
cxx=${CXX-}
for name in c++ g++ clang++; do
    test -n "$cxx" || ! command -v $name >/dev/null 2>&1 || cxx=$name
done
if test -n "$sanitize"; then
    echo "SKIP: handles.cpp: a C++ compiler may have other sanitizers than the library"
elif ! echo '#include <memory>' | $cxx -std=c++17 -x c++ -fsyntax-only - 2>/dev/null; then
    echo "SKIP: handles.cpp: no C++ compiler"
elif built handles $cxx -std=c++17 && ran handles ./handles; then
    falls handles 'loss before ' 'loss after  ' 10
    grep -q '^TN_ERR_RUNTIME: in Sequential, module "0" (Linear): linear: ' handles.out ||
        fail "handles: the exception has another message"
    values xor.safetensors 2.bias >got
    test "$(wc -l <got)" -eq 2 || fail "handles saved no xor.safetensors"
fi

# ---- Python, with the module as pip would install it ----
python=${PYTHON-python3}
library=$LD_LIBRARY_PATH/libtenon.so
sdk=$(find "$root" -name api.json)
if test -n "$sanitize" || test ! -f "$library"; then
    echo "SKIP: train.py: Python needs a shared libtenon without sanitizers"
elif ! "$python" -c 'import ctypes, sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    echo "SKIP: train.py: $python is not there, or older than 3.9"
else
    cp -r "$abs_srcdir/bindings/python/tenon" . && chmod -R u+w tenon &&
        "$python" "$abs_srcdir/bindings/python/generate.py" "$(dirname "$sdk")" tenon/_api.py ||
        fail "generate.py"
    rm -f xor.safetensors
    if ran train env TENON_LIBRARY="$library" PYTHONPATH="$work" PYTHONDONTWRITEBYTECODE=1 \
        "$python" "$recipes/train.py"; then
        falls train 'loss before ' 'loss after  ' 10
        says train '  (1): Scaled(8)'
        says train 'the same: True'
        says train 'classes: [0, 1, 1, 0]'
        grep -q '^TenonRuntimeError: in Sequential, module "0" (Linear): linear: ' train.out ||
            fail "train.py: the exception has another message"
        test -s xor.safetensors || fail "train.py saved nothing"
    fi
fi
exit $status
