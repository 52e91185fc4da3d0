# SPDX-License-Identifier: MIT
"""Indices of tensors, x[...], with PyTorch's meaning: numbers, slices, None, Ellipsis and bool give
views; lists, tensors and masks select elements together."""

import math
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


class Selection:
    """What tensors and masks select of x together, which begin at the dimensions `dims` of x."""

    def __init__(self, x, tensors, dims):
        from ._compose_shape import broadcast_shapes

        self.places, self.dims = [], []  # indices, and the dimension of each
        for i, dim in zip(tensors, dims):
            if i.dtype != "bool":
                rows = [i.cast("int64") if i.dtype == "int32" else i]
            else:
                self._check_mask(x, i, dim)
                found = i.nonzero()
                rows = [found.select(1, d) for d in range(i.ndim)]
            self.places += rows
            self.dims += range(dim, dim + len(rows))
        try:
            self.shape = broadcast_shapes(*[i.shape for i in self.places])
        except RuntimeError as error:
            raise IndexError(f"index: {error}") from None
        near = self.dims == list(range(self.dims[0], self.dims[0] + len(self.dims)))
        self.first = self.dims[0] if near else 0  # where they come in the result
        self.rest = [d for d in range(x.ndim) if d not in self.dims]
        self.order = self.rest[:self.first] + self.dims + self.rest[self.first:]

    @staticmethod
    def _check_mask(x, mask, dim):
        if mask.shape != x.shape[dim:dim + mask.ndim]:
            raise IndexError(f"The shape of the mask {list(mask.shape)} does not match the shape "
                             f"of the indexed tensor {list(x.shape)} at dimension {dim}")

    def check(self, x):
        """Fails if an index is out of range where nothing is selected; otherwise gather does."""
        if math.prod(self.result(x)):
            return
        for i, dim in zip(self.places, self.dims):
            size = x.shape[dim]
            if i.numel() and (i.amin().item() < -size or i.amax().item() >= size):
                raise IndexError(f"index is out of bounds for dimension {dim} with size {size}, "
                                 "where nothing is selected")

    def offsets(self, x):
        """Returns the vector that selects along the dimensions, merged into one."""
        from ._make import arange

        found, step = None, 1
        for i, dim in reversed(list(zip(self.places, self.dims))):
            size = x.shape[dim]
            at = i.reshape([-1])
            at = tensor_where(at < 0, at + size, at)
            steps = arange(0, size, device=x.device) * step
            more = own("gather", steps, at, dim=0).reshape(list(i.shape)).expand(self.shape)
            found = more if found is None else found + more
            step *= size
        return found.reshape([-1])

    def merged(self, x):
        x = x.permute(self.order) if self.order != list(range(x.ndim)) else x
        if len(self.dims) == 1:
            return x
        shape = list(x.shape)
        count = len(self.dims)
        shape[self.first:self.first + count] = [math.prod(shape[self.first:self.first + count])]
        return x.reshape(shape)

    def result(self, x):
        rest = [x.shape[d] for d in self.rest]
        return rest[:self.first] + list(self.shape) + rest[self.first:]


def own(name, *args, **options):
    from ._ops import operator as find

    return find(name).call(args, options)


def tensor_where(condition, a, b):
    return own("where", condition, a, b)


def get(x, index):
    found, tensors, dims = parse(x, index)
    if not tensors:
        return found.expand(found.shape) if found is x else found
    chosen = Selection(found, tensors, dims)
    chosen.check(found)
    rows = own("index_select", chosen.merged(found), chosen.offsets(found), dim=chosen.first)
    return rows.reshape(chosen.result(found))


def _rank(x):
    return next(i for i, word in enumerate(("bool", "int", "float", "complex")) if word in x.dtype)


def _put(place, tensors, dims, values, accumulate=False):
    """Writes into a tensor where the indices select."""
    from ._ops import operator as find

    chosen = Selection(place, tensors, dims)
    chosen.check(place)
    shape = chosen.result(place)
    if len(tensors) == 1 and tensors[0].dtype == "bool" and values.numel() == 1 and (
            _rank(values) < _rank(place)):
        values = values.cast(place.dtype)  # as masked_fill does
    if values.dtype != place.dtype:
        raise RuntimeError(f"index: values: wrong dtype, got {values.dtype}; expected that of the "
                           f"tensor, {place.dtype}")
    try:
        values = values.expand(shape)
    except RuntimeError as error:
        raise RuntimeError(f"shape mismatch: values {list(values.shape)} cannot be broadcast to "
                           f"the selection, {shape} ({error})") from None
    # The operator index_put selects along the first dimensions.
    count, first = len(chosen.shape), chosen.first
    ahead = list(range(first, first + count))
    order = ahead + [d for d in range(len(shape)) if d not in ahead]
    turned = place.permute(chosen.dims + chosen.rest)
    find("index_put").call((turned, values.permute(order), chosen.places),
                           {"accumulate": accumulate}, into=turned)


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
    place, tensors, dims = parse(x, index)
    value = _value_of(value, x)
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
