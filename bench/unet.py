# SPDX-License-Identifier: MIT
"""The UNet of the plugin tenon.models for PyTorch, with the same names of parameters.

tests/models/make_models_plugin.py compares the two, and networks.py measures them.
"""

import torch
import torch.nn.functional as F
from torch import nn


class DoubleConv(nn.Module):
    def __init__(self, inner, outer, mid=None):
        super().__init__()
        layers = []
        for a, b in ((inner, mid or outer), (mid or outer, outer)):
            layers += [nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(True)]
        self.double_conv = nn.Sequential(*layers)

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(inner, outer))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, inner, outer, bilinear):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(inner, outer, inner // 2)
        else:
            self.up = nn.ConvTranspose2d(inner, inner // 2, 2, stride=2)
            self.conv = DoubleConv(inner, outer)

    def forward(self, x, skip):
        x = self.up(x)
        high, wide = skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]
        if high > 0 or wide > 0:
            x = F.pad(x, (wide // 2, wide - wide // 2, high // 2, high - high // 2))
        return self.conv(torch.cat((skip, x), 1))


class OutConv(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.conv = nn.Conv2d(inner, outer, 1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    def __init__(self, inner, outer, base=64, depth=4, bilinear=False):
        super().__init__()
        half, self.depth = (2 if bilinear else 1), depth
        sizes = [base << i for i in range(depth + 1)]
        self.inc = DoubleConv(inner, base)
        for i in range(1, depth + 1):
            last = half if i == depth else 1
            setattr(self, "down%d" % i, Down(sizes[i - 1], sizes[i] // last))
        for i in range(1, depth + 1):
            last = 1 if i == depth else half
            up = Up(sizes[depth - i + 1], sizes[depth - i] // last, bilinear)
            setattr(self, "up%d" % i, up)
        self.outc = OutConv(base, outer)

    def forward(self, x):
        levels = [self.inc(x)]
        for i in range(self.depth):
            levels.append(getattr(self, "down%d" % (i + 1))(levels[-1]))
        x = levels.pop()
        for i in range(self.depth):
            x = getattr(self, "up%d" % (i + 1))(x, levels.pop())
        return self.outc(x)
