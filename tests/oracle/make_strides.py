#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes strides.txt: the layers and operators whose result has its channels last in PyTorch if the
# input has. test_strides.c checks that they have in Tenon, too.
#   PYTHON-WITH-TORCH make_strides.py > strides.txt
# A line is `layer MODE SIZES SPEC` or `op NAME SIZES`, with SIZES of the input, such as 2x8x6x6.
# A SPEC can be evaluated as Python, too. Layers and operators whose result has another order in
# PyTorch are left out: Tenon may keep the order of the input there.
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F

warnings.simplefilter("ignore")
torch.manual_seed(1)
PADDED = ["zeros", "reflect", "replicate", "circular"]
PLANE, SOLID = (2, 8, 6, 6), (2, 8, 6, 6, 6)
LAYERS = {
    PLANE: [
        *("Conv2d(8, 4, 3, padding=1, padding_mode='%s')" % mode for mode in PADDED),
        "Conv2d(8, 4, 1)",
        "Conv2d(8, 8, 3, groups=8)",
        "Conv2d(8, 16, 3, groups=4, stride=2)",
        "Conv2d(8, 4, 3, dilation=2)",
        "Conv2d(8, 4, 3, padding='same')",
        "ConvTranspose2d(8, 4, 3)",
        "ConvTranspose2d(8, 4, 2, stride=2)",
        "ConvTranspose2d(8, 8, 3, groups=4, output_padding=1, stride=2)",
        "MaxPool2d(2)",
        "MaxPool2d(3, stride=1, padding=1, ceil_mode=True)",
        "AvgPool2d(2)",
        "AvgPool2d(3, stride=2, padding=1, count_include_pad=False)",
        "LPPool2d(2, 2)",
        "AdaptiveAvgPool2d(1)",
        "AdaptiveAvgPool2d((3, 2))",
        "AdaptiveAvgPool2d((None, 3))",
        "AdaptiveMaxPool2d(2)",
        "BatchNorm2d(8)",
        "BatchNorm2d(8, track_running_stats=False)",
        "BatchNorm2d(8, affine=False)",
        "InstanceNorm2d(8)",
        "InstanceNorm2d(8, affine=True)",
        "GroupNorm(4, 8)",
        "GroupNorm(1, 8)",
        "LocalResponseNorm(3)",
        "Dropout(0.5)",
        "Dropout2d(0.5)",
        "AlphaDropout(0.5)",
        "FeatureAlphaDropout(0.5)",
        "Upsample(scale_factor=2)",
        "Upsample(scale_factor=2, mode='bilinear')",
        "Upsample(size=(9, 4), mode='bilinear', align_corners=True)",
        "Upsample(scale_factor=2, mode='bicubic')",
        "PixelShuffle(2)",
        "PixelUnshuffle(2)",
        "ChannelShuffle(4)",
        "ZeroPad2d(1)",
        "ZeroPad2d((1, 0, 2, 0))",
        "ConstantPad2d(1, 3.5)",
        "ReflectionPad2d(2)",
        "ReplicationPad2d(2)",
        "CircularPad2d(2)",
        "Softmax2d()",
        "Identity()",
        "PReLU(8)",
        "PReLU()",
        *(
            name + "()"
            for name in (
                "ReLU ReLU6 ELU SELU CELU GELU SiLU Mish Hardswish Hardsigmoid Hardtanh Sigmoid "
                "Tanh LeakyReLU RReLU Softplus Softsign Tanhshrink Softshrink Hardshrink "
                "LogSigmoid"
            ).split()
        ),
        "GELU(approximate='tanh')",
        "Threshold(0.1, 2.0)",
        "Softmax(1)",
        "LogSoftmax(1)",
        "GLU(1)",
    ],
    SOLID: [
        "Conv3d(8, 4, 3, padding=1)",
        "Conv3d(8, 4, 1)",
        "Conv3d(8, 8, 3, groups=4)",
        "ConvTranspose3d(8, 4, 2, stride=2)",
        "MaxPool3d(2)",
        "AvgPool3d(2)",
        "AdaptiveAvgPool3d(1)",
        "AdaptiveAvgPool3d(2)",
        "AdaptiveMaxPool3d(2)",
        "BatchNorm3d(8)",
        "InstanceNorm3d(8)",
        "GroupNorm(4, 8)",
        "Dropout3d(0.5)",
        "Upsample(scale_factor=2)",
        "Upsample(scale_factor=2, mode='trilinear')",
        "ConstantPad3d(1, 3.5)",
        "ReflectionPad3d(1)",
        "ReplicationPad3d(1)",
        "CircularPad3d(1)",
        "ReLU()",
        "GELU()",
    ],
}
OPS = {
    "neg": lambda x: -x,
    "exp": torch.exp,
    "add": lambda x: x + x,
    "add_number": lambda x: x + 1,
    "add_channels": lambda x: x + torch.ones(x.shape[1], *[1] * (x.dim() - 2)),
    "mul": lambda x: x * x,
    "clone": torch.clone,
    "cast": lambda x: x.double(),
    "clamp": lambda x: x.clamp(0, 1),
    "where": lambda x: torch.where(x > 0, x, x + 1),
    "less": lambda x: x < 0,
    "cat": lambda x: torch.cat((x, x), 1),
    "cat_rows": lambda x: torch.cat((x, x), 2),
    "full_like": lambda x: torch.full_like(x, 2),
    "flip": lambda x: x.flip(3),
    "sum_channels": lambda x: x.sum(0, keepdim=True),
    "detach": lambda x: x.detach(),
}
order = {4: torch.channels_last, 5: torch.channels_last_3d}


def is_kept(y):
    """Channels last, and not in the other order as well, as with one channel or one pixel."""
    return y.is_contiguous(memory_format=order[y.dim()]) and not y.is_contiguous()


def main():
    print("# Made by make_strides.py with PyTorch %s" % torch.__version__.split("+")[0])
    left = []
    for shape, specs in LAYERS.items():
        sizes = "x".join(map(str, shape))
        x = torch.randn(shape).to(memory_format=order[len(shape)])
        for spec in specs:
            layer = eval(spec, dict(vars(nn)))
            layer = layer.to(memory_format=order[len(shape)])
            for mode in ("train", "eval"):
                line = "layer %s %s %s" % (mode, sizes, spec)
                print(line) if is_kept(layer.train(mode == "train")(x)) else left.append(line)
        for name, op in OPS.items():
            line = "op %s %s" % (name, sizes)
            print(line) if is_kept(op(x)) else left.append(line)
    print("\n".join(left), file=sys.stderr)


main()
