#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# What no function of PyTorch has a name for, and what the other scripts have few of:  PYTHON-WITH-TORCH make-primitives.py > primitives.txt
from cases import *

INF, NAN = float("inf"), float("nan")
FLOATS = (F32, F64, F16, BF16)
SHAPES = [("plain", (2, 3), {}), ("transposed", (3, 4), dict(order=(1, 0))), ("expanded", (1, 3), dict(expand=(4, 3))),
          ("narrowed", (3, 5), dict(narrow=(1, 1, 3))), ("empty", (0, 3), {}), ("scalar", (), {})]


def each(op, call, grad=True, floats=FLOATS, scalar=True, **options):
    for d in floats:
        for name, shape, more in SHAPES:
            if scalar or shape:
                Case("%s/%s-%s" % (op, name, NAMES[d]), op, call, [x(*shape, dtype=d, grad=grad, **more)], **options)


for value in (2.5, -1.0):
    each("add_scalar", lambda t: t + value, value=value)
    each("mul_scalar", lambda t: t * value, value=value)
each("angle", torch.angle, floats=(F32, F64))
each("conj", torch.conj)
each("real", torch.real)
for op in ("isnan", "isinf", "isfinite"):
    call = getattr(torch, op)
    each(op, call, grad=False)
    for d in FLOATS:
        Case("%s/edges-%s" % (op, NAMES[d]), op, call, [n(data=[NAN, INF, -INF, 0.0, -0.0, 1.0], dtype=d)])
each("nonzero", torch.nonzero, grad=False)
each("erfinv", lambda t: torch.erfinv(t), floats=())
for op, call in (("imag", torch.imag), ("view_as_real", torch.view_as_real)):
    each(op, call, floats=(C64, C128))


def relu_grad(gy, y):
    return gy * (y > 0).to(gy.dtype)


def log_softmax_grad(dim):
    return lambda gy, y: gy - y.exp() * gy.sum(dim, keepdim=True)


for d in (F32, F64):
    for name, shape, more in SHAPES:
        Case("relu_grad/%s-%s" % (name, NAMES[d]), "relu_grad", relu_grad, [x(*shape, dtype=d, **more), n(*shape, dtype=d, **more)])
        if shape:
            Case("log_softmax_grad/%s-%s" % (name, NAMES[d]), "log_softmax_grad", log_softmax_grad(-1), [x(*shape, dtype=d, **more), x(*shape, dtype=d, **more)], dim=-1)
        Case("where/first-%s-%s" % (name, NAMES[d]), "where", torch.where, [n(*shape, dtype=BOOL, **more), x(*shape, dtype=d, **more), x(*shape, dtype=d, **more)])
    for shape, dim, start, piece in (((4, 3), 0, 1, (2, 3)), ((4, 3), 1, 0, (4, 2)), ((2, 3, 4), -1, 2, (2, 3, 2)), ((5,), 0, 4, (1,)), ((3, 2), 0, 1, (0, 2)), ((3,), 0, 0, (3,))):
        def spread(gy):
            return torch.narrow_copy(torch.zeros(shape, dtype=gy.dtype), 0, 0, shape[0]).slice_scatter(gy, dim, start, start + piece[dim])
        Case("narrow_grad/%s-%d-%s" % (row(shape), start, NAMES[d]), "narrow_grad", spread, [x(*piece, dtype=d)], shape=shape, dim=dim, start=start)

    for name, rows, classes, reduction in (("none", 3, 4, "none"), ("sum", 3, 4, "sum"), ("mean", 3, 4, "mean"), ("one", 1, 2, "mean"), ("single-class", 2, 1, "sum"), ("many", 9, 5, "none")):
        def back(gy, target, total):
            gx = torch.zeros(rows, classes, dtype=gy.dtype)
            share = (gy / total if reduction == "mean" else gy).expand(rows)
            return gx.scatter(1, target[:, None], -share[:, None])
        Case("nll_loss_grad/%s-%s" % (name, NAMES[d]), "nll_loss_grad", back,
             [x(*((rows,) if reduction == "none" else ()), dtype=d), n(rows, dtype=I64, low=0, high=classes), n(data=float(rows), dtype=d)], classes=classes, reduction=reduction)
    Case("outer/transposed-" + NAMES[d], "outer", torch.outer, [x(6, dtype=d, narrow=(0, 1, 3)), x(1, dtype=d, expand=(2,))])
    Case("mv/narrowed-" + NAMES[d], "mv", torch.mv, [x(3, 5, dtype=d, narrow=(1, 1, 3)), x(1, dtype=d, expand=(3,))])
print("end")
