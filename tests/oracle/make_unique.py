#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Distinct values, counts:  PYTHON-WITH-TORCH make_unique.py > unique.txt
from cases import *


def parts(values, inverse, counts, got):
    got, none = list(got) if isinstance(got, tuple) else [got], torch.zeros(0, dtype=I64)
    return got[0], got[1] if inverse else none, got[-1] if counts else none


for op, call in (("unique", torch.unique), ("unique_consecutive", torch.unique_consecutive)):
    for name, a, dim in [
        (NAMES[d], n(data=[[2, 1, 1], [1, 1, 3]], dtype=d), None)
        for d in FLOATS + (I64, I32, I8, U8, BOOL)
    ] + [
        ("nan", n(data=[NAN, 1.0, 1.0, NAN, -INF]), None),
        ("transposed", n(3, 4, dtype=I64, order=(1, 0)), None),
        ("empty", n(0), None),
        ("scalar", n(), None),
        ("rows", n(data=[[1, 2], [1, 2], [0, 5], [1, 2]], dtype=I64), 0),
        ("columns", n(data=[[1, 1, 0, 1], [2, 2, 5, 2], [3, 3, 1, 4]], dtype=F32), 1),
        ("three", n(3, 2, 3, dtype=I64, low=0, high=2), 0),
        ("middle", n(2, 5, 2, dtype=I64, low=0, high=2), 1),
        ("vector", n(data=[3, 3, 1], dtype=I64), 0),
        ("negative-dim", n(3, 4, dtype=I64, low=0, high=2), -1),
    ]:
        for inverse, counts in ((True, True), (False, False), (True, False), (False, True)):
            case(
                op,
                "%s-%d%d" % (name, inverse, counts),
                lambda t: parts(
                    None,
                    inverse,
                    counts,
                    call(t, return_inverse=inverse, return_counts=counts, dim=dim),
                ),
                [a],
                return_inverse=inverse,
                return_counts=counts,
                **({} if dim is None else {"dim": dim})
            )
for name, a, w, least in (
    [(NAMES[d], n(data=[1, 3, 1, 0, 5], dtype=d), None, 0) for d in (I64, I32, I8, U8)]
    + [
        ("none", places(0, high=1), None, 0),
        ("none-least", places(0, high=1), None, 3),
        ("least", n(data=[1, 2], dtype=I64), None, 5),
        ("expanded", n(data=[2], dtype=I64, expand=(4,)), None, 1),
    ]
    + [
        ("weights-" + NAMES[d], n(data=[1, 3, 1], dtype=I64), n(3, dtype=d), 0)
        for d in (F32, F64, I64, I32)
    ]
):
    case("bincount", name, lambda t, k=None: torch.bincount(t, k, least), [a, w], minlength=least)
for name, a, bins, low, high in [(NAMES[d], n(20, dtype=d), 5, -2.0, 2.0) for d in (F32, F64)] + [
    ("range", n(4, 5), 10, 0.0, 0.0),
    ("equal", n(data=[2.0, 2.0]), 4, 0.0, 0.0),
    ("given-equal", n(7), 4, 1.0, 1.0),
    ("transposed", n(3, 4, order=(1, 0)), 3, -1.0, 1.0),
    ("ends", n(data=[0.0, 1.0, 0.5, -0.1, 1.1, NAN]), 2, 0.0, 1.0),
    ("empty", n(0), 3, 0.0, 0.0),
]:
    case(
        "histc", name, lambda t: torch.histc(t, bins, low, high), [a], bins=bins, min=low, max=high
    )

# ---- slices of tensors of three and four dimensions: sorted by their elements in x's order ----
for op, call in (("unique", torch.unique), ("unique_consecutive", torch.unique_consecutive)):
    for shape in ((4, 2, 2), (2, 4, 2), (2, 2, 5), (2, 3, 2, 2), (2, 2, 3, 2), (2, 2, 2, 4)):
        for dim in range(-len(shape), len(shape)):
            case(
                op,
                "slices-%s-%d" % ("x".join(map(str, shape)), dim),
                lambda t: tuple(call(t, return_inverse=True, return_counts=True, dim=dim)),
                [n(*shape, dtype=F32 if dim < 0 else I64, low=0, high=2)],
                return_inverse=True,
                return_counts=True,
                dim=dim,
            )
