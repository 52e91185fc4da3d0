#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes optim_hundred.h: the parameters after 100 steps of PyTorch's optimizers in float64, with
# two groups of different options. torch.optim has no Lion: its numbers are those of the rule of its
# paper, computed with NumPy.
#   PYTHON-WITH-TORCH make_optim_hundred.py > optim_hundred.h
import re
import textwrap

import numpy
import torch

torch.set_default_dtype(torch.float64)  # also for the numbers that optimizers keep as states
STEPS, AT = 100, (1, 7, 100)
# Two parameters of the first group, one of the second; Muon takes only matrices.
SHAPES = ((2, 3), (3,), (3, 2))
SIZE = 15

# Name, options of the first group, options of the second group that differ.
RULES = [
    ("SGD", dict(lr=0.05), {"lr": 0.01}),
    (
        "SGD",
        dict(lr=0.05, momentum=0.9, dampening=0.2, weight_decay=0.1),
        dict(momentum=0.5, maximize=True),
    ),
    (
        "SGD",
        dict(lr=0.02, momentum=0.8, nesterov=True),
        dict(lr=0.05, nesterov=False, weight_decay=0.2),
    ),
    ("Adam", {}, {"lr": 0.01}),
    (
        "Adam",
        dict(lr=0.05, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1, amsgrad=True),
        dict(betas=(0.7, 0.99), maximize=True),
    ),
    ("AdamW", {}, {"lr": 0.01}),
    (
        "AdamW",
        dict(lr=0.05, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.3, amsgrad=True),
        dict(amsgrad=False, maximize=True),
    ),
    ("NAdam", {}, {"lr": 0.01}),
    (
        "NAdam",
        dict(lr=0.05, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1, momentum_decay=0.02),
        dict(decoupled_weight_decay=True, betas=(0.7, 0.99)),
    ),
    ("NAdam", dict(lr=0.02, weight_decay=0.2, maximize=True), dict(maximize=False)),
    ("RAdam", {}, {"lr": 0.01}),
    (
        "RAdam",
        dict(lr=0.05, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1),
        dict(decoupled_weight_decay=True, betas=(0.7, 0.99)),
    ),
    ("RAdam", dict(lr=0.02, weight_decay=0.2, maximize=True), dict(betas=(0.9, 0.5))),
    ("Adagrad", {}, {"lr": 0.1}),
    (
        "Adagrad",
        dict(lr=0.1, lr_decay=0.05, weight_decay=0.1, initial_accumulator_value=0.5, eps=1e-3),
        dict(lr_decay=0.0, maximize=True),
    ),
    ("Adadelta", {}, {"lr": 0.5}),
    (
        "Adadelta",
        dict(lr=2.0, rho=0.8, eps=1e-3, weight_decay=0.1),
        dict(rho=0.5, maximize=True),
    ),
    ("Adamax", {}, {"lr": 0.01}),
    (
        "Adamax",
        dict(lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
        dict(betas=(0.5, 0.9), maximize=True),
    ),
    ("RMSprop", {}, {"lr": 0.001}),
    (
        "RMSprop",
        dict(lr=0.02, alpha=0.9, eps=1e-3, weight_decay=0.1, momentum=0.8, centered=True),
        dict(momentum=0.5, maximize=True),
    ),
    ("RMSprop", dict(lr=0.02, momentum=0.9), dict(momentum=0.0)),
    ("RMSprop", dict(lr=0.02, centered=True, weight_decay=0.05), dict(centered=False, alpha=0.5)),
    ("Rprop", {}, {"lr": 0.05}),
    (
        "Rprop",
        dict(lr=0.1, etas=(0.4, 1.5), step_sizes=(1e-3, 0.2)),
        dict(etas=(0.9, 1.01), maximize=True),
    ),
    ("ASGD", {}, {"lr": 0.1}),
    (
        "ASGD",
        dict(lr=0.1, lambd=0.01, alpha=0.6, t0=20.0, weight_decay=0.1),
        dict(lambd=0.1, maximize=True),
    ),
    ("Lion", {}, {"lr": 0.01}),
    (
        "Lion",
        dict(lr=0.02, betas=(0.7, 0.9), weight_decay=0.1),
        dict(betas=(0.0, 0.5), maximize=True),
    ),
    ("Adafactor", {}, {"lr": 0.1}),
    (
        "Adafactor",
        dict(lr=0.05, beta2_decay=-0.5, eps=(1e-3, 0.01), d=2.0, weight_decay=0.1),
        dict(beta2_decay=-1.0, maximize=True),
    ),
    ("Muon", {}, {"lr": 0.01}),
    (
        "Muon",
        dict(lr=0.02, weight_decay=0.01, momentum=0.8, nesterov=False),
        dict(ns_steps=3, adjust_lr_fn="match_rms_adamw"),
    ),
    (
        "Muon",
        dict(ns_coefficients=(3.0, -3.2, 1.2), eps=1e-5, adjust_lr_fn="spectral_unclamped"),
        dict(adjust_lr_fn="original", nesterov=False),
    ),
]


class Numbers:
    """Numbers in [-1, 1) that the test computes in the same way."""

    def __init__(self):
        self.state = 1

    def next(self):
        self.state = (self.state * 1103515245 + 12345) % 2**31
        return self.state / 2**30 - 1

    def tensor(self, shape):
        count = int(numpy.prod(shape))
        return torch.tensor([self.next() for _ in range(count)]).reshape(shape)


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
        options = dict(lr=lr, betas=betas, weight_decay=weight_decay, maximize=maximize)
        super().__init__(params, options)

    def step(self):
        for group in self.param_groups:
            first, second = group["betas"]
            for p in group["params"]:
                x, g = p.detach().numpy(), p.grad.numpy() * (-1 if group["maximize"] else 1)
                state = self.state[p]
                m = state.get("exp_avg", numpy.zeros_like(x))
                sign = numpy.sign(first * m + (1 - first) * g)
                x -= group["lr"] * (sign + group["weight_decay"] * x)
                state["exp_avg"] = second * m + (1 - second) * g


def flat(parameters):
    return [float(v) for p in parameters for v in p.detach().reshape(-1)]


def trajectory(name, options, other):
    numbers = Numbers()
    shapes = [s for s in SHAPES if name != "Muon" or len(s) == 2]
    parameters = [torch.nn.Parameter(numbers.tensor(s)) for s in shapes]
    kind = Lion if name == "Lion" else getattr(torch.optim, name)
    groups = [{"params": parameters[:-1]}, {"params": parameters[-1:], **other}]
    optimizer = kind(groups, **options)
    rows = []
    for step in range(1, STEPS + 1):
        for p in parameters:
            p.grad = numbers.tensor(p.shape)
        optimizer.step()
        if step in AT:
            rows.append(flat(parameters))
    return rows


def text(options):
    return ", ".join("%s=%r" % item for item in options.items())


def write(line):
    """Lines of at most 100 columns to standard output."""
    indent = re.match(" *", line).group() + "  "
    print(textwrap.fill(line, 100, subsequent_indent=indent) if len(line) > 100 else line)


def main():
    print("/* SPDX-License-Identifier: MIT\n *")
    version = torch.__version__.split("+")[0]
    print(" * Made by make_optim_hundred.py with PyTorch %s; not edited by hand. */" % version)
    print("enum { RULE_STEPS = %d, RULE_SIZE = %d, RULE_ROWS = %d };" % (STEPS, SIZE, len(AT)))
    print("static const int rule_at[RULE_ROWS] = { %s };\n" % ", ".join(map(str, AT)))
    print("static const struct {\n    const char *name, *options, *other;")
    print("    double values[RULE_ROWS][RULE_SIZE];\n} rules[] = {")
    for name, options, other in RULES:
        print('    { "%s",\n      "%s",\n      "%s",\n      {' % (name, text(options), text(other)))
        for row in trajectory(name, options, other):
            write("        { %s }," % ", ".join(repr(v) for v in row))
        print("      } },")
    print("};")


if __name__ == "__main__":
    main()
