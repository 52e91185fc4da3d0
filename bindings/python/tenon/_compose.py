# SPDX-License-Identifier: MIT
"""Functions and methods with PyTorch's names that are more than one operator, or another one for
other arguments: max(x), max(x, dim), max(x, y)."""

import builtins
import functools
import math
import operator as _operator

from ._tensor import Tensor
from ._values import DTYPES, dtype_number

FUNCTIONS = {}  # by name: functions of the module and methods of tensors
METHODS = {}    # methods only
NOT_METHODS = set()


def _named(*names, table=FUNCTIONS):
    def add(made):
        for name in names:
            table[name] = made
        return made

    return add


def _method(*names):
    return _named(*names, table=METHODS)


def _function(*names):
    NOT_METHODS.update(names)
    return _named(*names)


def _call(name, *args, **kwargs):
    from ._ops import function

    return function(name)(*args, **kwargs)


def _own(name, *args, **kwargs):
    """Calls an operator with its own arguments."""
    from ._ops import operator

    return operator(name).call(args, kwargs)


def _row_of(values):
    """Whole numbers that were given one by one or as a list."""
    if len(values) == 1 and not hasattr(values[0], "__index__"):
        values = values[0]
    return [_operator.index(v) for v in values]


def _dim(x, dim):
    count = builtins.max(x.ndim, 1)
    if not -count <= _operator.index(dim) < count:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, "
                         f"{count - 1}], but got {dim})")
    return dim % count


# ---- what a tensor is ----------------------------------------------------------------------------


@_method("size")
def size(x, dim=None):
    if dim is not None and not x.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return x.shape if dim is None else x.shape[_dim(x, dim)]


@_method("stride")
def stride(x, dim=None):
    return x.strides if dim is None else x.strides[_dim(x, dim)]


@_method("dim", "ndimension")
def dim(x):
    return x.ndim


_named("numel")(lambda x: Tensor.numel(x))
_method("nelement")(lambda x: x.numel())
_method("element_size")(lambda x: x.itemsize)
_method("get_device")(lambda x: int(x.device.split(":")[1]) if "cpu" not in x.device else -1)


@_named("is_floating_point")
def is_floating_point(x):
    return "float" in x.dtype


@_named("is_complex")
def is_complex(x):
    return "complex" in x.dtype


@_function("is_tensor")
def is_tensor(x):
    return isinstance(x, Tensor)


# ---- other dtypes, other devices -----------------------------------------------------------------

for _names, _dtype in (("double", "float64"), ("float", "float32"), ("half", "float16"),
                       ("bfloat16", "bfloat16"), ("long", "int64"), ("int", "int32"),
                       ("short", "int16"), ("char", "int8"), ("byte", "uint8"), ("bool", "bool"),
                       ("cdouble", "complex128"), ("cfloat", "complex64")):
    _method(_names)(lambda x, dtype=_dtype: x.to(dtype))


@_method("type_as")
def type_as(x, other):
    return x.to(other.dtype)


@_method("type")
def type_of(x, dtype=None):
    if dtype is None:
        raise TypeError("type: without a dtype it is PyTorch's name of a class; x.dtype is the "
                        "name of the dtype")
    return x.to(dtype=dtype)


@_method("cpu")
def cpu(x):
    return x.to(device="cpu:0")


@_method("cuda")
def cuda(x, device=None):
    return x.to(device="cuda:0" if device is None else
                f"cuda:{device}" if isinstance(device, int) else device)


@_method("contiguous")
def contiguous(x):
    if x.is_contiguous():
        return x
    from ._make import empty

    return empty(x.shape, dtype=x.dtype, device=x.device).copy_(x)


@_method("detach_")
def detach_(x):
    raise NotImplementedError("detach_: not available; use x = x.detach()")


# ---- shapes --------------------------------------------------------------------------------------


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


# ---- indices and masks ---------------------------------------------------------------------------


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


# ---- in place ------------------------------------------------------------------------------------


@_method("zero_")
def zero_(x):
    return x.fill_(0)


@_method("fill_")
def fill_(x, value):
    from ._ops import operator

    if isinstance(value, Tensor):
        if value.ndim:
            raise ValueError(f"fill_: value: too many dimensions, got {value.ndim}; expected 0")
        return x.copy_(value)
    return operator("fill").call((x,), {"value": value}, into=x)


@_method("uniform_")
def uniform_(x, low=0.0, high=1.0, **kwargs):
    from ._ops import operator

    low, high = kwargs.pop("from", low), kwargs.pop("to", high)
    return operator("uniform").call((x,), {"low": low, "high": high, **kwargs}, into=x)


@_method("bernoulli_")
def bernoulli_(x, p=0.5):
    from ._ops import operator

    chances = p if isinstance(p, Tensor) else x.new_full(x.shape, p)
    return x.copy_(operator("bernoulli").call((chances,), {}))


@_method("random_")
def random_(x, low=0, high=None):
    from ._ops import operator

    low, high = (0, low) if high is None else (low, high)
    return operator("randint").call((x,), {"low": low, "high": high}, into=x)


# ---- new tensors like another --------------------------------------------------------------------


def _like(name, number):
    def made(x, *size, dtype=None, device=None, requires_grad=False):
        from . import _make

        size = _row_of(size)
        how = {"dtype": dtype or x.dtype, "device": device or x.device,
               "requires_grad": requires_grad}
        return _make.empty(size, **how) if number is None else _make.full(size, number, **how)

    return _method("new_" + name)(made)


_like("zeros", 0)
_like("ones", 1)
_like("empty", None)


@_method("new_full")
def new_full(x, size, fill_value, *, dtype=None, device=None, requires_grad=False):
    from ._make import full

    return full(size, fill_value, dtype=dtype or x.dtype, device=device or x.device,
                requires_grad=requires_grad)


@_method("new_tensor")
def new_tensor(x, data, *, dtype=None, device=None, requires_grad=False):
    from ._make import tensor

    return tensor(data, dtype=dtype or x.dtype, device=device or x.device,
                  requires_grad=requires_grad)


def dtype_name(dtype):
    return DTYPES[dtype_number(dtype)]
