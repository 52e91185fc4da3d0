#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes whether PyTorch's modules accept extreme values of each option, for
# tests/module/test_layer_options.c:
#
#   test_layer_options --list |
#       PYTHON-WITH-TORCH make_layer_options.py [TYPE]... > layer_options.txt
#
#   layer SPEC        built and called with the inputs that layers.txt has for it
#   try OPTION VALUE VERDICT : SPEC        (the verdicts are those of option_values.py)
import ast
import inspect
import os
import sys

import torch
from option_values import EXTREMES, verdict

nn = torch.nn
SCOPE = dict(vars(nn), inf=float("inf"), nan=float("nan"))
NAMES = {"f64": torch.float64, "i64": torch.int64, "bool": torch.bool}


def read_layers():
    """The first entry of each type, and those of types that take one of two options."""
    found, layers, spec = set(), [], None
    for line in open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "layers.txt")):
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "layer":
            key = rest.partition("(")[0]
            if key in ("Upsample", "FractionalMaxPool2d", "FractionalMaxPool3d"):
                key += rest.partition("scale_factor")[1] + rest.partition("output_ratio")[1]
            spec = None if key in found or key == "Sequential" else rest
            found.add(key)
            if spec is not None:
                layers.append((spec, []))
        elif word == "in" and spec is not None:
            head, _, numbers = rest.partition(" :")
            dtype, sizes = head.split()
            sizes = [] if sizes == "-" else [int(n) for n in sizes.split(",")]
            values = [float(v) for v in numbers.split()]
            layers[-1][1].append(
                torch.tensor(values, dtype=torch.float64).to(NAMES[dtype]).reshape(sizes)
            )
    return layers


def replaced(spec, option, value):
    """The spec with one argument of the outermost call exchanged.

    None if the signature has no such name.
    """
    call = ast.parse(spec, mode="eval").body
    names = list(inspect.signature(SCOPE[call.func.id].__init__).parameters)[1:]
    if call.func.id in ("RNN", "LSTM", "GRU"):
        names = list(inspect.signature(nn.RNNBase.__init__).parameters)[2:10] + ["nonlinearity"] * (
            call.func.id == "RNN"
        )
    parts, there = [], False
    for i, argument in enumerate(call.args):
        there = there or names[i] == option
        parts.append(value if names[i] == option else ast.unparse(argument))
    for keyword in call.keywords:
        there = there or keyword.arg == option
        parts.append(
            "%s=%s" % (keyword.arg, value if keyword.arg == option else ast.unparse(keyword.value))
        )
    if not there:
        parts.append("%s=%s" % (option, value))
    return "%s(%s)" % (call.func.id, ", ".join(parts)) if option in names else None


def called(spec, inputs):
    module = eval(spec, SCOPE).double()
    given = inputs
    if isinstance(module, (nn.LSTM, nn.LSTMCell)) and len(inputs) == 3:
        given = [inputs[0], tuple(inputs[1:])]
    with torch.no_grad():
        return module(*given)


def main():
    options = {}
    for line in sys.stdin:
        word, kind, option, type_ = line.split()[:4]
        if word == "layer":
            options.setdefault(kind, []).append((option, type_))
    print(
        "# Written by make_layer_options.py with PyTorch %s." % torch.__version__.partition("+")[0]
    )
    for spec, inputs in read_layers():
        torch.manual_seed(1)
        if sys.argv[1:] and spec.partition("(")[0] not in sys.argv[1:]:
            continue
        type_ = spec.partition("(")[0]
        print("layer " + spec)
        for option, kind in options.get(type_, []):
            for value in EXTREMES[kind]:
                text = replaced(spec, option, value)
                if text is not None:
                    print(
                        "try %s %s %s : %s"
                        % (option, value, verdict(lambda: called(text, inputs)), text)
                    )
                    sys.stdout.flush()


main()
