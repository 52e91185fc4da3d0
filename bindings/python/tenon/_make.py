# SPDX-License-Identifier: MIT
"""Functions that make tensors: from values, from memory of other libraries, filled; gradients."""

import ctypes as c

from . import _api
from ._dlpack import from_dlpack
from ._library import Scope, callback, check, checked, held, hold, interface, lib, release
from ._tensor import Tensor, borrow, device_of, ints, scoped
from ._values import dtype_number, scalar_of


def _shape_of(data):
    shape = []
    while isinstance(data, (list, tuple)):
        shape.append(len(data))
        if not data:
            break
        data = data[0]
    return shape


def _flatten(data, shape, out):
    if not shape:
        if isinstance(data, (list, tuple)):
            raise ValueError("data: lists on one level have different lengths; expected equal ones")
        number = isinstance(data, Tensor) or (hasattr(data, "item")
                                              and getattr(data, "ndim", None) == 0)
        out.append(data.item() if number else data)
        return
    if not isinstance(data, (list, tuple)) or len(data) != shape[0]:
        raise ValueError("data: lists on one level have different lengths; expected equal ones")
    for part in data:
        _flatten(part, shape[1:], out)


def _array_of(values):
    for value in values:
        if not isinstance(value, (bool, int, float, complex)) and not hasattr(value, "__index__"):
            raise TypeError(f"data: wrong type, got {value!r}; expected numbers, lists of numbers "
                            "or an array")
    return _stored(values)


def _stored(values):
    """Returns a ctypes array of numbers, its dtype, and the dtype that the tensor will have."""
    if any(isinstance(v, complex) for v in values):
        parts = [p for v in values for p in (complex(v).real, complex(v).imag)]
        return (c.c_double * max(len(parts), 1))(*parts), _api.TN_C128, _api.TN_C64
    if any(isinstance(v, float) for v in values) or not values:
        return (c.c_double * max(len(values), 1))(*values), _api.TN_F64, lib.tn_default_dtype()
    if all(isinstance(v, bool) for v in values):
        return (c.c_bool * max(len(values), 1))(*values), _api.TN_BOOL, _api.TN_BOOL
    return (c.c_int64 * max(len(values), 1))(*values), _api.TN_I64, _api.TN_I64


def tensor(data, dtype=None, device=None, requires_grad=False):
    """Returns a new tensor with a copy of a number, of nested lists of numbers, or of an array."""
    from ._context import on_device

    if isinstance(data, Tensor):
        made = data.detach().clone().to(device=device, dtype=dtype)
    elif hasattr(data, "__array_interface__") or hasattr(data, "__dlpack__"):
        source = _shared(data) if hasattr(data, "__array_interface__") else from_dlpack(data)
        made = source.clone().to(device=device or _default_device(), dtype=dtype)
    else:
        shape, values = _shape_of(data), []
        _flatten(data, shape, values)
        array, number, final = _array_of(values)
        final = final if dtype is None else dtype_number(dtype)
        with on_device("cpu"):
            made = scoped(lib.tn_tensor_from, c.addressof(array), number, ints(shape))
        if final != number:
            made = made.cast(lib.tn_dtype_name(final).decode())
        made = made.to(device=device or _default_device())
    return made.requires_grad_() if requires_grad else made


def _shared(array):
    """Returns a tensor that shares the memory of an array, or of a copy if that memory is read-only
    or its strides are negative."""
    try:
        return from_numpy(array)
    except ValueError:
        if not hasattr(array, "copy"):
            raise
        return from_numpy(array.copy())


def _default_device():
    return lib.tn_device_name(checked(lib.tn_default_device())).decode()


# ---- memory of other libraries -----------------------------------------------------------------


@callback(c.CFUNCTYPE(None, c.c_void_p, c.c_void_p), failed=False)
def _released(user, data):
    release(user)


def from_memory(owner, where, shape, dtype, strides=None):
    """Returns a tensor that uses host memory at the address `where`. The object `owner` is kept as
    long as the memory is in use. Strides count elements."""
    shape = ints(shape)
    number = hold(owner)
    steps = None if strides is None else (c.c_int64 * max(len(strides), 1))(*strides)
    with Scope():
        found = lib.tn_tensor_wrap(where, dtype_number(dtype), shape, steps,
                                   checked(lib.tn_device_find(b"cpu")),
                                   _released, number)
        if not found:
            release(number)
        return borrow(found)


_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}


def from_numpy(array):
    """Returns a tensor that shares the memory of a NumPy array, or of any object with
    __array_interface__: writing to one changes the other."""
    found = array.__array_interface__
    kind = found["typestr"][1]
    if found["typestr"][0] == ">" or kind not in _KINDS:
        raise TypeError(f"array: its type {found['typestr']} has no corresponding dtype")
    size = int(found["typestr"][2:])
    where, read_only = found["data"]
    if read_only:
        raise ValueError("array: it is read-only; use a copy, array.copy()")
    dtype = _KINDS[kind] + ("" if kind == "b" else str(size * 8))
    strides = found.get("strides")
    if strides is not None:
        if any(s % size or s < 0 for s in strides):
            raise ValueError(f"array: wrong strides, got {strides} bytes; expected multiples of "
                             f"{size} that are not negative; use a copy, array.copy()")
        strides = [s // size for s in strides]
    return from_memory((array, found), where or 64, found["shape"], dtype, strides)


# ---- filled tensors ----------------------------------------------------------------------------


def empty(*shape, dtype=None, device=None, requires_grad=False):
    made = scoped(lib.tn_tensor_empty, _shape(shape), dtype_number(dtype), device_of(device))
    return made.requires_grad_() if requires_grad else made


def full(shape, value, dtype=None, device=None, requires_grad=False):
    made = scoped(lib.tn_tensor_full, _shape((shape,)), scalar_of(value), dtype_number(dtype),
                  device_of(device))
    return made.requires_grad_() if requires_grad else made


def _shape(shape):
    return ints(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)


def zeros(*shape, **how):
    return full(shape[0] if len(shape) == 1 else shape, 0.0, **how)


def ones(*shape, **how):
    return full(shape[0] if len(shape) == 1 else shape, 1.0, **how)


def _like(x, dtype, device):
    return {"dtype": x.dtype if dtype is None else dtype,
            "device": x.device if device is None else device}


def zeros_like(x, dtype=None, device=None, requires_grad=False):
    return full(x.shape, 0, requires_grad=requires_grad, **_like(x, dtype, device))


def ones_like(x, dtype=None, device=None, requires_grad=False):
    return full(x.shape, 1, requires_grad=requires_grad, **_like(x, dtype, device))


def full_like(x, fill_value, dtype=None, device=None, requires_grad=False):
    return full(x.shape, fill_value, requires_grad=requires_grad, **_like(x, dtype, device))


def empty_like(x, dtype=None, device=None, requires_grad=False):
    return empty(x.shape, requires_grad=requires_grad, **_like(x, dtype, device))


def rand_like(x, dtype=None, device=None, requires_grad=False):
    return rand(x.shape, requires_grad=requires_grad, **_like(x, dtype, device))


def randn_like(x, dtype=None, device=None, requires_grad=False):
    return randn(x.shape, requires_grad=requires_grad, **_like(x, dtype, device))


def randint(*bounds, size=None, dtype="int64", device=None):
    """randint(high, size) or randint(low, high, size): whole numbers from low to high - 1."""
    bounds = list(bounds)
    if size is None:
        if len(bounds) < 2:
            raise TypeError("randint: size: missing; expected randint(low, high, size)")
        size = bounds.pop()
    low, high = bounds if len(bounds) == 2 else (0, bounds[0])
    return empty(size, dtype=dtype, device=device).random_(low, high)


def randperm(n, device=None):
    """Returns the numbers 0 to n - 1 in a random order."""
    return _on(device, lambda: _call("randperm", None, n))


def linspace(start, end, steps, dtype=None, device=None):
    return _on(device, lambda: _call("linspace", None, start, end, steps, dtype))


def eye(n, m=None, dtype=None, device=None):
    return _on(device, lambda: _call("eye", None, n, m, dtype))


def _call(name, *args):
    from ._ops import operator

    return operator(name).call(args, {})


def _on(device, make):
    from ._context import on_device

    if device is None:
        return make()
    with on_device(device):
        return make()


def randn(*shape, requires_grad=False, **how):
    """Returns a tensor with values of the normal distribution with mean 0 and deviation 1."""
    made = empty(*shape, **how).normal_()
    return made.requires_grad_() if requires_grad else made


def rand(*shape, requires_grad=False, **how):
    """Returns a tensor with values that are uniformly distributed in [0, 1)."""
    made = empty(*shape, **how).uniform_()
    return made.requires_grad_() if requires_grad else made


def arange(start, end=None, step=1, dtype=None, device=None):
    if end is None:
        start, end = 0, start
    if dtype is None and all(isinstance(v, int) for v in (start, end, step)):
        dtype = "int64"
    return _on(device, lambda: _call("arange", None, start, end, step, dtype))


def manual_seed(seed):
    lib.tn_random_seed(seed)


def parameter(x, requires_grad=True):
    """Returns a parameter that shares the memory of `x`: a leaf tensor that becomes a parameter of
    a module when it is assigned to an attribute of the module."""
    with Scope():
        return borrow(lib.tn_parameter(x._ptr, requires_grad))


def grad(outputs, inputs, grad_outputs=None, retain_graph=False, create_graph=False,
         allow_unused=False):
    """Returns the gradients of `inputs`; does not accumulate them in the leaves."""
    from ._tensor import addresses

    outputs = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if isinstance(grad_outputs, Tensor):
        grad_outputs = [grad_outputs]
    options = _api.tn_backward_options(c.sizeof(_api.tn_backward_options), retain_graph,
                                       create_graph, allow_unused)
    found = (c.c_void_p * max(len(inputs), 1))()
    with Scope():
        check(lib.tn_grad(addresses(outputs), addresses(grad_outputs) if grad_outputs else None,
                          len(outputs), addresses(inputs), found, len(inputs), c.byref(options)))
        return tuple(borrow(found[i]) for i in range(len(inputs)))


@callback(_api.cb_tn_gradcheck_code)
def _checked_code(user, inputs, outputs):
    from ._tensor import to_scope

    code, n_in, n_out = held(user)
    results = code(*[borrow(inputs[i]) for i in range(n_in)])
    results = [results] if isinstance(results, Tensor) else list(results)
    if len(results) != n_out:
        raise ValueError(f"gradcheck: code: the first call returned {n_out} tensors, a later one "
                         f"{len(results)}; expected the same number")
    for i, result in enumerate(results):
        outputs[i] = to_scope(result)


def gradcheck(code, inputs, step=1e-6, tolerance=1e-4, second=False):
    """Compares the gradients of code(*inputs) with central differences. The inputs must be float64.
    Raises an error that names the element if one differs. `second`: checks second derivatives."""
    from ._tensor import addresses

    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    first = code(*inputs)
    count = 1 if isinstance(first, Tensor) else len(first)
    number = hold((code, len(inputs), count))
    try:
        checks = interface("tenon.gradcheck.api", _api.tn_gradcheck_api)
        run = checks.second if second else checks.first
        check(run(_checked_code, number, addresses(inputs), len(inputs), count, step, tolerance))
    finally:
        release(number)
    return True
