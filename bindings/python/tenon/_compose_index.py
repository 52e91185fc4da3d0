# SPDX-License-Identifier: MIT
"""Functions that take indices and masks; _index.py has x[...]."""

from ._compose_table import _dim, _function, _method, _named, _own
from ._compose_shape import broadcast_shapes, unbind
from ._tensor import Tensor


@_named("nonzero")
def nonzero(x, *, as_tuple=False):
    found = _own("nonzero", x)
    return unbind(found, 1) if as_tuple else found


@_named("argwhere")
def argwhere(x):
    return _own("nonzero", x)


@_function("where")
def where(condition, input=None, other=None):
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    return _own("where", condition, input, other)


@_method("where")
def where_method(x, condition, other):
    return _own("where", condition, x, other)


def _with_number(name, tensor_name):
    """masked_fill(x, mask, value), where the value may be a tensor without dimensions."""

    def call(x, mask, value):
        if isinstance(value, Tensor):
            return _own(tensor_name, x, mask, value)
        return _own(name, x, mask, value=value)

    def write(x, mask, value):
        from ._ops import operator

        if isinstance(value, Tensor):
            return operator(tensor_name).call((x, mask, value), {}, into=x)
        return operator(name).call((x, mask), {"value": value}, into=x)

    return call, write


_call_fill, _write_fill = _with_number("masked_fill", "masked_fill_tensor")
_named("masked_fill")(_call_fill)
_method("masked_fill_")(_write_fill)


def _scattered(x, dim, index, src, reduce, into):
    from ._make import full
    from ._ops import operator

    if not isinstance(src, Tensor):
        src = full((), src, dtype=x.dtype, device=x.device).expand(index.shape)
    if reduce in (None, "add"):
        name, options = "scatter" if reduce is None else "scatter_add", {"dim": dim}
    elif reduce == "multiply":
        name, options = "scatter_reduce", {"dim": dim, "reduce": "prod"}
    else:
        raise ValueError(f"scatter: reduce: wrong name, got {reduce!r}; expected add or multiply")
    return operator(name).call((x, index, src), options, into=into)


@_named("scatter")
def scatter(x, dim, index, src=None, value=None, *, reduce=None):
    return _scattered(x, dim, index, value if src is None else src, reduce, None)


@_method("scatter_")
def scatter_(x, dim, index, src=None, value=None, *, reduce=None):
    return _scattered(x, dim, index, value if src is None else src, reduce, x)


@_named("index_put")
def index_put(x, indices, values, accumulate=False):
    from ._index import index_put as write

    return write(_own("clone", x), indices, values, accumulate)


@_method("index_put_")
def index_put_(x, indices, values, accumulate=False):
    from ._index import index_put as write

    return write(x, indices, values, accumulate)


@_named("take_along_dim")
def take_along_dim(x, indices, dim=None):
    if dim is None:
        return x.reshape(-1).gather(0, indices.reshape(-1))
    d = _dim(x, dim)
    shape = list(broadcast_shapes(x.shape[:d] + (1,) + x.shape[d + 1:],
                                  indices.shape[:d] + (1,) + indices.shape[d + 1:]))
    size = x.shape[d]
    x = x.expand(shape[:d] + [size] + shape[d + 1:])
    indices = indices.expand(shape[:d] + [indices.shape[d]] + shape[d + 1:])
    return x.gather(d, _own("where", indices < 0, indices + size, indices))


@_named("select_scatter")
def select_scatter(x, src, dim, index):
    y = x.clone()
    y.select(dim, index).copy_(src)
    return y


@_named("slice_scatter")
def slice_scatter(x, src, dim=0, start=None, end=None, step=1):
    y = x.clone()
    y.slice(dim, start, end, step).copy_(src)
    return y


@_named("repeat_interleave")
def repeat_interleave(x, repeats=None, dim=None, *, output_size=None):
    if isinstance(repeats, int):
        return _own("repeat_interleave_scalar", x, repeats=repeats, dim=dim)
    if repeats is None:
        from ._make import arange

        return _own("repeat_interleave", arange(x.numel(), device=x.device), x, dim=0)
    return _own("repeat_interleave", x, repeats, dim=dim, output_size=output_size)


def _corner(name):
    def indices(row, col, offset=0, dtype="int64", device=None):
        from ._make import ones

        full = ones(row, col, device=device)
        return _own("nonzero", _own(name, full, diagonal=offset)).transpose(0, 1).to(dtype)

    return indices


_function("triu_indices")(_corner("triu"))
_function("tril_indices")(_corner("tril"))
