# SPDX-License-Identifier: MIT
#
# Special functions for make_elementwise_special.py. PyTorch's float32 results are rounded from
# float64; its trigamma has 10 digits, and its incomplete gamma functions have 9 above 20.
import math

import mpmath
import torch

from cases import F64


def precise(call):
    """call in float64, rounded to the dtype that PyTorch's result has."""

    def wide(a):
        if a.dtype == F64 or not a.dtype.is_floating_point:
            return call(a)
        return call(a.to(F64)).to(a.dtype)

    return wide


def trigamma(a):
    """polygamma(1, a), for which PyTorch has only 10 digits."""
    right = torch.special.zeta(torch.full_like(a, 2.0), torch.where(a > 0, a, 1 - a))
    return torch.where(a > 0, right, (math.pi / torch.sin(math.pi * a)) ** 2 - right)


class Trigamma(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return trigamma(a)

    @staticmethod
    def backward(ctx, gy):
        return gy * torch.polygamma(2, ctx.saved_tensors[0])


class Digamma(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return torch.digamma(a)

    @staticmethod
    def backward(ctx, gy):
        return gy * trigamma(ctx.saved_tensors[0])


def polygamma(order, a):
    if not a.dtype.is_floating_point:
        return torch.polygamma(order, a)
    return (
        Digamma.apply(a)
        if order == 0
        else Trigamma.apply(a) if order == 1 else torch.polygamma(order, a)
    )


class Incomplete(torch.autograd.Function):
    """igamma and igammac of single numbers, by mpmath."""

    @staticmethod
    def forward(ctx, a, b, upper):
        ctx.save_for_backward(a, b)
        ctx.upper = upper
        ends = (lambda v: (v, mpmath.inf)) if upper else (lambda v: (0, v))
        pairs = zip(a.double().tolist(), b.double().tolist())
        values = [mpmath.gammainc(i, *ends(j), regularized=True) for i, j in pairs]
        return torch.tensor([float(v) for v in values], dtype=a.dtype)

    @staticmethod
    def backward(ctx, gy):
        a, b = (t.double() for t in ctx.saved_tensors)
        slope = torch.exp((a - 1) * torch.log(b) - b - torch.lgamma(a))
        return None, (gy * (-slope if ctx.upper else slope)).to(gy.dtype), None
