#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes functions_*.pt2 and functions_*.npz: what PyTorch computes for the functions that
# plugins/foreign has rules for. Each .pt2 file is one program that calls many functions, each on
# inputs of its own; the .npz file beside it has the inputs, the results and the gradients of the
# inputs, of the sum of all results times the weights of weights_of().
# tests/foreign/test_functions replays them.
#
#   PYTHON make_functions.py FOLDER           writes the files
#   PYTHON make_functions.py --each FOLDER    writes a program for each case
#   PYTHON make_functions.py --check FOLDER   compares with the files that exist
import io
import json
import sys
import zipfile

import numpy
import torch

from function_cases import GROUPS


def weights_of(shape, number):
    """Exact in float64, and so that permuted results have another sum."""
    n = 1
    for size in shape:
        n *= size
    values = [((7 * i + 3 * number) % 11 - 5) / 8 for i in range(n)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def flat(value):
    if isinstance(value, (list, tuple)):
        return [x for part in value for x in flat(part)]
    return [value] if isinstance(value, torch.Tensor) else []


class Program(torch.nn.Module):
    """All cases of a group, one after the other."""

    def __init__(self, cases, true=False):
        super().__init__()
        self.cases, self.true = cases, true

    def forward(self, *inputs):
        results, at, self.counts = [], 0, []
        for case in self.cases:
            n = len(case.inputs)
            function = case.truth if self.true and case.truth else case.function
            given = flat(function(*inputs[at : at + n]))
            results += given
            self.counts.append(len(given))
            at += n
        return tuple(results)


def gradients(inputs, results):
    total = 0
    for number, y in enumerate(results):
        if not y.requires_grad:
            continue
        if y.is_complex():
            y = torch.view_as_real(y.resolve_conj())
        total = total + (y.double() * weights_of(y.shape, number)).sum()
    wanted = [x for x in inputs if x.requires_grad]
    if not isinstance(total, torch.Tensor):
        return [None] * len(wanted)
    return torch.autograd.grad(total, wanted, allow_unused=True)


def stripped(node):
    """Metadata of nodes is half of the file, and no reader needs these parts of it."""
    node['metadata'] = {}
    return node


def small(data):
    """The archive with compressed records and without what depends on the machine."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, 'w') as new:
        for name in sorted(old.namelist()):
            if '/.data/serialization_id' in name:
                continue
            record = old.read(name)
            if name.endswith('models/model.json'):
                program = json.loads(record)
                graph = program['graph_module']['graph']
                graph['nodes'] = [stripped(node) for node in graph['nodes']]
                record = json.dumps(program, separators=(',', ':')).encode()
            if name.endswith('sample_inputs/model.pt'):
                record = b''
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, record, compresslevel=9)
    return out.getvalue()


DTYPES = (
    torch.float64,
    torch.float32,
    torch.int64,
    torch.int32,
    torch.int8,
    torch.bool,
    torch.complex128,
    torch.complex64,
)


def numbers(x):
    x = x.detach().resolve_conj().cpu()
    if x.is_complex():
        x = torch.view_as_real(x)
    return x.double().reshape(-1).numpy(force=True)


def arrays(inputs, results, gradients, names):
    """An .npz archive without times. `layout` has for each tensor, in the order of `values`: 0 for
    an input without gradient, 1 for one with gradient, 2 for a result, 3 for the gradient of an
    input; its dtype's position in DTYPES; the number of its dimensions; their sizes. `names` has a
    line for each tensor, the function that it belongs to."""
    layout, values = [], []
    tensors = [(int(x.requires_grad), x) for x in inputs]
    tensors += [(2, x) for x in results] + [(3, x) for x in gradients]
    for kind, x in tensors:
        layout += [kind, DTYPES.index(x.dtype), x.dim(), *x.shape]
        values.append(numbers(x))
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w') as archive:
        for name, value in (
            ('layout', numpy.array(layout, numpy.int64)),
            ('values', numpy.concatenate(values)),
            ('names', numpy.frombuffer('\n'.join(names).encode(), numpy.uint8)),
        ):
            raw = io.BytesIO()
            numpy.save(raw, value)
            info = zipfile.ZipInfo(name + '.npy', (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, raw.getvalue(), compresslevel=9)
    return out.getvalue()


def build(cases):
    inputs = [x for case in cases for x in case.inputs]
    program = Program(cases)
    exported = torch.export.export(program, tuple(x.detach().clone() for x in inputs))
    leaves = [x.detach().clone().requires_grad_(x.requires_grad) for x in inputs]
    program = Program(cases, true=True)
    results = program(*leaves)
    wanted = [x for x in leaves if x.requires_grad]
    given = [
        torch.zeros_like(x) if g is None else g for x, g in zip(wanted, gradients(leaves, results))
    ]
    names = [case.name for case in cases for x in case.inputs]
    names += [name for case, n in zip(cases, program.counts) for name in [case.name] * n]
    names += [case.name for case in cases for x in case.inputs if x.requires_grad]
    data = io.BytesIO()
    torch.export.save(exported, data)
    return small(data.getvalue()), arrays(inputs, results, given, names)


def called_functions():
    """The functions in the programs, such as aten.add.Tensor."""
    found = set()
    for cases in GROUPS.values():
        inputs = tuple(x.detach().clone() for case in cases for x in case.inputs)
        graph = torch.export.export(Program(cases), inputs).graph
        found |= {str(node.target) for node in graph.nodes if node.op == 'call_function'}
    return found


def main(words):
    groups = GROUPS
    if words[:1] == ['--each']:
        groups = {
            '%s_%03d' % (name, i): [case]
            for name, cases in GROUPS.items()
            for i, case in enumerate(cases)
        }
    check = words[:1] == ['--check']
    folder = words[-1]
    wrong = 0
    torch.manual_seed(1)
    for name, cases in groups.items():
        for suffix, data in zip(('pt2', 'npz'), build(cases)):
            path = '%s/functions_%s.%s' % (folder, name, suffix)
            if not check:
                with open(path, 'wb') as file:
                    file.write(data)
                continue
            with open(path, 'rb') as file:
                if file.read() != data:
                    print('%s differs' % path)
                    wrong = 1
    return wrong


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
