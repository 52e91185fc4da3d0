#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# What PyTorch's layers make of a batch without samples in training, for
# tests/graph/test_empty_batches.c:
#   PYTHON-WITH-TORCH make_empty_batches.py > ../graph/empty_batches.txt
#
#   layer SPEC
#   in DTYPE SHAPE       the inputs of layers.txt, with a batch of size 0
#   refused              or:
#   out SHAPE : value    "?": not compared
#   after NAME : values  the buffers, which have their first values before the call
#   grad NAME 0|nan|none of the sum of all outputs
import os
import re
import warnings

import torch
from cases import NAMES, row, values

warnings.simplefilter("ignore")
nn = torch.nn
DTYPES = {name: dtype for dtype, name in NAMES.items()}
# layers that layers.txt does not have
MORE = (
    ("InstanceNorm2d(3, track_running_stats=True)", ["f64 0,3,2,3"]),
    ("ChannelShuffle(2)", ["f64 0,4,3,3"]),
    ("ChannelShuffle(2)", ["f64 0,4,3"]),
    ("Unflatten(1, (2, 2))", ["f64 0,4"]),
    ("Unflatten(1, (2, -1))", ["f64 0,4"]),
    ("Unflatten(-2, (-1, 2))", ["f64 0,4,3"]),
    ("Unflatten(1, (-1, 3))", ["f64 0,0"]),
    ("Unflatten(0, (-1, 3))", ["f64 0,2"]),
    ("Unflatten(0, (-1, 0))", ["f64 0,2"]),
    ("Unflatten(1, (5, 7))", ["f64 0,4"]),
    ("Unflatten(1, (3, -1))", ["f64 0,4"]),
    ("Unflatten(1, (-1, -1))", ["f64 0,4"]),
    ("Flatten(0)", ["f64 0,4,3"]),
    ("Flatten(2)", ["f64 0,4,3,2"]),
)


def read_layers():
    """The layers of layers.txt with the dtypes and shapes of their inputs."""
    found = []
    for line in open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "layers.txt")):
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "layer":
            found.append((rest, []))
        elif word == "in":
            found[-1][1].append(rest.partition(" :")[0])
    return found


def without_samples(spec, heads):
    """The heads of the inputs with batches of size 0."""
    kind = spec.partition("(")[0]
    recurrent = kind in ("RNN", "LSTM", "GRU")
    second = recurrent or kind == "MultiheadAttention" or kind.startswith("Transformer")
    found = []
    for i, head in enumerate(heads):
        dtype, sizes = head.split()
        sizes = [] if sizes == "-" else [int(n) for n in sizes.split(",")]
        at = 1 if second and ("batch_first=True" not in spec or recurrent and i > 0) else 0
        if len(sizes) > at:
            sizes[at] = 0
        found.append("%s %s" % (dtype, row(sizes)))
    return found


def built(spec):
    """The module in float64; rows of a weight become tensors."""
    theirs = re.sub(
        r"((?:pos_)?weight=)(\[(?:[^][]|\[[^]]*\])*\])",
        r"\1torch.tensor(\2, dtype=torch.float64)",
        spec,
    )
    return eval(theirs, dict(vars(nn), inf=float("inf"), torch=torch)).double().train()


def zeros(head, gradient):
    dtype, sizes = head.split()
    shape = [] if sizes == "-" else [int(n) for n in sizes.split(",")]
    t = torch.zeros(shape, dtype=DTYPES[dtype])
    return t.requires_grad_() if gradient and t.is_floating_point() else t


def kind_of(gradient):
    if gradient is None:
        return "none"
    if not gradient.any():
        return "0"
    if gradient.isnan().all():
        return "nan"
    raise SystemExit("a gradient that is neither 0 nor NaN")


def write(spec, heads):
    torch.manual_seed(3)
    module = built(spec)
    print("layer " + spec)
    for head in heads:
        print("in " + head)
    given = [zeros(head, i == 0) for i, head in enumerate(heads)]
    if isinstance(module, (nn.LSTM, nn.LSTMCell)) and len(given) == 3:
        given = [given[0], tuple(given[1:])]
    try:
        results = module(*given)
    except Exception:
        print("refused")
        return
    results = results if isinstance(results, tuple) else (results,)
    results = [t for r in results for t in (r if isinstance(r, tuple) else (r,))]
    # these two losses of PyTorch return memory that nobody has written
    unset = isinstance(module, (nn.MultiMarginLoss, nn.MultiLabelMarginLoss))
    for y in results:
        print("out %s : %s" % (row(y.shape), "?" if unset or y.numel() > 1 else values(y)))
    for name, b in module.named_buffers():
        print("after %s : %s" % (name, values(b)))
    total = sum(y.sum() for y in results if y.requires_grad)
    if isinstance(total, torch.Tensor):
        try:
            total.backward()
        except RuntimeError:  # PyTorch's PixelShuffle has no gradient of an empty batch
            return
        for name, p in module.named_parameters():
            print("grad %s %s" % (name, kind_of(p.grad)))


seen = set()
for spec, heads in read_layers():
    heads = without_samples(spec, heads)
    if (spec, *heads) not in seen:
        write(spec, heads)
    seen.add((spec, *heads))
for spec, heads in MORE:
    write(spec, heads)
print("end")
