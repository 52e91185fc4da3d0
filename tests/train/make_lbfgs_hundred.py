#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes lbfgs_hundred.h: the parameters after some of 100 steps of PyTorch's LBFGS in float64, for
# a convex function of two parameters, and the number of calls of the closure. The first parameter
# is real or complex. The function is so smooth (its smallest value is 0), and the steps so short,
# that differences in rounding do not grow: a second run computes the same in another order.
#   PYTHON-WITH-TORCH make_lbfgs_hundred.py > lbfgs_hundred.h
import re
import textwrap

import torch

torch.set_default_dtype(torch.float64)
STEPS, AT, SIZE = 100, (1, 10, 50, 51, 100), 9
START = [-1.2, 0.5, 1.5, 0.75, -0.5, 0.25, 1.0, -0.25, 2.0]
WEIGHTS = [1.0, 2.0, 4.0]

WOLFE = "strong_wolfe"
OPTIONS = [
    dict(lr=0.02, max_iter=1, history_size=5),
    dict(lr=0.01, max_iter=3, history_size=2),
    dict(lr=0.02, max_iter=2, maximize=True),
    dict(lr=0.002, max_iter=4, max_eval=3),
    dict(line_search_fn=WOLFE, max_iter=1, max_eval=2, lr=0.02, history_size=3),
    dict(line_search_fn=WOLFE, max_iter=1, max_eval=3, lr=0.001, history_size=8),
    dict(line_search_fn=WOLFE, max_iter=1, max_eval=2, lr=0.01, maximize=True),
    dict(line_search_fn=WOLFE),
]


def numbers(z):
    """The elements of a tensor: the real parts, then the imaginary ones."""
    return torch.cat([z.real, z.imag]) if z.is_complex() else z


def trajectory(options, complex_, wrong):
    start = torch.tensor(START)
    x = torch.complex(start[:3], start[3:6]) if complex_ else start[:3].clone()
    x, y = torch.nn.Parameter(x), torch.nn.Parameter(start[6:].clone())
    weights = torch.tensor(WEIGHTS)
    optimizer = torch.optim.LBFGS([x, y], **options)
    sign = -1.0 if options.get("maximize") else 1.0
    calls = 0

    def closure():
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        if complex_:
            square = torch.view_as_real(x).square().sum(-1)
            apart = torch.view_as_real(y - x * (0.5 + 0.25j) - 1).square().sum(-1)
        else:
            square, apart = x * x, (y - 0.5 * x - 1).square()
        if wrong:
            loss = sign * ((3 + apart) * apart + square * weights).flip(0).sum()
        else:
            loss = sign * (square * weights + 3 * apart + apart * apart).sum()
        loss.backward()
        return loss

    rows = []
    for step in range(1, STEPS + 1):
        loss = optimizer.step(closure).item()
        if step in AT:
            rows.append((calls, loss, torch.cat([numbers(x.detach()), y.detach()]).tolist()))
    return rows


def checked(options, complex_):
    """The rows; fails if another order of the sums changes them."""
    rows, other = (trajectory(options, complex_, wrong) for wrong in (False, True))
    for (calls, loss, values), (calls_other, _, values_other) in zip(rows, other):
        assert calls == calls_other
        assert all(abs(a - b) < 2e-12 for a, b in zip(values, values_other)), options
    return rows


def write(line):
    """Lines of at most 100 columns to standard output."""
    indent = re.match(" *", line).group() + "  "
    print(textwrap.fill(line, 100, subsequent_indent=indent) if len(line) > 100 else line)


print("/* SPDX-License-Identifier: MIT\n *")
version = torch.__version__.split("+")[0]
print(" * Made by make_lbfgs_hundred.py with PyTorch %s; not edited by hand. */" % version)
print("enum { HUNDRED = %d, HUNDRED_ROWS = %d, HUNDRED_SIZE = %d };" % (STEPS, len(AT), SIZE))
print("static const int hundred_at[HUNDRED_ROWS] = { %s };" % ", ".join(map(str, AT)))
write("static const double hundred_start[HUNDRED_SIZE] = { %s };" % ", ".join(map(repr, START)))
print("static const double hundred_weights[] = { %s };\n" % ", ".join(map(repr, WEIGHTS)))
print("static const struct {\n    const char *spec;\n    bool complex;\n    struct {")
print("        int calls;\n        double loss, values[HUNDRED_SIZE];\n    } at[HUNDRED_ROWS];")
print("} hundred[] = {")
for options in OPTIONS:
    for complex_ in (False, True):
        print('    { "LBFGS(%s)",' % ", ".join("%s=%r" % item for item in options.items()))
        print("      %s,\n      {" % ("true" if complex_ else "false"))
        for calls, loss, values in checked(options, complex_):
            write("        { %d, %r, { %s } }," % (calls, loss, ", ".join(map(repr, values))))
        print("      } },")
print("};")
