# SPDX-License-Identifier: MIT
"""Indices of tensors, x[...], with PyTorch's meaning: numbers, slices, None, Ellipsis and bool give
views; lists, tensors and masks select elements together."""

import operator

from ._tensor import Tensor

_PLACES = ("int64", "int32")
_EXPECTED = ("expected integers, slices, None, Ellipsis, bool, lists of integers or of bool, or "
             "tensors of int64, int32 or bool")


def _refuse(i):
    what = f"{i.dtype}{list(i.shape)}" if isinstance(i, Tensor) else f"{type(i).__name__} {i!r}"
    return IndexError(f"index: wrong type, got {what}; {_EXPECTED}")


def _leaves(i):
    """The numbers in nested lists."""
    if isinstance(i, (list, tuple, range)):
        for part in i:
            yield from _leaves(part)
    else:
        yield i


def _listed(i, like):
    """Returns a list, or an array of another library, as a tensor of int64 or bool."""
    from ._make import tensor

    if isinstance(i, range):
        i = list(i)
    if isinstance(i, (list, tuple)):
        numbers = list(_leaves(i))
        if not all(type(v) is bool for v in numbers):
            try:
                numbers = [operator.index(v) for v in numbers if type(v) is not bool or _refused(v)]
            except TypeError:
                raise IndexError(f"index: wrong type in a list, got {i!r}; expected integers or "
                                 "bool, not both") from None
        return tensor(i, dtype=None if numbers else "int64", device=like.device)
    found = tensor(i, device=like.device)
    return found.cast("int64") if found.dtype in ("int8", "int16") else found


def _refused(value):
    raise TypeError(value)


def _is_array(i):
    return isinstance(i, (list, tuple, range)) or (hasattr(i, "__array_interface__")
                                                   and getattr(i, "ndim", 0) > 0)


def _bound(value):
    if value is None:
        return None
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"slice: wrong type, got {value!r}; expected integers or None") from None


def _entries(index, like):
    """Returns the parts of an index, lists among them as tensors."""
    if not isinstance(index, tuple):
        if isinstance(index, list) and any(isinstance(i, (list, tuple, slice, Tensor))
                                           or i is None or i is Ellipsis for i in index):
            raise IndexError("index: a list of lists, tensors or slices has two meanings; write "
                             "x[tuple(i)] for one index of each dimension, x[tenon.tensor(i)] for "
                             "an index of the first")
        index = (index,)
    return [_listed(i, like) if not isinstance(i, Tensor) and _is_array(i) else i for i in index]


def _dims_of(i):
    """The number of dimensions that a part of an index uses up."""
    if i is None or i is Ellipsis or isinstance(i, bool):
        return 0
    return i.ndim if isinstance(i, Tensor) and i.dtype == "bool" else 1


def parse(x, index):
    """Returns the view of x that the simple parts of an index give, and the tensors that select
    elements of the view, with the dimension of the view at which each begins."""
    parts = _entries(index, x)
    used = sum(_dims_of(i) for i in parts)
    if used > x.ndim:
        raise IndexError(f"too many indices for tensor of dimension {x.ndim}: they are for {used}")
    if sum(i is Ellipsis for i in parts) > 1:
        raise IndexError("index: more than one Ellipsis (...); expected at most one")
    found, dim, dims, tensors = x, 0, [], []
    for i in parts:
        if i is None:
            found, dim = found.unsqueeze(dim), dim + 1
        elif i is Ellipsis:
            dim += x.ndim - used
        elif isinstance(i, slice):
            step = 1 if i.step is None else _bound(i.step)
            if step <= 0:
                raise ValueError(f"slice: wrong step, got {step}; expected at least 1: "
                                 "tenon.flip(x, dims) turns a dimension round")
            start, stop = _bound(i.start), _bound(i.stop)
            if start is not None or stop is not None or step != 1:
                found = found.slice(dim, start, stop, step)
            dim += 1
        elif isinstance(i, bool) or isinstance(i, Tensor) and not i.ndim and i.dtype == "bool":
            from ._make import tensor

            found = found.unsqueeze(dim)
            tensors.append(tensor([0] if i else [], dtype="int64", device=x.device))
            dims.append(dim)
            dim += 1
        elif isinstance(i, Tensor) and i.ndim:
            if i.dtype not in _PLACES + ("bool",):
                raise _refuse(i)
            tensors.append(i)
            dims.append(dim)
            dim += _dims_of(i)
        else:
            try:
                place = operator.index(i)
            except TypeError:
                raise _refuse(i) from None
            found = found.select(dim, place)
    return found, tensors, dims


def get(x, index):
    from ._ops import operator as find

    found, tensors, dims = parse(x, index)
    if tensors:
        return find("index").call((found, tensors), {"dims": dims})
    return found.expand(found.shape) if found is x else found


def _put(place, tensors, dims, values, accumulate=False):
    """Writes into a tensor where the indices select."""
    from ._ops import operator as find

    one = len(tensors) == 1 and tensors[0].dtype == "bool" and values.numel() == 1
    if one and not accumulate and "complex" not in values.dtype:
        values = values.cast(place.dtype)  # PyTorch takes it for a number
    find("index_put").call((place, values, tensors), {"accumulate": accumulate, "dims": dims},
                           into=place)


def _value_of(value, place):
    """Returns what is assigned as a tensor: a number has the dtype of the place. A float becomes
    an integer there as in PyTorch, without its fraction."""
    from ._make import full, tensor

    if isinstance(value, Tensor):
        return value
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()  # a number of NumPy
    if value is None or isinstance(value, (str, bytes)):
        raise TypeError(f"value: wrong type, got {type(value).__name__}; expected a number, a "
                        "tensor, a list or an array")
    if not isinstance(value, (bool, int, float, complex)):
        return tensor(value, dtype=place.dtype, device=place.device)
    if place.dtype == "bool":
        value = bool(value)
    elif "int" in place.dtype and isinstance(value, float):
        value = int(value)
    return full((), value, dtype=place.dtype, device=place.device)


def _without_ones(value):
    """Returns a tensor without the leading dimensions of size 1, with which it still broadcasts."""
    shape = value.shape
    first = next((d for d, size in enumerate(shape) if size != 1), len(shape))
    return value.reshape(shape[first:]) if first else value


def put(x, index, value):
    value = _value_of(value, x)
    if index is True:  # alone it stands for all of x, and the value may have another dtype
        index = None
    place, tensors, dims = parse(x, index)
    if tensors:
        _put(place, tensors, dims, _without_ones(value))
    else:
        place.copy_(value if value.shape == place.shape else _without_ones(value))


def index_put(x, indices, values, accumulate=False):
    """Writes values into x at indices, a tuple of tensors, and None for a dimension without."""
    tensors, dims = dims_of_indices(x, indices)
    _put(x, tensors, dims, values, accumulate)
    return x


def dims_of_indices(x, indices):
    """Returns the tensors among the indices of index_put, one for each dimension and None for one
    that is not indexed, and the dimensions at which they begin."""
    found = [_listed(i, x) if i is not None and not isinstance(i, Tensor) else i for i in indices]
    tensors, dims, at = [], [], 0
    for i in found:
        if i is not None:
            tensors.append(i)
            dims.append(at)
        at += 1 if i is None else _dims_of(i)
    return tensors, dims
