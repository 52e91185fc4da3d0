#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon graph --format c: what it writes compiles without warnings, has the tensors of the original,
# computes the same bits and gradients, and is traced to the graph of the original.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
sanitize=
test "${TN_SANITIZERS:-no}" = no || sanitize=$TN_SANITIZE
root=${abs_srcdir:-$srcdir}
set -f
# shellcheck disable=SC2086
set -- ${CC:-cc}
compiler=$*
set +f
LD_LIBRARY_PATH=$abs_builddir/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

# built FUNCTION [OPTION]...: compiles ./net.c and the program that compares
built() {
    function=$1
    shift
    # shellcheck disable=SC2086
    $compiler -std=c11 -Wall -Wextra -pedantic -Werror $sanitize "$@" -DWRITTEN="$function" \
        -I"$root/sdk/include" -I"$abs_builddir/sdk/include" -o program net.c \
        "$here/graph_c_program.c" "$abs_builddir/.libs/libtenon.so" -lm >out 2>err
}

# equal FUNCTION MODEL MODE INPUT...: writes, compiles, runs; an input is float32:1,3,8,8
equal() {
    function=$1 model=$2 mode=$3
    shift 3
    options=
    test "$mode" = eval || options=--train
    for input in "$@"; do
        options="$options --input ${input#*:}:${input%%:*}"
    done
    # shellcheck disable=SC2086
    "$tenon" graph "$model" $options --format c >net.c 2>err || {
        cp net.c out; complain "tenon graph $model --format c"; return; }
    built "$function" || { complain "$model: does not compile"; return; }
    ./program "$model" "$mode" "$@" >out 2>err || { complain "$model: differs"; return; }
    # All is called by the root now, a constant is a buffer, and results are in one row.
    plain='s/RecursiveScriptModule/Net/; s/  # [^ ]* *([A-Za-z0-9_.]*)$//; /^----/d
        s/CONSTANTS\./self._constants./g
        s/^\(def forward.*# tenon.graph 1, [a-z]*\)([^)]*)/\1/
        /^    return /s/[()]//g'
    sed -n '/^---- original/,/^---- written/p' out | sed "$plain" >original
    sed '1,/^---- written/d' out | sed "$plain" >written
    diff original written >err || complain "$model: another graph"
}

net='Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), ReLU(), Flatten(), Linear(288, 4))'
equal sequential_new "$net" eval float32:2,3,8,8
equal sequential_new "$net" train float32:2,3,8,8
# in place, several results, lists, options of every kind, random numbers
net='Sequential(Linear(6, 6), ReLU(inplace=True), Dropout(0.5), Softplus(2.5), GELU("tanh"))'
equal sequential_new "$net" train float32:4,6
equal lstm_new 'LSTM(5, 7, num_layers=2, batch_first=True)' eval float32:2,3,5
equal transformerencoderlayer_new \
    'TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)' train float32:2,5,8
equal embedding_new 'Embedding(10, 3, padding_idx=0)' train int64:2,4
equal bilinear_new 'Bilinear(3, 4, 2)' train float32:5,3 float32:5,4
equal lenet5_new lenet5 train float32:2,1,32,32
equal mobilenet_v2_new mobilenet_v2 eval float32:1,3,64,64
equal resnet18_new resnet18 eval float32:1,3,64,64

# ---- branches and loops, one in the other: each block is a function ----
cat >make.c <<'END'
#include <stdio.h>
#include <tenon/tenon.h>
int main(void)
{
    TN_SCOPE;
    static char text[8192];
    const float values[] = { 0.5f, 1.0f, 0.75f };
    tn_module *net = tn_module_plain("Net"), *script = NULL;
    tn_graph *graph = NULL;
    text[fread(text, 1, sizeof text - 1, stdin)] = '\0';
    if (tn_module_add_parameter(net, "w",
            tn_parameter(tn_tensor_from(values, TN_F32, TN_SHAPE(3)), true)) == TN_OK)
        graph = tn_graph_parse(text, net, NULL);
    if (graph != NULL)
        script = tn_script_new(net, &graph, 1);
    if (script == NULL || tn_module_save(script, "blocks.script") != TN_OK)
        return fprintf(stderr, "%s\n", tn_error_text()), 1;
    tn_graph_drop(graph);
    tn_module_drop(script);
    tn_module_drop(net);
    return 0;
}
END
cat >blocks.txt <<'END'
graph(%self : Net, %x : float32[2, 3], %n : float32[2, 3]):  # tenon.graph 1
  %w : float32[3] = prim::GetAttr[name="w"](%self)
  %any = any(%x)
  %cond = prim::If(%any, %x, %w, %n)
    block then(%x : float32[2, 3], %w : float32[3], %n : float32[2, 3]):
      %mul = mul(%x, %w)
      %loop = prim::Loop[most=7](%x, %mul, %w)
        block test(%x : float32[2, 3], %mul : float32[2, 3], %w : float32[3]):
          %any = any(%x)
          return (%any)
        block body(%x : float32[2, 3], %mul : float32[2, 3], %w : float32[3]):
          %sub = sub[alpha=0.25](%x, %w)
          %relu = relu(%sub)
          %add = add(%mul, %relu)
          return (%relu, %add)
      %a, %b = prim::TupleUnpack(%loop)
      %out = prim::Loop(%b)
        block test(%b : float32[2, 3]):
          %cat = cat[dim=0](%b, %b)
          %amin = amin(%cat)
          %sign = relu(%amin)
          %any = any(%sign)
          return (%any)
        block body(%b : float32[2, 3]):
          %neg = no_grad neg(%b)
          return (%neg)
      return (%b, %out)
    block else(%x : float32[2, 3], %w : float32[3], %n : float32[2, 3]):
      %exp = exp(%n)
      %mul = mul(%exp, %w)
      return (%mul, %n)
  %p, %q = prim::TupleUnpack(%cond)
  return (%p)
END
# shellcheck disable=SC2086
$compiler -std=c11 $sanitize -I"$root/sdk/include" -I"$abs_builddir/sdk/include" -o make make.c \
    "$abs_builddir/.libs/libtenon.so" >out 2>err && ./make <blocks.txt >out 2>err ||
    complain 'a script with blocks'
equal net_new blocks.script train float32:2,3 float32:2,3
grep -q 'tn_loop(.*, 7, ' net.c || complain 'the most steps of a loop'
test "$(grep -c '^static tn_status net_[a-z]*_[0-9](void' net.c)" = 6 ||
    complain 'not six functions'

# a full of shape [] as an argument of a macro
"$tenon" graph 'CosineEmbeddingLoss()' --input 2,3 --input 2,3 --input 2 --passes decompose \
    --format c >net.c 2>err && grep -q 'tn_full(.*tn_no_ints()' net.c &&
    built cosineembeddingloss_new || complain 'decomposed: does not compile'

# ---- folded weights are in the file; a file with all weights does not fit ----
check 0 '^static const float values_0\[\] = \{$' graph \
    'Sequential(Conv2d(1, 2, 3), BatchNorm2d(2))' --input 1,1,5,5 --passes conv_bn --format c
also '"_constants", "conv2d_weight", NULL, TN_F32, BUFFER, 1, values_0' 'Values of'
grep -q 'tn_batch_norm' out && complain 'a folded norm is written'

# constants of a script, too: the same C form as that of the module with the same passes
net='Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), ReLU(), Flatten(), Linear(288, 4))'
"$tenon" script "$net" --input 2,3,8,8 --out fast.script --eval --passes 'conv_bn, dead' \
    >out 2>err || complain 'tenon script'
check 0 '"_constants", ".*", NULL, TN_F32, BUFFER, 1, values_0' graph fast.script \
    --input 2,3,8,8 --format c
test "$(grep -c '"", "_constants", "Module", NULL' out)" = 1 || complain 'constants twice'
grep -q '"_constants", .*NULL, 4, {' out && complain 'constants without values'

# what passes made for inference records no gradient
check 0 'ok && expect_inference(.*) ?' graph "$net" --input 2,3,8,8 --passes conv_bn --format c
mkdir -p '**' && cp fast.script '**/x.script'
check 0 '^tn_module' graph '**/x.script' --input 2,3,8,8 --format c
cp out net.c
built graphmodule_new || complain 'a name ends the comment'

# ---- what the form has not ----
check 1 'node .*: the C form has no calls of modules; expected a graph of operators' \
    graph 'Sequential(Linear(3, 4))' --input 2,3 --layers --format c
test -s out && complain 'half a file is written'
exit $bad
