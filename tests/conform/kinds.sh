#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A plugin of each kind goes through tenon check: optimizers, formats, graphs, an operator with
# options of every kind, a device that has memory only, functions that leave their thread changed.
# Plugins with an error must fail with a message; plugins without one must pass.
set -u
top=${srcdir:-.}
place=$(mktemp -d) || exit 99
trap 'rm -rf "$place"' EXIT
failed=0
fail() { echo "FAIL: $*"; failed=1; }
test "${TN_SANITIZERS-no}" = no || {
    echo "SKIP: kinds.sh: what sanitizers say is not what a plugin does"; exit 77; }

TENON_PLUGIN_PATH=$PWD/plugins/.libs
export TENON_PLUGIN_PATH
unset TENON_DEVICE TENON_PLUGIN_PATH_ADD TENON_CHECK
# The driver of OpenCL takes longer to start than the command runs here.
TENON_PLUGINS='!backend-opencl'
export TENON_PLUGINS
cases=$place/empty.txt
echo end >"$cases"

build() { # FILE NAME NUMBER
    $CC -I"$top/sdk/include" -Isdk/include -shared -fPIC -fvisibility=hidden -DWRONG="$3" \
        -o "$place/$2.so" "$top/tests/conform/$1.c" -lm || exit 99
}
check() { # ARGUMENT...
    tools/tenon check "$@" >"$place/out" 2>"$place/err"
    code=$?
    cat "$place/err" >>"$place/out"
}
# FILE NAME NUMBER TEST: the whole check, without a failure, and this test was not left out
passes() {
    build "$1" "$2" "$3"
    check "$place/$2.so" --cases "$cases"
    test $code -eq 0 || { fail "$2: exit status $code"; cat "$place/out"; }
    grep -q "^ok *$4 " "$place/out" || { fail "$2: no ok for $4"; cat "$place/out"; }
}
finds() { # FILE NAME NUMBER TEST WORDS
    build "$1" "$2" "$3"
    check "$place/$2.so" --only "$4" --cases "$cases" --seconds 60
    test $code -eq 1 || fail "$2: exit status $code"
    grep "^FAIL *$4 " "$place/out" | grep -qF -- "$5" || {
        fail "$2: \"$5\" is not in:"; cat "$place/out"; }
}

# optimizers
rule=optimizers/Descent
passes wrong_optimizer right RIGHT $rule
finds wrong_optimizer hides HIDES $rule \
    "when parameters, state and steps were saved and loaded half way"
finds wrong_optimizer shares SHARES $rule \
    "with another optimizer of its type in the process: parameter 0: values differ"
finds wrong_optimizer touches TOUCHES $rule "parameter 1: changed, although it has no gradient"
finds wrong_optimizer nothing NOTHING $rule "a step changed no parameter"
finds wrong_optimizer writes WRITES $rule "gradient of parameter 0: changed"
finds wrong_optimizer coarse COARSE $rule "float32 after 6 steps: parameter 0, element"
finds wrong_optimizer deaf DEAF $rule \
    "an optimizer built from its spec, after two steps: parameter 0: values differ"
finds wrong_optimizer forgets FORGETS $rule "its spec Descent("
finds wrong_optimizer opens OPENS $rule "Descent left a scope open"
finds wrong_optimizer modes MODES $rule "Descent left a gradient mode on"
finds wrong_optimizer nans NANS $rule "after a step"
cases=$place/rule.txt
printf '%s\n' 'optimizer Descent(lr=0.5, momentum=0.5)' 'parameter 1 2' 'gradient 1 -1' \
    'after 0.5 2.5' 'after -0.25 3.25' >"$cases"
passes wrong_optimizer right RIGHT $rule
finds wrong_optimizer otherwise OTHERWISE $rule \
    "step 1, element 0: wrong value, got 1.5; expected 0.5"
printf 'optimizer Descent(lr=0.5)\nparameter 1 2\ngradient 1 -1\nafter 0.5 words\n' >"$cases"
finds wrong_optimizer right RIGHT $rule "rule.txt:4: wrong numbers"
cases=$top/tests/conform/optimizers.txt
check plugins/.libs/optim.so --only 'optimizers/*' --cases "$cases"
test $code -eq 0 || { fail "our own optimizers: $code"; cat "$place/out"; }
grep -q '^15 passed, 0 failed, 0 skipped$' "$place/out" ||
    fail "our own optimizers: $(tail -n 1 "$place/out")"
cases=$place/empty.txt

# formats
toy=formats/toy
passes wrong_format right RIGHT $toy
finds wrong_format flattens FLATTENS $toy \
    "differs (bool of 1 dimensions) from what was written (bool of 2)"
finds wrong_format widens WIDENS $toy "differs (float32 of"
finds wrong_format empties EMPTIES $toy "entries: wrong number, got 3; expected 4"
finds wrong_format trusts TRUSTS $toy "signal 6"
finds wrong_format deaf DEAF $toy "read, and"
finds wrong_format mute MUTE $toy "save: returns TN_OK, but writing failed"
finds wrong_format wordless WORDLESS $toy "refused without a message"
finds wrong_format greedy GREEDY $toy "accepts an empty file as one of its files"
finds wrong_format textless TEXTLESS $toy \
    "flags: promise metadata, but \`note\` differs"
finds wrong_format refuses REFUSES $toy "refuses every state: "
finds wrong_format packs PACKS $toy "differs"
if test -f plugins/.libs/formats.so; then
    check plugins/.libs/formats.so --only 'formats/*' --cases "$cases"
    test $code -eq 0 || { fail "our own formats: $code"; cat "$place/out"; }
fi

# passes, compilers of regions, communicators
passes wrong_graph right RIGHT passes/twice
for test in compilers/relus comms/one; do
    grep -q "^ok *$test " "$place/out" || { fail "right: no ok for $test"; cat "$place/out"; }
done
finds wrong_graph other OTHER passes/twice "graph mul(relu(x + 2 w), x): result: element"
finds wrong_graph loses LOSES passes/twice "the pass fails: pass twice: it was here before"
finds wrong_graph strides STRIDES compilers/relus "graph sum(exp(relu(x^T + row))): result: element"
finds wrong_graph forgets FORGETS compilers/relus "wrong value, got"
finds wrong_graph past PAST compilers/relus "compiler relus wrote outside its outputs"
finds wrong_graph halves HALVES comms/one \
    "all_reduce of float32 in a group of one process: values differ"
finds wrong_graph lazy LAZY comms/one \
    "all_gather of float32 in a group of one process: values differ"
finds wrong_graph silent SILENT comms/one "all_reduce in a group of one process: fails: "

# datasets and transforms
passes wrong_data right RIGHT datasets/Counts
grep -q "^ok *transforms/Dims " "$place/out" || { fail "right: no ok for Dims"; cat "$place/out"; }
grep -q "^ok *transforms/Rows " "$place/out" || { fail "right: no ok for Rows"; cat "$place/out"; }
finds wrong_data counts COUNTS datasets/Counts "Counts: sample 99: other values when it is read"
finds wrong_data shares SHARES datasets/Counts \
    "Counts: sample 0: other values after the first of two datasets was closed"
finds wrong_data fails FAILS datasets/Counts \
    "Counts: sample 99: fails: dataset Counts: sample 99: it ends in the middle"
finds wrong_data opens OPENS datasets/Counts "Counts left a scope open"
finds wrong_data draws DRAWS transforms/Dims "Dims: sample 3: other values when it is read again"
finds wrong_data writes WRITES transforms/Dims "the transform changes the sample that it got"
finds wrong_data rolls ROLLS transforms/Rows \
    "Rows: a batch of float32[3, 12, 10]: other values when several threads read"
finds wrong_data erases ERASES transforms/Rows "the transform changes the batch that it got"
finds wrong_data picky PICKY transforms/Dims "Dims: refuses every sample: dataset"

# pruning methods
passes wrong_prune right RIGHT pruning/Odd
grep -q "^ok *pruning/Whole " "$place/out" || { fail "right: no ok for Whole"; cat "$place/out"; }
finds wrong_prune writes WRITES pruning/Odd "the method changes the mask that it got"
finds wrong_prune scores SCORES pruning/Odd "the method changes the scores"
finds wrong_prune revives REVIVES pruning/Odd "neither 0 nor that of the mask before"
finds wrong_prune clock CLOCK pruning/Odd "another mask when it is called again with the same seed"
finds wrong_prune picky PICKY pruning/Odd "Odd: refuses every tensor"
finds wrong_prune loses LOSES pruning/Whole "Whole: the results of the network have changed"
finds wrong_prune counts COUNTS pruning/Whole "report: wrong parameters_after, got 0; expected"
cases=$top/tests/conform/pruning.txt
check plugins/.libs/prune.so --only 'pruning/*' --cases "$cases"
test $code -eq 0 || { fail "our own pruning methods: $code"; cat "$place/out"; }
grep -q '^7 passed, 0 failed, 0 skipped$' "$place/out" ||
    fail "our own pruning methods: $(tail -n 1 "$place/out")"
cases=$place/empty.txt

# an operator with options of every kind
cases=$top/tests/conform/lists.txt
passes lists weigh 0 ops/weigh
grep -q '^ok *grad/weigh ' "$place/out" || fail "weigh: no ok for grad/weigh"
finds lists slope 1 grad/weigh \
    "finite differences: tn_gradcheck: input 0, element 0: wrong derivative, got"
cases=$place/empty.txt

# a device that has memory only: no test reports an ability that it does not have
build bare bare 0
check "$place/bare.so" --level contract
test $code -eq 0 || { fail "a bare device: exit status $code"; cat "$place/out"; }
for test in threads order-of-work scarce-memory wrong-indices managed-memory shared-memory; do
    grep -q "^skip  *contract/$test " "$place/out" || {
        fail "a bare device: no skip for contract/$test"; cat "$place/out"; }
done
for test in keeps-bytes gives-memory-back too-large; do
    grep -q "^ok *contract/$test " "$place/out" || {
        fail "a bare device: no ok for contract/$test"; cat "$place/out"; }
done
check "$place/bare.so" --only '*/add*,*/si*,*/re*,*/select' --cases "$top/tests/oracle" \
    --capabilities "$place/capabilities"
test $code -eq 0 || { fail "operators of a bare device: exit status $code"; cat "$place/out"; }
for op in add silu relu sigmoid; do
    grep -q "^ok *[a-z]*/$op " "$place/out" && {
        fail "a bare device computes $op"; cat "$place/out"; }
done
# reshape, select and repeat_interleave_scalar end in views or plain copies
grep '"route"' "$place/capabilities" | grep -v '"route": "missing"' | grep -v '"route": "view' |
    grep -vE '"name": "(grad/)?(reshape|select|repeat_interleave_scalar)"' >"$place/untrue" &&
    { fail "a bare device is said to have"; cat "$place/untrue"; }
grep -q '"name": "add".*"route": "missing"' "$place/capabilities" ||
    fail "a bare device: add is not missing"

test $failed -eq 0 && echo "PASS: kinds.sh"
exit $failed
