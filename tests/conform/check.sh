#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon check finds what is wrong with plugins that are wrong on purpose (wrong.c), says it in
# words, and lets right ones pass; its reports are what they say.
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
unset TENON_DEVICE TENON_PLUGIN_PATH_ADD
# The driver of OpenCL takes longer to start than the command runs here.
TENON_PLUGINS='!backend-opencl'
export TENON_PLUGINS
cases=$top/tests/oracle

build() { # NAME NUMBER
    $CC -I"$top/sdk/include" -Isdk/include -shared -fPIC -fvisibility=hidden -DWRONG="$2" \
        -o "$place/$1.so" "$top/tests/conform/wrong.c" -lm || exit 99
}
check() { # ARGUMENT...
    tools/tenon check "$@" >"$place/out" 2>"$place/err"
    code=$?
    cat "$place/err" >>"$place/out"
}
# NAME NUMBER TEST WORDS: the test fails with the words, and the run with it.
finds() {
    build "$1" "$2"
    check "$place/$1.so" --only "$3" --cases "${cases_of:-$cases}" --seconds "${seconds:-60}"
    test $code -eq 1 || fail "$1: exit status $code"
    grep "^FAIL *$3 " "$place/out" | grep -qF -- "$4" || {
        fail "$1: \"$4\" is not in:"; cat "$place/out"; }
    grep -q '^0 passed, 1 failed, 0 skipped$' "$place/out" ||
        fail "$1: the last line is $(tail -n 1 "$place/out")"
}

build right RIGHT
check "$place/right.so" --cases "$cases" --json "$place/json" --junit "$place/junit" \
    --capabilities "$place/capabilities"
test $code -eq 0 || { fail "a right plugin: exit status $code"; cat "$place/out"; }
grep -q '^ok *ops/relu ' "$place/out" && grep -q '^ok *grad/relu ' "$place/out" ||
    fail "a right plugin: no ok for relu"
grep -q ' 0 failed' "$place/out" || fail "a right plugin: $(tail -n 1 "$place/out")"
# --json alone prints the results, and nothing else
check "$place/right.so" --cases "$cases" --only 'ops/relu' --json
test $code -eq 0 && test "$(head -n 1 "$place/out")" = '{' &&
    grep -q '"name": "ops/relu", "outcome": "passed"' "$place/out" &&
    ! grep -q '^ok ' "$place/out" || { fail "--json without a file"; cat "$place/out"; }
if command -v python3 >/dev/null; then
    python3 - "$place" <<'END' || fail "the reports"
import json, sys, xml.etree.ElementTree as xml
place = sys.argv[1]
whole = json.load(open(place + "/json"))
assert whole["plugin"] == "org.example.wrong", whole["plugin"]
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

finds strides STRIDES ops/relu "wrong value, got"
finds offset OFFSET ops/relu "bytes before its start"
finds input INPUT ops/relu "kernel wrong wrote to an input, which operator relu only reads"
finds between BETWEEN ops/relu "wrong value, got"
finds beyond BEYOND ops/relu "bytes after its end"
finds nan NUMBERLESS ops/relu "wrong value, got 0; expected nan"
finds drifts DRIFTS ops/relu "returned other bits"
finds shares SHARES ops/relu "called from 3 threads at once"
finds prints PRINTS ops/relu "the plugin printed"
finds exits EXITS ops/relu "a plugin must not call exit"
finds crashes CRASHES ops/relu "signal 11"
finds picky PICKY ops/relu "but fails with this layout of the inputs: with gaps: "
finds lazy LAZY ops/relu "; expected 0 within"
finds leaves LEAVES ops/relu "the plugin left a process running"
finds elsewhere ELSEWHERE contract/kernels-run "name the device that they are for with --device"
seconds=2
finds hangs HANGS ops/relu "the test did not end within 2 seconds"
seconds=60
finds thread THREAD contract/no-threads-at-load "loading: started 1 thread"
finds handler HANDLER contract/process-left-alone "): handler installed; expected none"
finds rounds ROUNDS ops/relu \
    "org.example.wrong\": wrong left the rounding mode or the flushing of small numbers changed"
finds ungraded UNGRADED ops/relu "wrong left a gradient mode on (tn_grad_begin without tn_grad_end)"
finds opens OPENS ops/relu "wrong left a scope open (tn_scope_begin without tn_scope_end)"
finds rounds_early ROUNDS_EARLY contract/process-left-alone \
    "activate left the rounding mode or the flushing of small numbers changed"
finds ungraded_early UNGRADED_EARLY contract/process-left-alone "activate left a gradient mode on"
finds opens_early OPENS_EARLY contract/process-left-alone "activate left a scope open"
finds thread_early THREAD_EARLY contract/process-left-alone "activate started a thread"
finds exports EXPORTS contract/one-exported-name "got helper_of_mine"
finds greedy GREEDY contract/scarce-memory "signal 11"
finds starves STARVES ops/relu "no error was reported when memory failed, and output 0: element"
finds leaks LEAKS ops/relu "a leak: memory stays in use each time allocation"
finds broods BROODS ops/relu "the call no longer works after allocation"
cases_of=$top/tests/conform/cube.txt
finds unfed UNFED grad/cube "a gradient is missing, or one too many, when allocation"
finds hushed HUSHED grad/cube "the error is not TN_ERR_MEMORY when allocation"
finds forgets FORGETS grad/cube "a leak: memory stays in use each time allocation"
finds gradient GRADIENT grad/cube \
    "finite differences: tn_gradcheck: input 0, element 0: wrong derivative, got"
finds no_slope NO_SLOPE grad/cube "wrong derivative, got nan"
finds cut CUT grad/cube \
    "second derivatives: tn_gradcheck: input 0, element 0: wrong derivative, got 0"
build cube CUBE
check "$place/cube.so" --cases "$cases_of"
test $code -eq 0 || { fail "a right operator: exit status $code"; cat "$place/out"; }
grep -q '^ok *grad/cube ' "$place/out" || fail "a right operator: no ok for grad/cube"
build straight STRAIGHT
check "$place/straight.so" --cases "$cases_of"
grep -q '^ok *grad/cube ' "$place/out" || fail "a derivative by a rule of its own: not ok"
cases_of=$top/tests/conform/pair.txt
finds deaf DEAF grad/pair \
    "finite differences: tn_gradcheck: input 0, element 0: wrong derivative, got"
finds first_only FIRST_ONLY grad/pair "output 1 alone: backward of pair: pair: no gradient of y"
build pair PAIR
check "$place/pair.so" --cases "$cases_of"
test $code -eq 0 || { fail "a right operator of two outputs: exit status $code"; cat "$place/out"; }
cases_of=$place/sulks.txt
{ sed /^end/d "$top/tests/conform/cube.txt"; printf \
    'case cube/number\nop cube\nin f64 - - 0 - : 3\nrefused\nend\n'; } >"$cases_of"
finds sulks SULKS ops/cube \
    "after refused case cube/number: case cube/f64 returns another result"
# a line of another kind ends the case before it
cases_of=$place/kinds.txt
for other in 'layer Linear(2, 3)' 'optimizer SGD(lr=1)' 'dataset Digits' 'transform ToFloat()' \
    'prune Identity()'; do
    { sed /^end/d "$top/tests/conform/cube.txt"; printf '%s\nend\n' "$other"; } >"$cases_of"
    check "$place/cube.so" --only ops/cube --cases "$cases_of"
    test $code -eq 0 || { fail "a case before a line $other: $code"; cat "$place/out"; }
done
cases_of=$place/empty.txt
echo end >"$cases_of"
finds caseless CUBE ops/cube "operator: no case"
printf 'op cube\ncase cube/x\nop cube\nin f64 2 1 0 g : 1\n' >"$cases_of"
finds short CUBE ops/cube "empty.txt:4: the values do not fill shape and strides"
printf 'op cube\ncase cube/x\nop cube\nin f64 1 1 0 g : 1\nout f64 1 : 1word\n' >"$cases_of"
finds worded CUBE ops/cube "empty.txt:5: the values are not numbers"

# layers
layer() { # NAME NUMBER
    $CC -I"$top/sdk/include" -Isdk/include -shared -fPIC -fvisibility=hidden -DWRONG="$2" \
        -o "$place/$1.so" "$top/tests/conform/wrong_layer.c" -lm || exit 99
}
finds_layer() { # NAME NUMBER WORDS
    layer "$1" "$2"
    check "$place/$1.so" --only 'layers/Scaled' --cases "$layer_cases"
    test $code -eq 1 || fail "$1: exit status $code"
    grep '^FAIL *layers/Scaled ' "$place/out" | grep -qF -- "$3" || {
        fail "$1: \"$3\" is not in:"; cat "$place/out"; }
}
layer_cases=$place/layers.txt
printf 'layer Scaled(3)\nin f64 2,3 g : 0.5 -1 2 1 0.25 -0.5\n' >"$layer_cases"
layer scaled RIGHT
check "$place/scaled.so" --cases "$layer_cases"
test $code -eq 0 && grep -q '^ok *layers/Scaled ' "$place/out" || {
    fail "a right layer: exit status $code"; cat "$place/out"; }
check "$place/scaled.so" --only 'layers/*' --cases "$layer_cases" --device cpu:0,cpu
test $code -eq 0 || { fail "a right layer on two devices: exit status $code"; cat "$place/out"; }
check "$place/scaled.so" --only 'layers/*' --cases "$layer_cases" --device cpu,nowhere
test $code -eq 1 && grep -q 'device "nowhere": does not exist' "$place/out" ||
    fail "a device that is not there: $code"
finds_layer caches CACHES "forward must read them at every call"
finds_layer hides HIDES "an instance that loaded the state returns another result"
finds_layer forgets FORGETS \
    "(factor=4.0, dtype=float64) builds a module that prints Scaled(factor=5.0, dtype=float64)"
finds_layer misprints MISPRINTS "its repr Scaled(4) builds a module that prints Scaled(5)"
finds_layer counts COUNTS "a call in eval mode changed the state: \`calls\`"
finds_layer widens WIDENS "the result is"
finds_layer cuts CUTS "gradient of input 0, element 0: wrong value, got 0; expected 4.5"
finds_layer cuts_own CUTS_OWN "gradient of scale, element 0: wrong value, got 0"
finds_layer steps STEPS "a call in training mode changed a parameter"
finds_layer borrows BORROWS \
    "does not compute with it: element 0: wrong value, got 2.25; expected 2.8125"
finds_layer alters ALTERS \
    "a deep copy of Scaled(factor=3.0, dtype=float64) prints Scaled(factor=4.0, dtype=float64)"
finds_layer stays STAYS "the module cannot be copied: "
finds_layer fails FAILS "the call fails in training mode: in Scaled: not in this mode"
finds_layer keeps KEEPS "an instance that loaded the state: \`_extra_state\`: another value"
finds_layer ticks TICKS "a call in eval mode changed the state: \`_extra_state\`: another value"
finds_layer clings CLINGS "a deep copy: \`_extra_state\`: another value"
passes_layer() { # NAME NUMBER: a right layer
    layer "$1" "$2"
    check "$place/$1.so" --cases "$layer_cases"
    test $code -eq 0 && grep -q '^ok *layers/Scaled ' "$place/out" || {
        fail "$1: exit status $code"; cat "$place/out"; }
}
passes_layer extra EXTRA
passes_layer tensors TENSORS
printf '%s\n' 'layer Scaled((3, 4), weights=(0.5,), label="a, (b)", on=False)' 'in f64 2,3 g' \
    'layer Scaled()' 'in f64 2,3 g' >"$layer_cases"
passes_layer listed LISTED
printf 'layer Scaled(3)\nin f64 2,3 : 1 2\n' >"$layer_cases"
finds_layer short_layer RIGHT "layers.txt:2: the numbers do not fill the shape"
printf 'layer Scaled(3)\nin f64 2,4\n' >"$layer_cases"
finds_layer misfit RIGHT "the call fails"
printf 'layer Scaled(3)\nIn f64 2,3\n' >"$layer_cases"
finds_layer unknown_line RIGHT 'layers.txt:2: unknown line, got "In"; expected one of: eval'
printf 'layer Scaled(3)\n in f64 2,3\n' >"$layer_cases"
finds_layer blank_first RIGHT 'layers.txt:2: the line begins with a space'
printf 'Layer Scaled(3)\nin f64 2,3\n' >"$layer_cases"
finds_layer unknown_word RIGHT 'layers.txt:1: unknown line, got "Layer"; expected one of: case'
printf 'layer Scaled(3)\nstate scale f64 3 : 2 3 4\nin f64 2,3 g : 1 2 3 0 1 -1\n%s\n' \
    'out f64 2,3 : 6 18 36 0 9 -12' >"$layer_cases"
check "$place/scaled.so" --only 'layers/*' --cases "$layer_cases"
test $code -eq 0 || { fail "a layer with given results: $code"; cat "$place/out"; }
sed 's/ -12$/ -12.5/' "$layer_cases" >"$place/other.txt"
layer_cases=$place/other.txt
finds_layer other_result RIGHT \
    'result 0 of the case: element 5: wrong value, got -12; expected -12.5'
printf 'layer Scaled(3)\nstate height f64 1 : 1\nin f64 2,3\nout f64 - : 1\n' >"$layer_cases"
finds_layer other_state RIGHT 'state height: in the case, but the layer has no such entry'
printf 'layer Scaled(3)\nin f64 2,3\nout f64 3,2 : 1 2 3 4 5 6\n' >"$layer_cases"
finds_layer other_shape RIGHT 'result 0 of the case: wrong shape'
layer_cases=$place/layers.txt
echo end >"$layer_cases"
check "$place/scaled.so" --only 'layers/*' --cases "$layer_cases"
test $code -eq 0 || fail "a layer that needs no case: exit status $code"

# errors in the command line or the file
check; test $code -eq 2 || fail "without a file: $code"
check "$place/nowhere.so"; test $code -eq 2 || fail "a file that is not there: $code"
check "$place/right.so" --level everything; test $code -eq 2 || fail "a wrong level: $code"
check "$place/right.so" --speed; test $code -eq 2 && grep -q -- --speed "$place/out" ||
    fail "a wrong option: $code"
echo "no plugin" >"$place/text.so"
check "$place/text.so"; test $code -eq 1 && grep -q "does not load" "$place/out" ||
    fail "no plugin at all: $code"
check "$place/right.so" --only 'ops/nothing*'; test $code -eq 1 &&
    grep -q "no test named" "$place/out" || fail "no such test: $code"
check "$place/right.so" --list --only 'contract/a*,nothing,*/relu'; test $code -eq 0 &&
    test "$(grep / "$place/out" | paste -sd,)" = contract/activates,ops/relu,grad/relu ||
    { fail "several globs: $code"; cat "$place/out"; }
check "$place/right.so" --list --cases "$cases"; test $code -eq 0 &&
    grep -qx ops/relu "$place/out" || fail "--list: $code"
check "$place/right.so" --level contract --tap - --cases "$cases"
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
