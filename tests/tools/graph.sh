#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon graph: forms, passes, why there is no plan, the page. tests/graph has the tests of graphs.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
net='Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), ReLU(), Flatten(), Linear(288, 4))'

check 0 '^graph\(%self : Sequential, %input : float32\[2, 3, 8, 8\]\)' graph "$net" --input 2,3,8,8
also '^  %relu : .* = relu\( *%batch_norm\) +# 2 \(ReLU\)$'
check 0 '"op": "call_function"' graph "$net" --input 2,3,8,8 --json
check 0 '^digraph' graph "$net" --input 2,3,8,8 --format graphviz
check 0 '^conv_bn: 1 batch norms folded$' graph "$net" --input 2,3,8,8 --passes conv_bn
grep -q batch_norm out && complain 'a folded norm is printed'

# the steps of a plan, and what it needs
check 0 '^conv2d: tn_convolution -> float32\[2, 8, 6, 6\] in slab at [0-9]+' \
    graph "$net" --input 2,3,8,8 --format plan
also '^relu: tn_relu -> .* in place$' '^linear: tn_linear -> float32\[2, 4\] in result$'
check 0 '^plan: [0-9]+ steps; [0-9]+ bytes for values \(at least [0-9]+, ' \
    graph "$net" --input 2,3,8,8 --why --passes conv_bn
also '^conv_bn: 1 batch norms folded$'

# plans of training
check 0 '^training plan for \(float32\[2, 3\]\) with gradients$' \
    graph 'Sequential(Linear(3, 4), Dropout(0.5))' --input 2,3 --why --train
also '^  forward: [0-9]+ steps, .* stay for backward; draws 2 blocks of random numbers$' \
    '^  backward, for gradients of output 0: [0-9]+ steps, '
check 0 '^0/[a-z_]+: .* -> float32\[2, 4\] in block' \
    graph 'Sequential(Linear(3, 4), ReLU())' --input 2,3 --format plan --train
also '^backward/[a-z_]+: '
check 1 '^plan: not made: .*the values of a tensor are read, and a step changes them' \
    graph 'BatchNorm1d(3, momentum=None)' --input 2,3 --why --train
check 2 'plans of training have no passes' \
    graph 'Linear(3, 4)' --input 2,3 --why --train --passes dead

check 0 '^conv_bn: batch_norm stays: no convolution is before it$' \
    graph 'Sequential(Linear(3, 4), BatchNorm1d(4))' --input 2,3 --why --passes conv_bn

# the page: one row for each node that computes, boxes for modules, a rectangle for each value
check 0 '^<!doctype html>' graph "$net" --input 2,3,8,8 --format html
also '<summary>0</summary>' '<tr id="n-conv2d">' '<a href="#n-conv2d">conv2d</a>' \
    'float32\[2, 8, 6, 6\]' '<rect class="hue0"' 'steps 0 to [0-9]+</title>' '</html>$'
grep -qE '(src|href)="[^#]' out && complain 'the page refers to another file'
test "$(grep -c '<tr id=' out)" = 7 || complain 'rows'
check 0 'There is no plan: .*a plan would repeat the same' \
    graph 'Sequential(Linear(3, 4), Dropout(0.5))' --input 2,3 --format html --train
also 'training mode'

check 2 '--format: wrong value, got "pdf"' graph "$net" --input 2,3,8,8 --format pdf
check 1 'nothing' graph "$net" --input 2,3,8,8 --passes nothing
exit $bad
