#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A plugin of each kind goes through the whole of tenon check without an error: optimizers,
# formats, graphs, datasets, pruning methods, an operator with options of every kind, a device that
# has memory only. Plugins with an error: mutants.sh.
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
unset TENON_DEVICE TENON_PLUGIN_PATH_ADD TENON_CHECK MUTANT
# The driver of OpenCL takes longer to start than the command runs here.
TENON_PLUGINS='!backend-opencl'
export TENON_PLUGINS
cases=$place/empty.txt
echo end >"$cases"

build() { # FILE
    $CC -I"$top/sdk/include" -Isdk/include -shared -fPIC -fvisibility=hidden \
        -o "$place/$1.so" "$top/tests/conform/$1.c" -lm -lpthread || exit 99
}
check() { # ARGUMENT...
    tools/tenon check "$@" >"$place/out" 2>"$place/err"
    code=$?
    cat "$place/err" >>"$place/out"
}
# FILE TEST: the whole check, without a failure, and this test was not left out
passes() {
    build "$1"
    check "$place/$1.so" --cases "$cases"
    test $code -eq 0 || { fail "$1: exit status $code"; cat "$place/out"; }
    grep -q "^ok *$2 " "$place/out" || { fail "$1: no ok for $2"; cat "$place/out"; }
}

# optimizers
rule=optimizers/Descent
passes mutant_descent $rule
cases=$place/rule.txt
printf '%s\n' 'optimizer Descent(lr=0.5, momentum=0.5)' 'parameter 1 2' 'gradient 1 -1' \
    'after 0.5 2.5' 'after -0.25 3.25' >"$cases"
passes mutant_descent $rule
printf 'optimizer Descent(lr=0.5)\nparameter 1 2\ngradient 1 -1\nafter 0.5 words\n' >"$cases"
check "$place/mutant_descent.so" --only $rule --cases "$cases"
test $code -eq 1 && grep -q "^FAIL *$rule .*rule.txt:4: wrong numbers" "$place/out" ||
    { fail "numbers that are words: $code"; cat "$place/out"; }
cases=$top/tests/conform/optimizers.txt
check plugins/.libs/optim.so --only 'optimizers/*' --cases "$cases"
test $code -eq 0 || { fail "our own optimizers: $code"; cat "$place/out"; }
grep -q '^15 passed, 0 failed, 0 skipped$' "$place/out" ||
    fail "our own optimizers: $(tail -n 1 "$place/out")"
cases=$place/empty.txt

# formats
toy=formats/toy
passes mutant_format $toy
if test -f plugins/.libs/formats.so; then
    check plugins/.libs/formats.so --only 'formats/*' --cases "$cases"
    test $code -eq 0 || { fail "our own formats: $code"; cat "$place/out"; }
fi

# passes, compilers of regions, communicators
passes mutant_graph passes/twice
grep -q '^ok *compilers/relus ' "$place/out" || { fail 'right: no ok'; cat "$place/out"; }
# the communicator opens groups of one process only
grep -q '^skip *comms/one .*several processes: .*expected 1 process' "$place/out" ||
    { fail 'right: no skip for comms/one'; cat "$place/out"; }

# datasets and transforms
passes mutant_data datasets/Counts
grep -q "^ok *transforms/Dims " "$place/out" || { fail "right: no ok for Dims"; cat "$place/out"; }
grep -q "^ok *transforms/Rows " "$place/out" || { fail "right: no ok for Rows"; cat "$place/out"; }

# pruning methods
passes mutant_prune pruning/Odd
grep -q "^ok *pruning/Whole " "$place/out" || { fail "right: no ok for Whole"; cat "$place/out"; }
cases=$top/tests/conform/pruning.txt
check plugins/.libs/prune.so --only 'pruning/*' --cases "$cases"
test $code -eq 0 || { fail "our own pruning methods: $code"; cat "$place/out"; }
grep -q '^7 passed, 0 failed, 0 skipped$' "$place/out" ||
    fail "our own pruning methods: $(tail -n 1 "$place/out")"
cases=$place/empty.txt

# an operator with options of every kind
cases=$top/tests/conform/mutant_lists.txt
passes mutant_lists ops/weigh
grep -q '^ok *grad/weigh ' "$place/out" || fail "weigh: no ok for grad/weigh"
cases=$place/empty.txt

# a device that has memory only: no test reports an ability that it does not have
build bare
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
