# SPDX-License-Identifier: MIT
"""Arithmetic and reductions."""

import functools
import math

from ._compose_table import _function, _method, _named, _own
from ._compose_tensor import is_complex
from ._tensor import Tensor

# ---- arithmetic ----------------------------------------------------------------------------------


@_named("rsub")
def rsub(x, other, alpha=1):
    return other - x * alpha


@_named("positive")
def positive(x):
    return x


@_named("deg2rad")
def deg2rad(x):
    return x * (math.pi / 180)


@_named("rad2deg")
def rad2deg(x):
    return x * (180 / math.pi)


@_named("floor_divide")
def floor_divide(x, other):
    return _own("div", x, other, rounding_mode="floor")


@_named("float_power")
def float_power(x, other):
    return _own("pow", x.to("float64"), other)


@_named("isposinf")
def isposinf(x):
    return x == math.inf


@_named("isneginf")
def isneginf(x):
    return x == -math.inf


@_named("clamp", "clip")
def clamp(x, min=None, max=None):
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        from ._make import full

        def bound(value):
            return value if value is None or isinstance(value, Tensor) else full(
                (), value, dtype=x.dtype, device=x.device)

        return _own("clamp_tensor", x, bound(min), bound(max))
    return _own("clamp", x, min=min, max=max)


@_method("clamp_", "clip_")
def clamp_(x, min=None, max=None):
    from ._ops import operator

    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return x.copy_(clamp(x, min, max))
    return operator("clamp").call((x,), {"min": min, "max": max}, into=x)


@_named("clamp_min")
def clamp_min(x, min):
    return clamp(x, min)


@_named("clamp_max")
def clamp_max(x, max):
    return clamp(x, None, max)


@_named("lerp")
def lerp(input, end, weight):
    if isinstance(weight, Tensor):
        return _own("lerp", input, end, weight)
    return _own("lerp_scalar", input, end, weight=weight)


@_named("dist")
def dist(x, other, p=2):
    return (x - other).norm(p)


@_named("vdot")
def vdot(x, other):
    return _own("dot", x.conj() if is_complex(x) else x, other)


@_named("inner")
def inner(x, other):
    if not x.ndim or not other.ndim:
        return x * other
    return _own("tensordot", x, other, dims_a=[-1], dims_b=[-1])


@_named("addmv")
def addmv(x, mat, vec, *, beta=1, alpha=1):
    return _own("mv", mat, vec) * alpha + (x * beta if beta else 0)


@_named("addbmm")
def addbmm(x, batch1, batch2, *, beta=1, alpha=1):
    return (batch1 @ batch2).sum(0) * alpha + (x * beta if beta else 0)


@_named("addr")
def addr(x, vec1, vec2, *, beta=1, alpha=1):
    return _own("outer", vec1, vec2) * alpha + (x * beta if beta else 0)


@_function("einsum")
def einsum(equation, *operands):
    if len(operands) == 1 and not isinstance(operands[0], Tensor):
        operands = tuple(operands[0])
    return _own("einsum", operands, equation=equation)


@_function("tensordot")
def tensordot(a, b, dims=2):
    if isinstance(dims, int):
        return _own("tensordot", a, b, dims=dims)
    first, second = dims
    return _own("tensordot", a, b, dims_a=first, dims_b=second)


@_function("polar")
def polar(abs, angle):
    return _own("complex", abs * angle.cos(), abs * angle.sin())


@_named("logdet")
def logdet(x):
    return _own("linalg_det", x).log()


# ---- reductions ----------------------------------------------------------------------------------


def _extreme(name):
    def extreme(input, dim=None, keepdim=False):
        if isinstance(dim, Tensor):
            return _own("maximum" if name == "max" else "minimum", input, dim)
        if dim is None:
            return _own("a" + name, input)
        return _own(name + "_dim", input, dim=dim, keepdim=keepdim)

    def named(input, *args, other=None, **kwargs):
        return extreme(input, other) if other is not None else extreme(input, *args, **kwargs)

    named.__doc__ = (f"{name}(x): the {name}imum of all elements; {name}(x, dim, keepdim=False): "
                     f"values and indices along dim; {name}(x, other): elementwise.")
    return named


_named("max")(_extreme("max"))
_named("min")(_extreme("min"))


@_named("median")
def median(x, dim=None, keepdim=False):
    if dim is None:
        return _own("median", x)
    return _own("median_dim", x, dim=dim, keepdim=keepdim)


@_named("nanmedian")
def nanmedian(x, dim=None, keepdim=False):
    if dim is None:
        return _own("nanmedian", x)
    return _own("nanmedian_dim", x, dim=dim, keepdim=keepdim)


def _spread(name, x, dim, unbiased, correction, keepdim):
    if isinstance(dim, bool):  # the form var(x, unbiased)
        dim, unbiased = None, dim
    if unbiased is not None:
        if not isinstance(unbiased, bool):
            raise TypeError(f"{name}: unbiased: wrong type, got {unbiased!r}; expected a bool")
        correction = 1 if unbiased else 0
    return _own(name, x, dims=[] if dim is None else dim,
                correction=1.0 if correction is None else float(correction), keepdim=keepdim)


@_named("var")
def var(x, dim=None, unbiased=None, keepdim=False, *, correction=None):
    return _spread("var", x, dim, unbiased, correction, keepdim)


@_named("std")
def std(x, dim=None, unbiased=None, keepdim=False, *, correction=None):
    return _spread("std", x, dim, unbiased, correction, keepdim)


@_function("var_mean")
def var_mean(x, dim=None, unbiased=None, keepdim=False, *, correction=None):
    return (var(x, dim, unbiased, keepdim, correction=correction),
            _mean_beside(x, dim, keepdim))


@_function("std_mean")
def std_mean(x, dim=None, unbiased=None, keepdim=False, *, correction=None):
    return (std(x, dim, unbiased, keepdim, correction=correction),
            _mean_beside(x, dim, keepdim))


def _mean_beside(x, dim, keepdim):
    return _own("mean", x, dims=[] if dim is None or isinstance(dim, bool) else dim,
                keepdim=keepdim)


@_named("allclose")
def allclose(x, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    return bool(_own("isclose", x, other, rtol=rtol, atol=atol, equal_nan=equal_nan).all().item())


@_named("equal")
def equal(x, other):
    return x.shape == other.shape and bool((x == other).all().item())


@_named("diff")
def diff(x, n=1, dim=-1):
    return functools.reduce(lambda y, _: y.slice(dim, 1) - y.slice(dim, 0, -1), range(n), x)


@_function("trapezoid", "trapz")
def trapezoid(y, *, dx=1, dim=-1):
    return (y.slice(dim, 1) + y.slice(dim, 0, -1)).sum(dim) * (dx / 2)


@_named("argsort")
def argsort(x, dim=-1, descending=False, stable=False):
    return _own("sort", x, dim=dim, descending=descending)[1]


@_named("msort")
def msort(x):
    return _own("sort", x, dim=0)[0]


@_named("unique")
def unique(x, sorted=True, return_inverse=False, return_counts=False, dim=None):
    found = _own("unique", x, sorted=sorted, return_inverse=return_inverse,
                 return_counts=return_counts, dim=dim)
    return _wanted(found, return_inverse, return_counts)


@_named("unique_consecutive")
def unique_consecutive(x, return_inverse=False, return_counts=False, dim=None):
    found = _own("unique_consecutive", x, return_inverse=return_inverse,
                 return_counts=return_counts, dim=dim)
    return _wanted(found, return_inverse, return_counts)


def _wanted(found, inverse, counts):
    rows = (found[0],) + (found[1],) * inverse + (found[2],) * counts
    return rows if len(rows) > 1 else rows[0]
