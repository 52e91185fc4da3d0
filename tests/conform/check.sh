#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon check lets right plugins pass, and its reports are what they say; it finds what is wrong
# with cases, options and files. What is wrong with plugins: mutants.sh.
set -u
top=${srcdir:-.}
place=$(mktemp -d) || exit 99
trap 'rm -rf "$place"' EXIT
failed=0
fail() { echo "FAIL: $*"; failed=1; }
test "${TN_SANITIZERS-no}" = no || {
    echo "SKIP: check.sh: what sanitizers say is not what a plugin does"; exit 77; }

TENON_PLUGIN_PATH=$PWD/plugins/.libs
export TENON_PLUGIN_PATH
unset TENON_DEVICE TENON_PLUGIN_PATH_ADD MUTANT
# The driver of OpenCL takes longer to start than the command runs here.
TENON_PLUGINS='!backend-opencl'
export TENON_PLUGINS
cases=$top/tests/oracle

build() { # FILE: a plugin without an error, unless MUTANT names one
    $CC -I"$top/sdk/include" -Isdk/include -shared -fPIC -fvisibility=hidden \
        -o "$place/$1.so" "$top/tests/conform/mutant_$1.c" -lm -lpthread || exit 99
}
check() { # ARGUMENT...
    tools/tenon check "$@" >"$place/out" 2>"$place/err"
    code=$?
    cat "$place/err" >>"$place/out"
}
# NAME FILE TEST WORDS: the test fails with the words, and the run with it.
finds() {
    check "$place/$2.so" --only "$3" --cases "${cases_of:-$cases}" --seconds "${seconds:-60}"
    test $code -eq 1 || fail "$1: exit status $code"
    grep "^FAIL *$3 " "$place/out" | grep -qF -- "$4" || {
        fail "$1: \"$4\" is not in:"; cat "$place/out"; }
    grep -q '^0 passed, 1 failed, 0 skipped$' "$place/out" ||
        fail "$1: the last line is $(tail -n 1 "$place/out")"
}

build relu
build cube
build pair
build scaled
check "$place/relu.so" --cases "$cases" --json "$place/json" --junit "$place/junit" \
    --capabilities "$place/capabilities"
test $code -eq 0 || { fail "a right plugin: exit status $code"; cat "$place/out"; }
grep -q '^ok *ops/relu ' "$place/out" && grep -q '^ok *grad/relu ' "$place/out" ||
    fail "a right plugin: no ok for relu"
grep -q ' 0 failed' "$place/out" || fail "a right plugin: $(tail -n 1 "$place/out")"
# --report - prints a page, and nothing else
check "$place/relu.so" --cases "$cases" --only 'ops/relu' --report -
test $code -eq 0 && test "$(head -n 1 "$place/out")" = '# Check of org.example.mutant' &&
    grep -q '^| plugin | org.example.mutant 1.0.0 |$' "$place/out" &&
    grep -q '^| ops | 1 | 0 | 0 | [1-9]' "$place/out" &&
    grep -q '^| relu | float32 | kernel |' "$place/out" || { fail "--report"; cat "$place/out"; }
# --json alone prints the results, and nothing else
check "$place/relu.so" --cases "$cases" --only 'ops/relu' --json
test $code -eq 0 && test "$(head -n 1 "$place/out")" = '{' &&
    grep -q '"name": "ops/relu", "outcome": "passed"' "$place/out" &&
    ! grep -q '^ok ' "$place/out" || { fail "--json without a file"; cat "$place/out"; }
if command -v python3 >/dev/null; then
    python3 - "$place" <<'END' || fail "the reports"
import json, sys, xml.etree.ElementTree as xml
place = sys.argv[1]
whole = json.load(open(place + "/json"))
assert whole["plugin"] == "org.example.mutant", whole["plugin"]
names = [t["name"] for t in whole["tests"]]
assert "ops/relu" in names and "contract/complete" in names, names
assert all(t["outcome"] in ("passed", "skipped") for t in whole["tests"])
rows = {(r["name"], r["dtype"]): r for r in json.load(open(place + "/capabilities"))["operators"]}
assert rows["relu", "float32"]["cases"] > 3 and rows["relu", "float32"]["failed"] == 0, rows
assert "wrong" in rows["relu", "float32"]["route"], rows["relu", "float32"]
suite = xml.parse(place + "/junit").getroot()
assert int(suite.get("tests")) == len(names) == len(suite.findall("testcase"))
assert suite.get("failures") == "0"
END
fi

# what mutants.txt cannot say: a limit of time, other cases, a symbol
seconds=2
MUTANT=hangs
export MUTANT
finds hangs relu ops/relu "the test did not end within 2 seconds"
seconds=60
unset MUTANT
$CC -DEXPORTS -I"$top/sdk/include" -Isdk/include -shared -fPIC -fvisibility=hidden \
    -o "$place/exports.so" "$top/tests/conform/mutant_relu.c" -lm -lpthread || exit 99
finds exports exports contract/one-exported-name "got helper_of_mine"
check "$place/cube.so" --cases "$top/tests/conform/mutant_cube.txt"
test $code -eq 0 || { fail "a right operator: exit status $code"; cat "$place/out"; }
grep -q '^ok *grad/cube ' "$place/out" || fail "a right operator: no ok for grad/cube"
MUTANT=straight
export MUTANT
check "$place/cube.so" --cases "$top/tests/conform/mutant_cube.txt"
grep -q '^ok *grad/cube ' "$place/out" || fail "a derivative by a rule of its own: not ok"
unset MUTANT
check "$place/pair.so" --cases "$top/tests/conform/mutant_pair.txt"
test $code -eq 0 || { fail "a right operator of two outputs: exit status $code"; cat "$place/out"; }
cases_of=$place/sulks.txt
{ sed /^end/d "$top/tests/conform/mutant_cube.txt"; printf \
    'case cube/number\nop cube\nin f64 - - 0 - : 3\nrefused\nend\n'; } >"$cases_of"
MUTANT=sulks
export MUTANT
finds sulks cube ops/cube \
    "after refused case cube/number: case cube/f64 returns another result"
unset MUTANT
# a line of another kind ends the case before it
cases_of=$place/kinds.txt
for other in 'layer Linear(2, 3)' 'optimizer SGD(lr=1)' 'dataset Digits' 'transform ToFloat()' \
    'prune Identity()'; do
    { sed /^end/d "$top/tests/conform/mutant_cube.txt"; printf '%s\nend\n' "$other"; } >"$cases_of"
    check "$place/cube.so" --only ops/cube --cases "$cases_of"
    test $code -eq 0 || { fail "a case before a line $other: $code"; cat "$place/out"; }
done
cases_of=$place/empty.txt
echo end >"$cases_of"
finds caseless cube ops/cube "operator: no case"
printf 'op cube\ncase cube/x\nop cube\nin f64 2 1 0 g : 1\n' >"$cases_of"
finds short cube ops/cube "empty.txt:4: the values do not fill shape and strides"
printf 'op cube\ncase cube/x\nop cube\nin f64 1 1 0 g : 1\nout f64 1 : 1word\n' >"$cases_of"
finds worded cube ops/cube "empty.txt:5: the values are not numbers"

# layers
finds_layer() { # NAME WORDS
    check "$place/scaled.so" --only 'layers/Scaled' --cases "$layer_cases"
    test $code -eq 1 || fail "$1: exit status $code"
    grep '^FAIL *layers/Scaled ' "$place/out" | grep -qF -- "$2" || {
        fail "$1: \"$2\" is not in:"; cat "$place/out"; }
}
layer_cases=$place/layers.txt
printf 'layer Scaled(3)\nin f64 2,3 g : 0.5 -1 2 1 0.25 -0.5\n' >"$layer_cases"
check "$place/scaled.so" --cases "$layer_cases"
test $code -eq 0 && grep -q '^ok *layers/Scaled ' "$place/out" || {
    fail "a right layer: exit status $code"; cat "$place/out"; }
check "$place/scaled.so" --only 'layers/*' --cases "$layer_cases" --device cpu:0,cpu
test $code -eq 0 || { fail "a right layer on two devices: exit status $code"; cat "$place/out"; }
check "$place/scaled.so" --only 'layers/*' --cases "$layer_cases" --device cpu,nowhere
test $code -eq 1 && grep -q 'device "nowhere": does not exist' "$place/out" ||
    fail "a device that is not there: $code"
passes_layer() { # MUTANT: a right layer
    MUTANT=$1
    export MUTANT
    check "$place/scaled.so" --cases "$layer_cases"
    unset MUTANT
    test $code -eq 0 && grep -q '^ok *layers/Scaled ' "$place/out" || {
        fail "$1: exit status $code"; cat "$place/out"; }
}
passes_layer extra
passes_layer tensors
printf '%s\n' 'layer Scaled((3, 4), weights=(0.5,), label="a, (b)", on=False)' 'in f64 2,3 g' \
    'layer Scaled()' 'in f64 2,3 g' >"$layer_cases"
passes_layer listed
printf 'layer Scaled(3)\nin f64 2,3 : 1 2\n' >"$layer_cases"
finds_layer short_layer "layers.txt:2: the numbers do not fill the shape"
printf 'layer Scaled(3)\nin f64 2,4\n' >"$layer_cases"
finds_layer misfit "the call fails"
printf 'layer Scaled(3)\nIn f64 2,3\n' >"$layer_cases"
finds_layer unknown_line 'layers.txt:2: unknown line, got "In"; expected one of: eval'
printf 'layer Scaled(3)\n in f64 2,3\n' >"$layer_cases"
finds_layer blank_first 'layers.txt:2: the line begins with a space'
printf 'Layer Scaled(3)\nin f64 2,3\n' >"$layer_cases"
finds_layer unknown_word 'layers.txt:1: unknown line, got "Layer"; expected one of: case'
printf 'layer Scaled(3)\nstate scale f64 3 : 2 3 4\nin f64 2,3 g : 1 2 3 0 1 -1\n%s\n' \
    'out f64 2,3 : 6 18 36 0 9 -12' >"$layer_cases"
check "$place/scaled.so" --only 'layers/*' --cases "$layer_cases"
test $code -eq 0 || { fail "a layer with given results: $code"; cat "$place/out"; }
sed 's/ -12$/ -12.5/' "$layer_cases" >"$place/other.txt"
layer_cases=$place/other.txt
finds_layer other_result \
    'result 0 of the case: element 5: wrong value, got -12; expected -12.5'
printf 'layer Scaled(3)\nstate height f64 1 : 1\nin f64 2,3\nout f64 - : 1\n' >"$layer_cases"
finds_layer other_state 'state height: in the case, but the layer has no such entry'
printf 'layer Scaled(3)\nin f64 2,3\nout f64 3,2 : 1 2 3 4 5 6\n' >"$layer_cases"
finds_layer other_shape 'result 0 of the case: wrong shape'
layer_cases=$place/layers.txt
echo end >"$layer_cases"
check "$place/scaled.so" --only 'layers/*' --cases "$layer_cases"
test $code -eq 0 || fail "a layer that needs no case: exit status $code"

# errors in the command line or the file
check; test $code -eq 2 || fail "without a file: $code"
check "$place/nowhere.so"; test $code -eq 2 || fail "a file that is not there: $code"
check "$place/relu.so" --level everything; test $code -eq 2 || fail "a wrong level: $code"
check "$place/relu.so" --speed; test $code -eq 2 && grep -q -- --speed "$place/out" ||
    fail "a wrong option: $code"
echo "no plugin" >"$place/text.so"
check "$place/text.so"; test $code -eq 1 && grep -q "does not load" "$place/out" ||
    fail "no plugin at all: $code"
check "$place/relu.so" --only 'ops/nothing*'; test $code -eq 1 &&
    grep -q "no test named" "$place/out" || fail "no such test: $code"
check "$place/relu.so" --list --only 'contract/a*,nothing,*/relu'; test $code -eq 0 &&
    test "$(grep / "$place/out" | paste -sd,)" = contract/activates,ops/relu,grad/relu ||
    { fail "several globs: $code"; cat "$place/out"; }
check "$place/relu.so" --list --cases "$cases"; test $code -eq 0 &&
    grep -qx ops/relu "$place/out" || fail "--list: $code"
check "$place/relu.so" --level contract --tap - --cases "$cases"
test $code -eq 0 && grep -q '^1\.\.7$' "$place/out" &&
    grep -q '^ok 1 - contract/complete$' "$place/out" || { fail "TAP: $code"; cat "$place/out"; }


# A layer on a device that lacks a kernel is skipped, with the reason.
TENON_PLUGIN_PATH_ADD=$PWD/examples/strict-device/.libs
export TENON_PLUGIN_PATH_ADD
orthogonal() { # DEVICE
    check plugins/.libs/layers.so --only layers/Orthogonal --device "$1" \
        --cases "$top/tests/conform/layers.txt"
}
orthogonal strict
test $code -eq 0 && grep '^skip *layers/Orthogonal .*cayley.* on strict:0: ' "$place/out" |
    grep -q '"linalg_solve": no kernel on device type "strict"' ||
    { fail "a device without linalg_solve: exit status $code"; cat "$place/out"; }
orthogonal cpu
grep -q '^1 passed, 0 failed, 0 skipped$' "$place/out" ||
    { fail "Orthogonal on cpu"; cat "$place/out"; }
unset TENON_PLUGIN_PATH_ADD

test $failed -eq 0 && echo "PASS: check.sh"
exit $failed
