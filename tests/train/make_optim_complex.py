#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes optim_complex.h: complex parameters after 100 steps of PyTorch's optimizers in complex128,
# by the rules of make_optim_hundred.py. PyTorch refuses complex parameters in Adafactor and Muon.
# Lion, which torch.optim lacks, steps the real view, as the other rules do.
#   PYTHON-WITH-TORCH make_optim_complex.py > optim_complex.h
import torch

from make_optim_hundred import AT, RULES, STEPS, Lion, Numbers, text, write

SHAPES = ((2, 3), (3,))
SIZE = 18


def trajectory(name, options, other):
    numbers = Numbers()
    parameters = [torch.view_as_complex(numbers.tensor(s + (2,))) for s in SHAPES]
    stepped = parameters
    if name == "Lion":
        stepped = [torch.view_as_real(p) for p in parameters]
    stepped = [torch.nn.Parameter(p) for p in stepped]
    kind = Lion if name == "Lion" else getattr(torch.optim, name)
    groups = [{"params": stepped[:-1]}, {"params": stepped[-1:], **other}]
    optimizer = kind(groups, **options)
    rows = []
    for step in range(1, STEPS + 1):
        for p, shape in zip(stepped, SHAPES):
            grad = numbers.tensor(shape + (2,))
            p.grad = torch.view_as_complex(grad) if p.is_complex() else grad
        optimizer.step()
        if step in AT:
            rows.append([float(v) for p in parameters for v in torch.view_as_real(p).reshape(-1)])
    return rows


def main():
    print("/* SPDX-License-Identifier: MIT\n *")
    version = torch.__version__.split("+")[0]
    print(" * Made by make_optim_complex.py with PyTorch %s; not edited by hand. */" % version)
    print("enum { COMPLEX_STEPS = %d, COMPLEX_SIZE = %d," % (STEPS, SIZE), end="")
    print(" COMPLEX_ROWS = %d };" % len(AT))
    print("static const int complex_at[COMPLEX_ROWS] = { %s };\n" % ", ".join(map(str, AT)))
    print("static const struct {\n    const char *name, *options, *other;")
    print("    double values[COMPLEX_ROWS][COMPLEX_SIZE];\n} complex_rules[] = {")
    for name, options, other in RULES:
        if name in ("Adafactor", "Muon"):
            continue
        print('    { "%s",\n      "%s",\n      "%s",\n      {' % (name, text(options), text(other)))
        for row in trajectory(name, options, other):
            write("        { %s }," % ", ".join(repr(v) for v in row))
        print("      } },")
    print("};")


if __name__ == "__main__":
    main()
