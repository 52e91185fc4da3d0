#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes lbfgs.h: the parameters after each step of PyTorch's LBFGS in float64, for the minimum of
# Rosenbrock's function, and the number of calls of the closure; and files/lbfgs-ROW.pt, the states
# after `saved` steps, in both formats of torch.save and in each protocol of pickle from 2 to 5.
#   PYTHON-WITH-TORCH make_lbfgs.py > lbfgs.h
import os
import re
import textwrap

import torch

torch.set_default_dtype(torch.float64)
STEPS, SIZE = 5, 6
here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")
START = [-1.2, 0.5, 1.5, 1.0, -0.25, 2.0]

OPTIONS = [
    dict(lr=0.001),
    dict(lr=0.01, max_iter=4, history_size=2),
    dict(lr=0.0005, max_iter=6, max_eval=3, maximize=True),
    dict(line_search_fn="strong_wolfe"),
    dict(line_search_fn="strong_wolfe", max_iter=5, history_size=2),
    dict(line_search_fn="strong_wolfe", max_iter=3, max_eval=5, lr=0.25),
    dict(line_search_fn="strong_wolfe", max_iter=4, lr=8.0, maximize=True),
    dict(line_search_fn="strong_wolfe", tolerance_grad=1.0),
    dict(line_search_fn="strong_wolfe", tolerance_change=0.01, max_iter=7),
    dict(lr=0.0005, max_iter=1),
]


def saved(options):
    """After one iteration, the lists of the state are empty."""
    return 1 if options.get("max_iter") == 1 else 2


def trajectory(number, options):
    x = torch.nn.Parameter(torch.tensor(START[:3]))
    y = torch.nn.Parameter(torch.tensor(START[3:]))
    optimizer = torch.optim.LBFGS([x, y], **options)
    sign = -1.0 if options.get("maximize") else 1.0
    calls = 0

    def closure():
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        loss = sign * (100 * (y - x * x) ** 2 + (1 - x) ** 2).sum()
        loss.backward()
        return loss

    rows = []
    for step in range(STEPS):
        if step == saved(options):
            torch.save(
                optimizer.state_dict(),
                os.path.join(here, "lbfgs-%d.pt" % number),
                pickle_protocol=2 + number % 4,
                _use_new_zipfile_serialization=number % 3 == 2,
            )
        loss = float(optimizer.step(closure))
        values = x.detach().tolist() + y.detach().tolist()
        rows.append((calls, loss, values))
    return rows


def write(line):
    """Lines of at most 100 columns to standard output."""
    indent = re.match(" *", line).group() + "  "
    print(textwrap.fill(line, 100, subsequent_indent=indent) if len(line) > 100 else line)


print("/* SPDX-License-Identifier: MIT\n *")
version = torch.__version__.split("+")[0]
print(" * Made by make_lbfgs.py with PyTorch %s; not edited by hand. */" % version)
print("enum { LBFGS_STEPS = %d, LBFGS_SIZE = %d };" % (STEPS, SIZE))
write("static const double lbfgs_start[LBFGS_SIZE] = { %s };\n" % ", ".join(map(repr, START)))
print("static const struct {\n    const char *spec;\n    int saved;\n    struct {")
print("        int calls;\n        double loss, values[LBFGS_SIZE];\n    } at[LBFGS_STEPS];")
print("} lbfgs[] = {")
for number, options in enumerate(OPTIONS):
    print('    { "LBFGS(%s)",' % ", ".join("%s=%r" % item for item in options.items()))
    print("      %d," % saved(options))
    print("      {")
    for calls, loss, values in trajectory(number, options):
        write("        { %d, %r, { %s } }," % (calls, loss, ", ".join(map(repr, values))))
    print("      } },")
print("};")
