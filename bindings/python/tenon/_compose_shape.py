# SPDX-License-Identifier: MIT
"""Functions of shapes: views, parts, and tensors that are put together."""

import builtins
import operator as _operator

from ._compose_table import _call, _dim, _function, _method, _named, _row_of
from ._tensor import Tensor


@_named("t")
def t(x):
    if x.ndim > 2:
        raise ValueError(f"t: too many dimensions, got {x.ndim}; expected at most 2")
    return x.transpose(0, 1) if x.ndim == 2 else x


@_named("adjoint")
def adjoint(x):
    return x.transpose(-1, -2).conj()


@_named("ravel")
def ravel(x):
    return x.reshape(-1)


@_method("view_as")
def view_as(x, other):
    return x.view(other.shape)


@_method("reshape_as")
def reshape_as(x, other):
    return x.reshape(other.shape)


@_method("expand_as")
def expand_as(x, other):
    return x.expand(other.shape)


@_named("broadcast_to")
def broadcast_to(x, *size):
    return x.expand(_row_of(size))


@_function("broadcast_shapes")
def broadcast_shapes(*shapes):
    shape = []
    for row in shapes:
        row = [row] if isinstance(row, int) else list(row)
        length = builtins.max(len(shape), len(row))
        pairs = zip([1] * (length - len(shape)) + shape, [1] * (length - len(row)) + row)
        found = []
        for a, b in pairs:
            if a != b and a != 1 and b != 1:
                raise RuntimeError(f"shapes do not broadcast: {shapes}")
            found.append(b if a == 1 else a)
        shape = found
    return tuple(shape)


@_function("broadcast_tensors")
def broadcast_tensors(*tensors):
    shape = broadcast_shapes(*[x.shape for x in tensors])
    return tuple(x.expand(shape) for x in tensors)


@_named("movedim", "moveaxis")
def movedim(x, source, destination):
    source = [source] if isinstance(source, int) else list(source)
    destination = [destination] if isinstance(destination, int) else list(destination)
    source, destination = [_dim(x, d) for d in source], [_dim(x, d) for d in destination]
    if len(source) != len(destination) or len(set(source)) < len(source) or (
            len(set(destination)) < len(destination)):
        raise RuntimeError(f"movedim: got {source} and {destination}; expected as many different "
                           "dimensions in both")
    order = [d for d in range(x.ndim) if d not in source]
    for to, d in sorted(zip(destination, source)):
        order.insert(to, d)
    return x.permute(order)


@_named("unflatten")
def unflatten(x, dim, sizes):
    d = _dim(x, dim)
    return x.reshape(x.shape[:d] + tuple(sizes) + x.shape[d + 1:])


@_named("squeeze_")
def squeeze_(x, *unused):
    raise NotImplementedError("squeeze_: not available; use x = x.squeeze()")


@_named("atleast_1d")
def atleast_1d(x):
    return x if x.ndim else x.reshape([1])


@_named("atleast_2d")
def atleast_2d(x):
    return x if x.ndim > 1 else x.reshape([1, -1])


@_named("atleast_3d")
def atleast_3d(x):
    return x if x.ndim > 2 else x.unsqueeze(-1) if x.ndim == 2 else x.reshape([1, -1, 1])


@_named("fliplr")
def fliplr(x):
    return x.flip(1)


@_named("flipud")
def flipud(x):
    return x.flip(0)


@_named("rot90")
def rot90(x, k=1, dims=(0, 1)):
    k %= 4
    if k == 2:
        return x.flip(dims)
    return x if not k else x.flip(dims[1 if k == 1 else 0]).transpose(*dims)


@_named("chunk")
def chunk(x, chunks, dim=0):
    if chunks < 1:
        raise ValueError(f"chunk: out of range, got {chunks} chunks; expected at least 1")
    length = x.shape[_dim(x, dim)]
    return split(x, builtins.max(-(-length // chunks), 1), dim)


@_named("split", "split_with_sizes")
def split(x, split_size_or_sections, dim=0):
    sizes, length = split_size_or_sections, x.shape[_dim(x, dim)]
    if isinstance(sizes, int):
        if sizes < 1 and length:
            raise ValueError(f"split: out of range, got the size {sizes}; expected at least 1")
        step = builtins.max(sizes, 1)
        return tuple(x.slice(dim, i, i + step) for i in range(0, length, step)) or (x,)
    if builtins.sum(sizes) != length:
        raise ValueError(f"split: wrong sizes, got {list(sizes)}; expected the sum {length}")
    return tuple(x.narrow(dim, builtins.sum(sizes[:i]), n) for i, n in enumerate(sizes))


@_named("tensor_split")
def tensor_split(x, indices_or_sections, dim=0):
    at, length = indices_or_sections, x.shape[_dim(x, dim)]
    if isinstance(at, int):
        ends = [length // at * i + builtins.min(i, length % at) for i in range(1, at)]
    else:
        ends = [_operator.index(i) for i in at]
    return tuple(x.slice(dim, a, b) for a, b in zip([0] + ends, ends + [length]))


@_named("hsplit")
def hsplit(x, at):
    return tensor_split(x, at, 0 if x.ndim == 1 else 1)


@_named("vsplit")
def vsplit(x, at):
    return tensor_split(x, at, 0)


@_named("dsplit")
def dsplit(x, at):
    return tensor_split(x, at, 2)


@_named("unbind")
def unbind(x, dim=0):
    return tuple(x.select(dim, i) for i in range(x.shape[_dim(x, dim)]))


@_function("hstack")
def hstack(tensors):
    rows = [atleast_1d(x) for x in tensors]
    return _call("cat", rows, 0 if rows[0].ndim == 1 else 1)


@_function("vstack", "row_stack")
def vstack(tensors):
    return _call("cat", [atleast_2d(x) for x in tensors], 0)


@_function("dstack")
def dstack(tensors):
    return _call("cat", [atleast_3d(x) for x in tensors], 2)


@_function("column_stack")
def column_stack(tensors):
    return _call("cat", [x if x.ndim > 1 else x.reshape([-1, 1]) for x in tensors], 1)


@_function("meshgrid")
def meshgrid(*tensors, indexing="ij"):
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tuple(tensors[0])
    if indexing not in ("ij", "xy"):
        raise ValueError(f"meshgrid: indexing: wrong name, got {indexing!r}; expected ij or xy")
    order = list(range(len(tensors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    lengths = [tensors[i].numel() for i in order]
    made = []
    for i, x in enumerate(tensors):
        place = order.index(i)
        made.append(x.reshape([-1 if k == place else 1 for k in range(len(order))])
                    .expand(lengths))
    return tuple(made)


@_named("tile")
def tile(x, *dims):
    dims = _row_of(dims)
    return x.repeat([1] * (x.ndim - len(dims)) + dims)


@_named("diag")
def diag(x, diagonal=0):
    return (_call("diag_embed", x, diagonal) if x.ndim == 1 else x.diagonal(diagonal))


@_named("diagflat")
def diagflat(x, offset=0):
    return _call("diag_embed", x.reshape(-1), offset)
