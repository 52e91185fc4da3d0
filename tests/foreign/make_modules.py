#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes module_*.pt2, module_*.npz and refused_*.pt2 for tests/foreign/test_pt2: small networks in
# float64, and what PyTorch computes with them. In an .npz file, in.N are the inputs, out.N the
# results, grad.NAME the gradients of the sum of the results times their weights, after.NAME the
# buffers after the call; `train.` stands before the numbers of a call in training mode.
#
#   PYTHON make_modules.py FOLDER
import io
import json
import math
import sys
import warnings
import zipfile

import numpy
import torch
import torchvision
from torch import nn

warnings.filterwarnings('ignore')


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(2)
        self.act = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
        return self.drop(self.act(self.norm(self.conv(x)))) + x


class Net(nn.Module):
    """A block that is called twice, tied weights, a buffer that is not saved, a constant, views of
    one storage, sizes with names, results with names, one of them a number."""

    def __init__(self):
        super().__init__()
        self.block = Block()
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(2 * 9, 4), nn.Tanh())
        self.out = nn.Linear(4, 4, bias=False)
        self.back = nn.Linear(4, 4, bias=False)
        self.back.weight = self.out.weight
        whole = torch.arange(8.0, dtype=torch.float64) / 8
        self.register_buffer('scale', whole[:4] + 1, persistent=False)
        self.register_buffer('lower', whole[:4])
        self.register_buffer('shift', whole[4:])
        self.constant = torch.tensor([1.0, -1.0, 0.5, 2.0], dtype=torch.float64)

    def forward(self, x, *, mask):
        y = self.head(self.block(self.block(x)))
        y = self.back(torch.sin(self.out(y))) * self.scale + self.shift * mask - self.lower
        n = x.shape[0] * 2
        return {'y': y.reshape(n, 2), 'sum': (y * self.constant).sum(), 'n': n}


class Flow(nn.Module):
    """Control flow that depends on values, and a part without gradients."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.5, -0.25, 1.5], dtype=torch.float64))

    def forward(self, x):
        w = self.weight
        y = torch.cond(x.sum() > 0, lambda x, w: x.sin() * w, lambda x, w: x.cos() - w, (x, w))
        i, z = torch.while_loop(
            lambda i, z: i < 3, lambda i, z: (i + 1, z * 0.5 + i), (torch.tensor(0), y)
        )
        with torch.no_grad():
            k = (z * z).mean()
        return y * k, z


@torch.library.custom_op('acme::scale', mutates_args=())
def scale(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
    return x * factor


@torch.library.custom_op('acme::swirl', mutates_args=())
def swirl(x: torch.Tensor, a: float) -> tuple[torch.Tensor, torch.Tensor]:
    y = x * math.sin(a) + torch.cos(x)
    return y, y.sum()


@scale.register_fake
def _(x, factor=2.0):
    return torch.empty_like(x)


@swirl.register_fake
def _(x, a):
    return torch.empty_like(x), x.new_empty(())


class Custom(nn.Module):
    """Operators that only a plugin has (examples/rules.c)."""

    def forward(self, x):
        y, total = torch.ops.acme.swirl(torch.ops.acme.scale(x), 0.75)
        return torch.ops.acme.scale(y, 0.125), total


class Write(nn.Module):
    """A buffer and an argument that the program writes."""

    def __init__(self):
        super().__init__()
        self.register_buffer('count', torch.zeros(3, dtype=torch.float64))

    def forward(self, x):
        self.count.add_(x.sum(0))
        x.mul_(2)
        return x + self.count


class Old(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.norm = nn.LayerNorm(2)

    def forward(self, x):
        return self.norm(self.fc(x))


class Vision(nn.Module):
    """Functions of torchvision, with gradients to all that have them."""

    def __init__(self):
        super().__init__()
        shapes = {'image': (2, 4, 5, 6), 'offset': (2, 24, 3, 2), 'mask': (2, 12, 3, 2)}
        shapes.update(weight=(6, 2, 2, 3), bias=(6,))
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.randn(shape)))

    def forward(self, boxes, scores, rois):
        kept = torchvision.ops.nms(boxes, scores, 0.3)
        mean = torchvision.ops.roi_align(self.image, rois, (2, 3), 0.75, -1, True)
        edges = torchvision.ops.roi_align(self.image, rois, 2, sampling_ratio=2)
        moved = torchvision.ops.deform_conv2d(
            self.image, self.offset, self.weight, self.bias, (2, 3), (1, 2), (1, 2), self.mask
        )
        return kept, mean, edges, moved


def write_vision(folder):
    torch.manual_seed(5)
    net = Vision().double().eval()
    corners = torch.rand(12, 2).double() * 4
    boxes = torch.cat([corners, corners + 0.5 + 2 * torch.rand(12, 2)], 1)
    rois = torch.tensor([[1, 0, 0, 5, 4], [0, 1.5, -1, 9, 3], [1, 2, 2, 2, 2]]).double()
    args = boxes, torch.rand(12).double(), rois
    write(folder + '/module_vision.pt2', members_of(export(net, args)))
    numbers = {}
    call(net, args, {}, '', numbers)
    save_numbers(folder + '/module_vision.npz', numbers)


def by_group(x, weight, offs):
    """The rows of each group, which ends before row offs[g], times the matrix of the group."""
    ends = offs.tolist()
    return torch.cat([x[a:b] @ w for a, b, w in zip([0] + ends, ends, weight)])


@torch.library.custom_op('transformers::grouped_mm_fallback', mutates_args=())
def grouped_mm_fallback(
    input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor
) -> torch.Tensor:
    return by_group(input, weight, offs)


@grouped_mm_fallback.register_fake
def _(input, weight, offs):
    return input.new_empty(input.shape[0], weight.shape[2])


def grouped_backward(ctx, grad):
    with torch.enable_grad():
        x, weight = (saved.detach().requires_grad_() for saved in ctx.saved_tensors[:2])
        y = by_group(x, weight, ctx.saved_tensors[2])
    return *torch.autograd.grad(y, (x, weight), grad), None


grouped_mm_fallback.register_autograd(
    grouped_backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
)


class Grouped(nn.Module):
    """Experts, as transformers calls them; the second of them gets no row."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4, 2))
        self.fc = nn.Linear(4, 4)

    def forward(self, x, offs):
        return grouped_mm_fallback(torch.tanh(self.fc(x)), self.weight, offs)


def write_grouped(folder):
    torch.manual_seed(6)
    net = Grouped().double().eval()
    args = torch.randn(5, 4).double(), torch.tensor([2, 2, 5], dtype=torch.int32)
    write(folder + '/module_grouped.pt2', members_of(export(net, args)))
    numbers = {}
    call(net, args, {}, '', numbers)
    save_numbers(folder + '/module_grouped.npz', numbers)


def stripped(graph):
    """Traces of the stack name files of the machine."""
    for node in graph['nodes']:
        node['metadata'] = {k: v for k, v in node['metadata'].items() if k == 'nn_module_stack'}
        for value in node['inputs']:
            if 'as_graph' in value['arg']:
                stripped(value['arg']['as_graph']['graph'])


def members_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        found = {n: old.read(n) for n in old.namelist() if 'serialization_id' not in n}
    for name in found:
        if name.endswith('models/model.json'):
            program = json.loads(found[name])
            stripped(program['graph_module']['graph'])
            found[name] = json.dumps(program, separators=(',', ':')).encode()
        if name.endswith('sample_inputs/model.pt'):
            found[name] = b''
    return found


def write(path, members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, 'w') as new:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = method
            new.writestr(info, data, compresslevel=9)


def weights_of(shape, number):
    n = int(numpy.prod(shape))
    values = [((7 * i + 3 * number) % 11 - 5) / 8 for i in range(n)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def leaves(value):
    if isinstance(value, dict):
        return [x for part in value.values() for x in leaves(part)]
    if isinstance(value, (list, tuple)):
        return [x for part in value for x in leaves(part)]
    return [value]


def call(net, args, kwargs, prefix, out):
    for i, x in enumerate(leaves([args, kwargs])):
        out['%sin.%d' % (prefix, i)] = x.clone()
    results = leaves(net(*[x.clone() for x in args], **kwargs))
    total = 0
    for i, y in enumerate(results):
        if not isinstance(y, torch.Tensor):
            continue
        out['%sout.%d' % (prefix, i)] = y.detach().clone()
        if y.requires_grad:
            total = total + (y * weights_of(y.shape, i)).sum()
    for p in net.parameters():
        p.grad = None
    if isinstance(total, torch.Tensor):
        total.backward()
    for name, p in net.named_parameters():
        if p.grad is not None:
            out['%sgrad.%s' % (prefix, name)] = p.grad.clone()
    for name, b in net.named_buffers():
        out['%safter.%s' % (prefix, name)] = b.clone()


def save_numbers(path, numbers):
    write(
        path,
        {
            name
            + '.npy': (lambda raw: (numpy.save(raw, x.numpy(force=True)), raw.getvalue())[1])(
                io.BytesIO()
            )
            for name, x in numbers.items()
        },
    )


def export(net, args, kwargs=None, dynamic=None, decompose=False):
    program = torch.export.export(net, args, kwargs, dynamic_shapes=dynamic)
    if decompose:
        program = program.run_decompositions()
    data = io.BytesIO()
    torch.export.save(program, data)
    return data.getvalue()


def saved(state):
    data = io.BytesIO()
    torch.save(state, data)
    return data.getvalue()


def old_layout(members, net):
    """The layout that PyTorch 2.6 writes."""
    program = json.loads(members[[n for n in members if n.endswith('model.json')][0]])
    program['schema_version'] = {'major': 8, 'minor': 2}
    del program['guards_code']
    for node in program['graph_module']['graph']['nodes']:
        del node['name']
        del node['is_hop_single_tensor_return']
        for value in node['inputs']:
            del value['kind']
    return {
        'version': b'8.2',
        'serialized_exported_program.json': json.dumps(program).encode(),
        'serialized_state_dict.pt': saved(net.state_dict()),
        'serialized_constants.pt': saved({}),
        'serialized_example_inputs.pt': b'',
    }


def edited(members, change):
    """A copy of an archive with another program."""
    name = [n for n in members if n.endswith('model.json')][0]
    program = json.loads(members[name])
    change(program)
    return {**members, name: json.dumps(program, separators=(',', ':')).encode()}


def refuse(folder, members):
    """Files that are refused, made of one that is not."""
    name = [n for n in members if n.endswith('model.json')][0]
    root = name.split('/')[0]

    def schema(program):
        program['schema_version']['major'] = 9

    def functions(program):
        nodes = program['graph_module']['graph']['nodes']
        nodes[0]['target'] = 'torch.ops.mylib.unknown.default'
        nodes[1]['target'] = 'torch.ops.aten.unheard_of.default'

    def argument(program):
        node = program['graph_module']['graph']['nodes'][0]
        node['inputs'].append({'name': 'loudness', 'arg': {'as_int': 3}})

    def undefined(program):
        node = program['graph_module']['graph']['nodes'][0]
        node['inputs'][0]['arg'] = {'as_tensor': {'name': 'nowhere'}}

    def custom(program):
        specs = program['graph_module']['signature']['input_specs']
        specs[0] = {'custom_obj': {'arg': {'name': 'x'}, 'custom_obj_name': 'thing'}}

    def twice(program):
        node = program['graph_module']['graph']['nodes'][0]
        node['inputs'].append(node['inputs'][0])

    def result(program):
        specs = program['graph_module']['signature']['input_specs']
        name = program['graph_module']['graph']['nodes'][0]['outputs'][0]
        specs[-1] = {'user_input': {'arg': name}}

    def output(program):
        specs = program['graph_module']['signature']['output_specs']
        name = program['graph_module']['graph']['nodes'][0]['outputs'][0]
        specs[0] = {'user_output': {'arg': name}}

    def nested(program):
        node = program['graph_module']['graph']['nodes'][0]
        x = node['inputs'][0]['arg']['as_tensor']
        node['target'] = 'torch.ops.aten.alias.default'
        node['inputs'] = [{'name': 'self', 'arg': {'as_nested_tensors': [[x], [x]]}}]
        y = node['outputs'][0]['as_tensor']
        node['outputs'] = [{'as_tensors': [y, {'name': 'another'}]}]

    for word, change in (
        ('schema', schema),
        ('functions', functions),
        ('argument', argument),
        ('undefined', undefined),
        ('custom', custom),
        ('twice', twice),
        ('result', result),
        ('output', output),
        ('nested', nested),
    ):
        # tests/tools reads one of them in builds without zlib, too
        method = zipfile.ZIP_STORED if word == 'functions' else zipfile.ZIP_DEFLATED
        write('%s/refused_%s.pt2' % (folder, word), edited(members, change), method)
    doubled = members[name].replace(b'"target":', b'"target": "x", "target":', 1)
    write(folder + '/refused_doubled.pt2', {**members, name: doubled})
    write(folder + '/refused_several.pt2', {**members, root + '/models/b.json': members[name]})
    write(folder + '/refused_compiled.pt2', {root + '/data/aotinductor/model/a.so': b'code'})
    table = [n for n in members if n.endswith('weights_config.json')][0]
    offset = b'"storage_offset": {"as_int": %d}'
    beyond = members[table].replace(offset % 0, offset % 99)
    write(folder + '/refused_beyond.pt2', {**members, table: beyond})
    pickled = members[table].replace(b'"use_pickle": false', b'"use_pickle": true')
    write(folder + '/refused_pickle.pt2', {**members, table: pickled})


def main(folder):
    torch.manual_seed(3)
    batch = torch.export.Dim('batch', min=1, max=64)
    net = Net().double().eval()
    for norm in (net.block.norm,):
        norm.running_mean.uniform_(-0.5, 0.5)
        norm.running_var.uniform_(0.5, 1.5)
    args, kwargs = (torch.randn(2, 2, 3, 3).double(),), {'mask': torch.ones(4).double()}
    dynamic = {'x': {0: batch}, 'mask': None}
    data = export(net, args, kwargs, dynamic)
    numbers = {}
    call(net, args, kwargs, '', numbers)
    call(net, (torch.randn(3, 2, 3, 3).double(),), kwargs, 'more.', numbers)
    call(net.train(), args, kwargs, 'train.', numbers)
    write(folder + '/module_net.pt2', members_of(data))
    save_numbers(folder + '/module_net.npz', numbers)

    torch.manual_seed(3)
    net = Net().double().train()
    data = export(net, args, kwargs, dynamic)
    numbers = {}
    call(net, args, kwargs, 'train.', numbers)
    call(net.eval(), args, kwargs, '', numbers)
    write(folder + '/module_train.pt2', members_of(data), zipfile.ZIP_STORED)
    save_numbers(folder + '/module_train.npz', numbers)

    torch.manual_seed(3)
    block = nn.Sequential(nn.Conv2d(2, 2, 1, bias=False), nn.BatchNorm2d(2)).double().train()
    data = export(block, args, decompose=True)
    numbers = {}
    call(block, args, {}, 'train.', numbers)
    write(folder + '/module_decomposed.pt2', members_of(data))
    save_numbers(folder + '/module_decomposed.npz', numbers)

    flow = Flow()
    x = torch.tensor([0.5, -0.25, 0.75], dtype=torch.float64)
    write(folder + '/module_flow.pt2', members_of(export(flow, (x,))))
    numbers = {}
    call(flow, (x,), {}, '', numbers)
    call(flow, (-x,), {}, 'more.', numbers)
    save_numbers(folder + '/module_flow.npz', numbers)

    writer = Write()
    x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
    plain = members_of(export(writer, (x.clone(),)))
    written = members_of(export(Write(), (x.clone(),), decompose=True))
    write(folder + '/module_write.pt2', plain)
    write(folder + '/module_written.pt2', written)

    x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3) / 4
    write(folder + '/module_custom.pt2', members_of(export(Custom(), (x,))))
    y, total = Custom()(x)
    save_numbers(folder + '/module_custom.npz', {'in.0': x, 'out.0': y, 'out.1': total})

    torch.manual_seed(4)
    old = Old().double().eval()
    x = torch.randn(4, 3).double()
    members = members_of(export(old, (x,)))
    write(folder + '/module_old.pt2', old_layout(members, old), zipfile.ZIP_STORED)
    numbers = {}
    call(old, (x,), {}, '', numbers)
    save_numbers(folder + '/module_old.npz', numbers)
    refuse(folder, members)
    write_vision(folder)
    write_grouped(folder)


if __name__ == '__main__':
    main(sys.argv[1])
