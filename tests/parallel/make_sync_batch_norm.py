#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes sync_batch_norm.txt: what PyTorch's BatchNorm2d gives for a whole batch."""
import math
import os
import struct

import torch


def numbers(shape, seed):
    count = math.prod(shape)
    values = [math.sin(i * 7 + seed * 13 + 0.3 * (i % 5)) for i in range(count)]
    values = [struct.unpack("f", struct.pack("f", v))[0] for v in values]
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def row(tensor):
    return " ".join("%.17g" % v for v in tensor.detach().flatten().tolist())


def case(name, momentum):
    shape = (6, 3, 2, 2)
    norm = torch.nn.BatchNorm2d(3, momentum=momentum).double()
    y, gx, weight, bias = [], [], [], []
    for step in range(2):
        x = numbers(shape, step).requires_grad_()
        norm.zero_grad()
        result = norm(x)
        result.backward(numbers(shape, step + 10))
        y.append(row(result))
        gx.append(row(x.grad))
        weight.append(row(norm.weight.grad))
        bias.append(row(norm.bias.grad))
    norm.eval()
    parts = y + gx + weight + bias + [row(norm.running_mean), row(norm.running_var)]
    return "\n".join([name] + parts + [row(norm(numbers(shape, 5)))]) + "\n"


path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sync_batch_norm.txt")
with open(path, "w") as file:
    file.write(case("momentum", 0.3) + case("cumulative", None))
