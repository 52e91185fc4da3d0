#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes training.pt2, training.npz and training.txt for tests/foreign/training.sh: a network in
# float64, exported in evaluation, the samples, and what PyTorch computes in steps over all samples.
#
#   PYTHON make_training.py FOLDER
import io
import sys
import warnings
import zipfile

import torch
from torch import nn

from make_modules import members_of, save_numbers, write

warnings.filterwarnings('ignore')


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU()
        )
        self.fc = nn.Linear(4, 3)
        self.register_buffer('scale', torch.tensor([1.5], dtype=torch.float64), persistent=False)

    def forward(self, x):
        return self.fc(self.features(x).mean((2, 3)) * self.scale)


def train(net, x, y, optimizer):
    found = []
    net.train()
    for _ in range(4):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    net.eval()
    found.append(nn.functional.cross_entropy(net(x), y).item())
    return found


def new():
    torch.manual_seed(3)
    net = Net().double()
    with torch.no_grad():
        net.features[1].running_mean.uniform_(-0.2, 0.2)
        net.features[1].running_var.uniform_(0.5, 1.5)
    return net


def main(folder):
    torch.manual_seed(5)
    x = torch.randn(12, 2, 5, 5, dtype=torch.float64)
    y = torch.arange(12) % 3
    save_numbers(f'{folder}/training.npz', {'x': x, 'y': y})
    net = new().eval()
    batch = torch.export.Dim('batch', min=1)
    program = torch.export.export(net, (x[:4],), dynamic_shapes={'x': {0: batch}})
    data = io.BytesIO()
    torch.export.save(program, data)
    write(f'{folder}/training.pt2', members_of(data.getvalue()), zipfile.ZIP_STORED)
    with open(f'{folder}/training.txt', 'w') as out:
        for name, make in (
            ('sgd', lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01)),
            ('adam', lambda p: torch.optim.Adam(p, lr=0.02)),
        ):
            net = new()
            found = train(net, x, y, make(net.parameters()))
            print(name, *[f'{v:.17g}' for v in found], file=out)


main(sys.argv[1])
