#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes onnx_*.onnx and onnx_*.npz for tests/foreign/test_onnx: operators of ONNX in float64 with
# values that NumPy, PyTorch and the evaluator of the package onnx compute, and a network that
# PyTorch exports. In an .npz file, in.N
# are the inputs, out.N the results, grad.NAME the gradients of the sum of the results times their
# weights (as in make_modules.py), after.NAME the buffers after a call in training mode, whose
# results are train.out.N.
#
#   PYTHON make_onnx.py FOLDER      (needs the package onnx)
import io
import sys
import warnings

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from torch import nn

from make_modules import save_numbers
from onnx_operator_cases import CASES, I64, PREVIEW

warnings.filterwarnings('ignore')
TYPES = {
    np.dtype(k): v
    for k, v in (
        ('float64', TensorProto.DOUBLE),
        ('int64', TensorProto.INT64),
        ('int32', TensorProto.INT32),
        ('uint8', TensorProto.UINT8),
        ('int8', TensorProto.INT8),
        ('bool', TensorProto.BOOL),
        ('uint16', TensorProto.UINT16),
        ('uint64', TensorProto.UINT64),
        ('float32', TensorProto.FLOAT),
    )
}


def judged(op, names, outs, inputs, attributes, opset):
    """The values of the evaluator of the package onnx."""
    domain, _, op = op.rpartition('.')
    node = helper.make_node(op, names, outs, domain=domain, **attributes)
    ins = [
        helper.make_tensor_value_info(n, TYPES[x.dtype], x.shape)
        for n, x in zip(names, inputs)
        if n
    ]
    found = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, None) for n in outs]
    model = helper.make_model(
        helper.make_graph([node], 'case', ins, found), opset_imports=imports(opset)
    )
    given = {n: x for n, x in zip(names, inputs) if n}
    return tuple(ReferenceEvaluator(model).run(None, given))


def imports(opset):
    own = [helper.make_opsetid('', opset)]
    return own + [helper.make_opsetid(PREVIEW[:-1], 1)] if opset > 23 else own


def add_case(index, case, models):
    op, inputs, attributes, function = case[:4]
    opset = case[4] if len(case) > 4 else 17
    nodes, ins, initializers, recorded, results, shared = models.setdefault(
        opset, ([], [], [], {}, {}, {})
    )
    names = []
    for k, x in enumerate(inputs):
        name = 'c%d_%d' % (index, k)
        if x.size == 0:
            name = ''
        elif x.dtype == I64 and x.ndim < 2 and k > 0 or x.dtype == np.float32:
            initializers.append(numpy_helper.from_array(x, name))
        elif id(x) in shared:
            name = shared[id(x)]
        else:
            shared[id(x)] = name
            ins.append(helper.make_tensor_value_info(name, TYPES[x.dtype], x.shape))
            recorded[name] = x
        names.append(name)
    if isinstance(function, int):
        outs = ['y%d_%d' % (index, k) for k in range(function)]
        wanted = judged(op, names, outs, inputs, attributes, opset)
    else:
        wanted = function(*[x for x in inputs if x.size > 0])
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        outs = ['y%d_%d' % (index, k) for k in range(len(wanted))]
    domain, _, op = op.rpartition('.')
    node = helper.make_node(op, names, outs, domain=domain, **attributes)
    nodes.append(node)
    results.update({n: np.asarray(w) for n, w in zip(outs, wanted)})


def tensors(numbers):
    return {
        k: torch.from_numpy(np.ascontiguousarray(v).reshape(np.shape(v)))
        for k, v in numbers.items()
    }


def write_operators(folder):
    models = {}
    for index, case in enumerate(CASES):
        add_case(index, case, models)
    for opset, (nodes, ins, initializers, recorded, results, _) in models.items():
        outs = [
            helper.make_tensor_value_info(n, TYPES[y.dtype], y.shape) for n, y in results.items()
        ]
        graph = helper.make_graph(nodes, 'cases', ins, outs, initializers)
        model = helper.make_model(graph, opset_imports=imports(opset))
        onnx.save(model, folder + '/onnx_operators_%d.onnx' % opset)
        all_numbers = {'in.%d' % i: x for i, x in enumerate(recorded.values())}
        all_numbers.update({'out.%d' % i: y for i, y in enumerate(results.values())})
        save_numbers(folder + '/onnx_operators_%d.npz' % opset, tensors(all_numbers))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3), nn.ReLU())
        self.norm = nn.LayerNorm(3)
        self.attention = nn.MultiheadAttention(3, 1, batch_first=True)
        self.fc = nn.Linear(3, 4)

    def forward(self, x):
        y = self.features(x).flatten(2).transpose(1, 2)
        y = self.norm(y)
        y = y + self.attention(y, y, y, need_weights=False)[0]
        return self.fc(y.mean(1))


def weighted(y, number):
    n = y.numel()
    w = ((7 * torch.arange(n) + 3 * number) % 11 - 5).double() / 8
    return (y * w.reshape(y.shape)).sum()


def write_net(folder):
    torch.manual_seed(0)
    net = Net().double().eval()
    with torch.no_grad():  # the exporter makes one tensor of equal ones
        for p in net.parameters():
            p.add_(torch.randn_like(p) / 8)
    net.features[1].running_mean.uniform_(-0.5, 0.5)
    net.features[1].running_var.uniform_(0.5, 1.5)
    x = torch.randn(2, 2, 5, 4).double()
    raw = io.BytesIO()
    torch.onnx.export(
        net,
        (x,),
        raw,
        dynamo=False,
        opset_version=17,
        input_names=['x'],
        output_names=['y'],
        dynamic_axes={'x': {0: 'n'}},
        training=torch.onnx.TrainingMode.PRESERVE,
        do_constant_folding=False,
    )
    model = onnx.load_from_string(raw.getvalue())
    onnx.save(model, folder + '/onnx_net.onnx')
    recorded = {'in.0': x}
    y = net(x)
    recorded['out.0'] = y
    weighted(y, 0).backward()
    recorded.update({'grad.' + n: p.grad for n, p in net.named_parameters() if p.grad is not None})
    net.train()
    recorded['train.out.0'] = net(x)
    recorded.update({'after.' + n: b for n, b in net.named_buffers() if 'num_' not in n})
    save_numbers(folder + '/onnx_net.npz', recorded)
    samples = {'x': torch.randn(24, 2, 5, 4).double(), 'y': torch.arange(24) % 4}
    save_numbers(folder + '/onnx_samples.npz', samples)


def write_flow(folder):
    """If, Loop and Scan with values from outside, a local function, a sequence, an optional
    input."""
    text = '''
<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
flow (double[3] x, int64 m)
  => (double[3] chosen, double[3] total, double[n, 3] all, double[3] s, double[k] cat)
{
  zero = Constant <value = double {0.0}> ()
  sum = ReduceSum <keepdims = 0> (x)
  positive = Greater (sum, zero)
  chosen = If (positive) <
    then_branch = first () => (double[3] a) { a = local.scaled <by = 3.0> (x) },
    else_branch = second () => (double[3] b) { b = Neg (x) }
  >
  yes = Constant <value = bool {1}> ()
  total, all = Loop (m, yes, x) <
    body = step (int64 i, bool go, double[3] v) => (bool more, double[3] next, double[3] scan) {
      f = CastLike (i, v)
      half = Mul (v, x)
      next = Add (half, f)
      scan = Identity (next)
      limit = Constant <value = double {40.0}> ()
      size = ReduceMax <keepdims = 0> (next)
      more = Less (size, limit)
    }
  >
  s, unused = Scan (x, all) <num_scan_inputs = 1,
    body = add (double[3] c, double[3] e) => (double[3] d, double[3] o) {
      d = Add (c, e)
      o = Identity (d)
    }
  >
  list = SequenceConstruct (x, s)
  more_list = SequenceInsert (list, chosen)
  cat = ConcatFromSequence <axis = 0> (more_list)
}
<domain: "local", opset_import: ["" : 17]>
scaled <by: float = 1.0> (v) => (w)
{
  factor = Constant <value_float: float = @by> ()
  factor_of_type = CastLike (factor, v)
  w = Mul (v, factor_of_type)
}
'''
    model = onnx.parser.parse_model(text)
    onnx.save(model, folder + '/onnx_flow.onnx')
    x = np.array([0.5, -1.0, 2.0])
    recorded = {'in.0': x, 'in.1': np.array(9, I64)}

    def flow(x, m):
        chosen = 3 * x if x.sum() > 0 else -x
        v, steps, go = x, [], True
        for i in range(m):
            v = v * x + i
            steps.append(v)
            if not v.max() < 40:
                break
        s = x + sum(steps)
        return chosen, v, np.stack(steps), s, np.concatenate([x, s, chosen])

    for prefix, sign in (('', 1), ('more.', -1)):
        outs = flow(sign * x, 9)
        recorded.update({prefix + 'out.%d' % i: y for i, y in enumerate(outs)})
    save_numbers(folder + '/onnx_flow.npz', tensors(recorded))


def main(folder):
    write_operators(folder)
    write_net(folder)
    write_flow(folder)


if __name__ == '__main__':
    main(sys.argv[1])
