#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The generator of the schema refuses malformed lines with file and number, and what it writes for
# the real schema compiles on its own as C and C++.
set -u
source=${abs_srcdir:?}
build=${abs_builddir:?}
folder=${TMPDIR-/tmp}/tenon-schema.$$
mkdir -p "$folder/sdk/operators" || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0

# refuses WHAT LINE...: the last line is the wrong one
refuses() {
    what=$1
    shift
    printf '# A family.\n' >"$folder/sdk/operators/bad.ops"
    for line; do printf '%s\n' "$line" >>"$folder/sdk/operators/bad.ops"; done
    number=$(wc -l <"$folder/sdk/operators/bad.ops")
    if "$PERL" "$source/sdk/operators/generate.pl" --srcdir "$folder" --outdir "$folder/out" \
        2>"$folder/said"; then
        echo "not refused: $what" >&2
        failed=1
    elif ! grep -q "^sdk/operators/bad.ops:$((number)): .*$what" "$folder/said"; then
        echo "wanted line $((number)) and \"$what\", got: $(cat "$folder/said")" >&2
        failed=1
    fi
}
refuses 'before the first `op`' 'in x float'
refuses 'is no keyword' 'op a' 'math y = x' 'inn x float'
refuses 'op NAME' 'op Upper'
refuses 'has no dtypes' 'op a' 'in x'
refuses '`floats` is neither' 'op a' 'in x floats'
refuses 'is no flag' 'op a' 'flags primitve'
refuses 'is no option type' 'op a' 'opt p real 1.0 help'
refuses 'default "x" of an int' 'op a' 'opt p int x help'
refuses 'default "yes" of a bool' 'op a' 'opt p bool yes help'
refuses '`arg` after `opt`' 'op a' 'opt p int 1 help' 'arg q int help'
refuses 'is given twice' 'op a' 'math y = x' 'math y = x'
refuses 'has no `math` line' 'op a' 'in x float' 'out y'
refuses 'has no output' 'op a' 'math y = x' 'in x float'
refuses 'names no operand' 'op a' 'math y = x' 'in x float' 'out y' 'save z'
refuses 'two operands are called' 'op a' 'math y = x' 'in x float' 'out x'
refuses 'has 3 alternatives for 2 operators' 'op a b' 'math y = {1|2|3}'
refuses 'is for operators of one input' 'op a' 'layer A' 'math y = x' 'in x float' 'out y' \
    'opt p int 1 help'
refuses 'needs the flag inplace' 'op a' 'layer A inplace' 'math y = x' 'in x float' 'out y'
refuses 'revision 1 is defined twice' 'op a' 'math y = x' 'out y' 'op b' 'math y = x' 'out y' 'op a'

for language in "${CC:-cc} -std=c11 -x c" "${CXX_CHECK:-} -std=c++17 -x c++"; do
    case $language in ' '*) echo "no C++ compiler: as C only"; continue ;; esac
    printf '#include <tenon/ops.h>\nint here;\n' |
        $language -Wall -Wextra -Wshadow -pedantic -Werror -fsyntax-only \
        -I"$build/sdk/include" -I"$source/sdk/include" - || {
        echo "ops.h alone: $language" >&2; failed=1; }
done

# Arguments that are left out, as C and C++; a wrong number is an error that names the function.
calls() {
    printf '#include <tenon/ops.h>\ntn_tensor *f(tn_tensor *x, tn_tensor **y);\n'
    printf 'tn_tensor *f(tn_tensor *x, tn_tensor **y)\n{\n    (void)x, (void)y;\n%s\n}\n' "$1"
}
compiles() {
    $language -Wall -Wextra -Wshadow -pedantic -Werror -fsyntax-only \
        -I"$build/sdk/include" -I"$source/sdk/include" -
}
for language in "${CC:-cc} -std=c11 -x c" "${CXX_CHECK:-} -std=c++17 -x c++"; do
    case $language in ' '*) continue ;; esac
    calls '    (void)tn_topk(tn_add(x, tn_add_(x, x, 2)), 5, y, y + 1);
    (void)tn_topk(x, 5, y, y + 1, -1, false);
    x = tn_conv2d(x, x, TN_NONE, TN_INTS(2), TN_INTS(1, 1));
    x = tn_clamp(tn_conv2d(x, x), 0, 2.5);
    return tn_sum(tn_sum(x, TN_INTS(0, 1), true), tn_no_ints(), false, TN_F64);' | compiles || {
        echo "calls: $language" >&2; failed=1; }
    for call in 'tn_add(x)' 'tn_topk(x, 5, y)' 'tn_sum(x, TN_INTS(1), true, TN_F32, 1)' \
        'tn_layer_norm(x, TN_INTS(4))' 'tn_sum(x, TN_INTS(1), true, TN_F32, 1, 2, 3)'; do
        calls "    return $call, x;" | compiles 2>"$folder/said" && {
            echo "not refused: $call" >&2; failed=1; }
        grep -Eq "(error|note):.*${call%%(*}" "$folder/said" || {
            echo "the function is not named: $call: $(cat "$folder/said")" >&2; failed=1; }
    done
    # C refuses a pointer, such as to the struct of options of earlier versions, for a bool
    case $language in
    *c++) ;;
    *) calls '    return tn_logsumexp(x, TN_INTS(0), y);' | compiles 2>/dev/null && {
        echo "not refused: a pointer for a bool" >&2; failed=1; } ;;
    esac
done
exit $failed
