# SPDX-License-Identifier: MIT
"""Writes quantize.txt: what observers, fake quantization, fusion and dynamic modules give.

    make_quantize.py > quantize.txt

A case begins with `case KIND NAME`; then come tensors, `NAME SHAPE : NUMBERS`, where a shape
without dimensions is `-`. test_quantize_pytorch compares."""
import copy
import warnings

import torch
from torch import nn
from torch.ao import quantization as q
from torch.ao.quantization import observer as o

warnings.simplefilter('ignore')


def put(name, tensor):
    tensor = torch.as_tensor(tensor).detach()
    shape = ' '.join(str(n) for n in tensor.shape) or '-'
    print(name, shape, ':', ' '.join('%.9g' % v for v in tensor.double().reshape(-1).tolist()))


def ranges(name, spec, observer, *batches):
    """A range after several batches, and the scale for it."""
    print('case range', spec)
    for batch in batches:
        put('x', batch)
        observer(batch)
    put('min_val', observer.min_val)
    put('max_val', observer.max_val)
    scale, zero_point = observer.calculate_qparams()
    put('scale', scale.reshape(observer.min_val.shape))
    put('zero_point', zero_point.reshape(observer.min_val.shape))
    print('symmetric' if observer.qscheme in (torch.per_tensor_symmetric,
                                               torch.per_channel_symmetric) else 'affine', '- :',
          int(observer.dtype == torch.qint8))


def batches(seed, *shapes, shift=0.0):
    torch.manual_seed(seed)
    return [torch.randn(*s) * (1 + i) + shift for i, s in enumerate(shapes)]


def observers():
    three = batches(1, (2, 5), (3, 4), (1, 6))
    above = batches(2, (4, 3), (4, 3), shift=9.0)
    ranges('minmax', 'MinMaxRange()', o.MinMaxObserver(), *three)
    ranges('minmax', 'MinMaxRange()', o.MinMaxObserver(), *above)
    ranges('minmax', 'MinMaxRange()', o.MinMaxObserver(), *[-b for b in above])
    ranges('minmax', 'MinMaxRange()', o.MinMaxObserver(), torch.zeros(3))
    ranges('minmax', 'MinMaxRange()', o.MinMaxObserver(), torch.empty(0, 3), three[0])
    ranges('minmax', 'MinMaxRange()',
           o.MinMaxObserver(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric), *three)
    ranges('minmax', 'MinMaxRange()',
           o.MinMaxObserver(qscheme=torch.per_tensor_symmetric), *three)
    ranges('moving', 'MovingAverageRange()', o.MovingAverageMinMaxObserver(), *three)
    ranges('moving', 'MovingAverageRange(0.25)',
           o.MovingAverageMinMaxObserver(averaging_constant=0.25), *above, *above)
    same = batches(3, (4, 3, 2), (4, 3, 2), (4, 3, 2))
    for axis in (0, 1, 2):
        ranges('channel', 'MinMaxRange(dim=%d)' % axis,
               o.PerChannelMinMaxObserver(ch_axis=axis, dtype=torch.qint8,
                                          qscheme=torch.per_channel_symmetric), *same)
    ranges('channel', 'MovingAverageRange(dim=1)',
           o.MovingAveragePerChannelMinMaxObserver(ch_axis=1, dtype=torch.quint8,
                                                   qscheme=torch.per_channel_affine), *same)


def histograms():
    """Data with outliers: the error of the range that PyTorch chooses."""
    for seed, far in ((4, 8.0), (5, 40.0), (6, 3.0)):
        torch.manual_seed(seed)
        x = [torch.randn(600) for _ in range(3)]
        x[1][0] = far
        x[2][5] = -far / 2
        observer = o.HistogramObserver()
        for batch in x:
            observer(batch)
        scale, zero_point = observer.calculate_qparams()
        print('case histogram HistogramRange()')
        for batch in x:
            put('x', batch)
        every = torch.cat(x)
        how = float(scale), int(zero_point), 0, 255
        rounded = torch.fake_quantize_per_tensor_affine(every, *how)
        put('error', ((rounded - every) ** 2).sum())


def fakes():
    torch.manual_seed(7)
    for scale, zero_point, low, high in ((0.1, 0, -128, 127), (0.02, 128, 0, 255), (0.5, 3, 0, 15)):
        x = (torch.randn(6, 7) * 3).requires_grad_()
        y = torch.fake_quantize_per_tensor_affine(x, scale, zero_point, low, high)
        y.backward(torch.ones_like(y) * 2)
        print('case fake', low, high)
        for name, value in (('x', x), ('scale', scale), ('zero_point', zero_point), ('y', y),
                            ('grad', x.grad)):
            put(name, value)
    x = (torch.randn(4, 3, 2) * 3).requires_grad_()
    scale = torch.tensor([0.1, 0.01, 0.3])
    zero_point = torch.tensor([0, 5, -7], dtype=torch.int32)
    y = torch.fake_quantize_per_channel_affine(x, scale, zero_point, 1, -128, 127)
    y.backward(torch.ones_like(y))
    print('case fake -128 127 1')
    for name, value in (('x', x), ('scale', scale), ('zero_point', zero_point), ('y', y),
                        ('grad', x.grad)):
        put(name, value)


def fusions():
    torch.manual_seed(8)
    pairs = [
        ('Conv2d(3, 4, 3)', nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), (2, 3, 6, 5)),
        (
            'Conv1d(3, 4, 3, bias=False)',
            nn.Conv1d(3, 4, 3, bias=False),
            nn.BatchNorm1d(4),
            (2, 3, 6),
        ),
        ('Conv3d(2, 4, 2, groups=2)', nn.Conv3d(2, 4, 2, groups=2), nn.BatchNorm3d(4),
         (1, 2, 4, 3, 4)),
        ('ConvTranspose2d(3, 4, 3)', nn.ConvTranspose2d(3, 4, 3), nn.BatchNorm2d(4), (1, 3, 4, 4)),
        ('Linear(5, 4)', nn.Linear(5, 4), nn.BatchNorm1d(4), (3, 5)),
    ]
    for spec, layer, norm, shape in pairs:
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
        net = nn.Sequential(layer, norm, nn.ReLU()).eval()
        three = copy.deepcopy(net)
        print('case fuse', spec, '|', type(norm).__name__ + '(4)')
        for name, value in net.state_dict().items():
            if 'num_batches' not in name:
                put(name, value)
        fused = q.fuse_modules(net, ['0', '1'])
        put('fused.weight', fused[0].weight)
        put('fused.bias', fused[0].bias)
        x = torch.randn(*shape)
        put('x', x)
        put('y', three(x))


def dynamics():
    torch.manual_seed(9)
    for bias in (True, False):
        layer = nn.Linear(16, 5, bias=bias)
        quantized = q.quantize_dynamic(nn.Sequential(layer), {nn.Linear})
        print('case dynamic Linear(16, 5, bias=%s)' % bias)
        put('weight', layer.weight)
        if bias:
            put('bias', layer.bias)
        x = torch.randn(7, 16)
        put('x', x)
        put('y', layer(x))
        put('quantized', quantized(x))


print('# Written by make_quantize.py with PyTorch %s.' % torch.__version__.split('+')[0])
observers()
histograms()
fakes()
fusions()
dynamics()
