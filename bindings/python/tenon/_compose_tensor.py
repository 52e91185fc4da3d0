# SPDX-License-Identifier: MIT
"""What a tensor is, its dtype and device, values that are written, new tensors like another."""

from ._compose_table import _dim, _function, _method, _named, _row_of
from ._tensor import Tensor

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
