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
        $(pkg-config --cflags --libs tenon) -lm >log 2>&1 ||
        { fail "$name does not compile"; false; }
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

# ---- hooks: 2 x, 2 (x + 1), 3 (x + 1), and the gradient of x ----
if one_c module_hooks && ran module_hooks ./module_hooks; then
    says module_hooks 'no hook   y [[2. 4. 6.]], gradient of x [[2. 2. 2.]], of the weight'
    says module_hooks 'input + 1 y [[4. 6. 8.]], gradient of x [[2. 2. 2.]], of the weight'
    says module_hooks 'residual  y [[ 6.  9. 12.]], gradient of x [[3. 3. 3.]], of the weight'
    says module_hooks '42        y [[ 6.  9. 12.]], gradient of x [[42. 42. 42.]], of the weight'
    says module_hooks 'removed   y [[2. 4. 6.]], gradient of x [[2. 2. 2.]], of the weight'
    test "$(grep -c '\[2. 3. 4.\]' module_hooks.out)" -eq 9 ||
        fail "module_hooks: the gradient of the weight is wrong"
fi

# ---- a function with a gradient of its own ----
if one_c own_function && ran own_function ./own_function; then
    says own_function 'the gradients are right'
    falls own_function 'step    0  loss' 'step 1500  loss' 10
    # the coefficients at the end of PyTorch's tutorial
    awk '/^y = / { found = $5 < -2.1 && $5 > -2.3 && $8 > 0.24 && $8 < 0.27 }
        END { exit !found }' own_function.out || fail "own_function: the sine is not fitted"
fi

# ---- averaged models ----
if one_c averages && ran averages ./averages; then
    falls averages 'epoch 0  rate 0.1000  loss' 'epoch 7  rate 0.0500  loss' 5
    says averages 'updates: 360 and 3'
    awk '/^accuracy / { found = $2 > 0.93 && $6 > 0.96 && $10 > 0.96 } END { exit !found }' \
        averages.out || fail "averages: the averages are not good"
    tenon inspect digits-swa.safetensors >log
    grep -q '^8.weight  *float32  *\[10, 512\]' log || fail "averages saved no network"
fi

# ---- a GPT of characters: a short run; in two minutes it writes words ----
text=$abs_srcdir/examples/data/alice.txt.gz
if one_c char_gpt && ran char_gpt ./char_gpt "$text" 150; then
    awk '/^step  150  loss / { found = $4 < 2.6 } END { exit !found }' char_gpt.out ||
        fail "char_gpt does not learn"
    sed '/^step /d' char_gpt.out >written
    gzip -dc "$text" | fold -w 1 | sort -u >expected
    fold -w 1 written | sort -u >got
    comm -13 expected got >log
    test ! -s log || fail "char_gpt writes characters that the text does not have"
    test "$(wc -c <written)" -eq 501 || fail "char_gpt writes another number of characters"
    # about as many spaces and letters e as English has
    awk '{ n += length($0); e += gsub(/e/, "e"); b += gsub(/ /, " ") }
        END { exit !(e > n * 0.05 && e < n * 0.25 && b > n * 0.1 && b < n * 0.3) }' written ||
        fail "char_gpt writes no text"
fi

# ---- a U-Net, and pictures ----
if one_c denoise && ran denoise ./denoise 2; then
    awk '/^error with noise/ { found = $4 > 0.24 && $4 < 0.26 && $6 < 0.03 }
        END { exit !found }' denoise.out || fail "denoise leaves the noise"
    # the signature, and 342 x 104 pixels of 8 bits
    head -c 25 denoise.png | od -A n -t x1 -v | tr -d ' \n' >log
    test "$(cat log)" = 89504e470d0a1a0a0000000d49484452000001560000006808 ||
        fail "denoise wrote another picture"
    # the rows: noise that is cut off at black makes the second one brighter
    if tenon predict 'AdaptiveAvgPool2d((3, 1))' denoise.png --transform 'ToFloat()' \
        --output rows.npy 2>log; then
        values rows.npy '*' | head -n 3 | tr '\n' ' ' >log
        awk '{ exit !($2 > $1 + 0.03 && ($3 - $1) ^ 2 < 0.0004) }' log ||
            fail "denoise.png does not have the three rows"
    else
        grep -q 'was built without' log || fail "denoise.png cannot be read"
    fi
fi

# ---- an allocator and a log of the program ----
# Its standard error stays empty; a failure to load a plugin would be in the journal.
if one_c embedded && ran embedded ./embedded; then
    test ! -s log || fail "embedded: the library printed something"
    says embedded '100 rows: a result'
    grep -q '^1000000 rows: TN_ERR_MEMORY: out of memory on cpu' embedded.out ||
        fail "embedded: the limit does not hold"
    says embedded '100 calls later: no failure, 0 KiB more'
    says embedded '[journal 1] warning tenon: a message of the program, in the same log'
    says embedded 'peak: below the limit'
    says embedded 'after the end: below 4 MiB'
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
