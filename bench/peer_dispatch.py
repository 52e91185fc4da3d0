# SPDX-License-Identifier: MIT
"""The PyTorch side of bench/dispatch: prints lines `case nanoseconds`, medians of the rounds."""

import statistics
import time

import torch

torch.set_num_threads(1)
a = torch.tensor([1.0, 2, 3, 4])
b = a.clone()
leaf = a.clone().requires_grad_()
square = a.clone().reshape(2, 2)
row = a.clone().reshape(1, 4)
ten = torch.nn.Sequential(*(torch.nn.Identity() for _ in range(10)))
linear = torch.nn.Linear(4, 3)
mlp = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
features = torch.rand(1, 64)


def cost(work, parts=1, batch=200):
    for _ in range(batch):
        work()
    times = []
    for _ in range(51):
        start = time.perf_counter_ns()
        for _ in range(batch):
            work()
        times.append((time.perf_counter_ns() - start) / batch / parts)
    return statistics.median(times)


print("add", cost(lambda: torch.add(a, b)))
print("add-gradient", cost(lambda: torch.add(leaf, b)))
print("mul-gradient", cost(lambda: torch.mul(leaf, b)))
print("add-in-place", cost(lambda: a.add_(b)))
print("sum", cost(lambda: torch.sum(a)))
print("view", cost(lambda: a.view(2, 2)))
print("select", cost(lambda: square.select(0, 1)))
print("transpose", cost(lambda: square.transpose(0, 1)))
print("module", cost(lambda: ten(a), parts=10))
print("linear", cost(lambda: linear(row)))
print("mul-backward", cost(lambda: torch.mul(leaf, b).sum().backward()))
print("linear-backward", cost(lambda: linear(row).sum().backward()))
print("mlp-backward", cost(lambda: mlp(features).square().sum().backward()))
