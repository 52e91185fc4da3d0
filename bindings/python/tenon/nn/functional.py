# SPDX-License-Identifier: MIT
"""The operators by the names and with the parameters of torch.nn.functional:
functional.cross_entropy(x, y), functional.linear(x, weight, bias)."""

from .. import _ops
from .._signatures import FUNCTIONAL_ROWS as _ROWS
from .._tensor import Tensor as _Tensor


def _own(name, *args, **options):
    return _ops.operator(name).call(args, options)


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
                  reduction="mean", label_smoothing=0.0):
    """The cross entropy of logits [N, C, ...] with classes [N, ...] or probabilities."""
    _old(size_average, reduce)
    options = {"reduction": reduction, "ignore_index": ignore_index,
               "label_smoothing": label_smoothing}
    if weight is None:
        return _own("cross_entropy", input, target, **options)
    return _own("cross_entropy_weighted", input, target, weight, **options)


def _old(size_average, reduce):
    if size_average is not None or reduce is not None:
        raise TypeError("size_average, reduce: not available; use reduction")


def _cast(name):
    def function(input, dim=None, _stacklevel=3, dtype=None):
        if dim is None:
            raise TypeError(f"{name}: dim: missing; it has no default")
        if dtype is not None:
            input = input.to(dtype)
        return _own(name, input, dim=dim)

    function.__name__ = function.__qualname__ = name
    return function


softmax, log_softmax, softmin = _cast("softmax"), _cast("log_softmax"), _cast("softmin")


def _pool(name):
    def function(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                 return_indices=False):
        own = name + "_with_indices" if return_indices else name
        return _own(own, input, kernel=kernel_size, stride=[] if stride is None else stride,
                    padding=padding, dilation=dilation, ceil_mode=ceil_mode)

    function.__name__ = function.__qualname__ = name
    return function


def _adaptive(name):
    def function(input, output_size, return_indices=False):
        return _own(name + "_with_indices" if return_indices else name, input,
                    output_size=output_size)

    function.__name__ = function.__qualname__ = name
    return function


for _n in "123":
    globals()[f"max_pool{_n}d"] = _pool(f"max_pool{_n}d")
    globals()[f"adaptive_max_pool{_n}d"] = _adaptive(f"adaptive_max_pool{_n}d")


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None,
                recompute_scale_factor=None, antialias=False):
    """Resizes the dimensions after the second one to `size`, or by `scale_factor`."""
    if antialias:
        raise TypeError("interpolate: antialias: not available, got True; expected False")
    count = input.ndim - 2
    if isinstance(size, int):
        size = [size] * count
    if isinstance(scale_factor, (int, float)):
        scale_factor = [scale_factor] * count
    return _own("interpolate", input, output_size=[] if size is None else size, mode=mode,
                align_corners=bool(align_corners),
                scale_factor=[] if scale_factor is None else scale_factor,
                recompute_scale_factor=bool(recompute_scale_factor))


def one_hot(tensor, num_classes=-1):
    """A vector for each class, with a 1 at its number."""
    return _own("one_hot", tensor, classes=num_classes)


def pad(input, pad, mode="constant", value=None):
    """Adds elements before and after the last dimensions: pad = (left, right, top, bottom, ...)."""
    return _own("pad", input, sizes=pad, mode=mode, value=0 if value is None else value)


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    base = name[:-1] if name.endswith("_") else name
    found = _ops.function(name, _ROWS) or (_ops.function(base, _ROWS) and _ops.function(name))
    if found is None:
        raise AttributeError(f"nn.functional has no function {name}, and no operator has this name")
    return found


def __dir__():
    from .. import _api

    return sorted(set(_ROWS) | set(_api.OPERATORS)
                  | {n for n in globals() if not n.startswith("_")})
