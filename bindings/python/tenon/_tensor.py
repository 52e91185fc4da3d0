# SPDX-License-Identifier: MIT
"""The class Tensor: memory, exchange with NumPy and DLPack, gradients, indexing."""

import ctypes as c
import math
import operator
import weakref

from . import _api, _dlpack
from ._library import (NONE, Scope, adopting, callback, check, checked, encode, failure, held,
                       hold, interface, lib, owner, release, text_of)
from ._values import DTYPES, dtype_number, in_int64

_alive = weakref.WeakValueDictionary()  # the Python object of each tensor, by address
_Owner = owner(lib.tn_tensor_drop)


def adopt(pointer):
    """Returns the Python object for a tensor. Takes over one reference of the caller."""
    if pointer == NONE:
        return None
    with adopting:
        found = _alive.get(pointer)
        if found is None:
            found = object.__new__(Tensor)
            found._ptr, found._owner = pointer, _Owner(pointer)
            _alive[pointer] = found
            return found
    lib.tn_tensor_drop(pointer)
    return found


def borrow(pointer):
    """Like adopt() for a tensor whose reference belongs to someone else: adds a reference."""
    if pointer == NONE:
        return None
    return adopt(checked(lib.tn_tensor_keep(checked(pointer))))


def to_scope(tensor):
    """Returns the address of a tensor for the result of a callback: the innermost scope gets a
    reference."""
    if tensor is None:
        return NONE
    if not isinstance(tensor, Tensor):
        raise TypeError(f"result: wrong type, got {type(tensor).__name__}; expected a Tensor")
    return lib.tn_tensor_to_scope(lib.tn_tensor_keep(tensor._ptr))


def scoped(function, *arguments):
    """Calls a function of the library whose result belongs to the innermost scope; returns the
    result as a Tensor."""
    with Scope():
        return borrow(function(*arguments))


def address(tensor):
    """Returns the address of a tensor for a call; None becomes TN_NONE, an absent tensor."""
    if tensor is None:
        return NONE
    if not isinstance(tensor, Tensor):
        raise TypeError(f"argument: wrong type, got {type(tensor).__name__}; expected a Tensor")
    return tensor._ptr


def addresses(tensors):
    return (c.c_void_p * max(len(tensors), 1))(*[address(t) for t in tensors])


def ints(values):
    """Returns a tn_ints, such as a shape, that keeps the array which it points to."""
    try:
        values = [values] if isinstance(values, int) else [operator.index(v) for v in values]
    except TypeError as error:
        raise TypeError(f"wrong type, got {values!r}; expected integers ({error})") from None
    for value in values:
        in_int64(value)
    array = (c.c_int64 * max(len(values), 1))(*values)
    found = _api.tn_ints(array, len(values))
    found._keep = array
    return found


def device_of(name):
    """Returns the device with that name; None stays None, which means the default device."""
    return None if name is None else checked(lib.tn_device_find(encode(name)))


# How elements are stored on the host: a ctypes type, and how many values of it make one element.
_ELEMENTS = {
    _api.TN_BOOL: (c.c_bool, 1), _api.TN_U8: (c.c_uint8, 1), _api.TN_I8: (c.c_int8, 1),
    _api.TN_I16: (c.c_int16, 1), _api.TN_I32: (c.c_int32, 1), _api.TN_I64: (c.c_int64, 1),
    _api.TN_U16: (c.c_uint16, 1), _api.TN_U32: (c.c_uint32, 1), _api.TN_U64: (c.c_uint64, 1),
    _api.TN_F32: (c.c_float, 1), _api.TN_F64: (c.c_double, 1),
    _api.TN_C64: (c.c_float, 2), _api.TN_C128: (c.c_double, 2),
}
# The names of dtypes in NumPy's array interface.
TYPESTR = {
    _api.TN_BOOL: "|b1", _api.TN_U8: "|u1", _api.TN_I8: "|i1", _api.TN_I16: "<i2",
    _api.TN_I32: "<i4", _api.TN_I64: "<i8", _api.TN_U16: "<u2", _api.TN_U32: "<u4",
    _api.TN_U64: "<u8", _api.TN_F16: "<f2", _api.TN_F32: "<f4", _api.TN_F64: "<f8",
    _api.TN_C64: "<c8", _api.TN_C128: "<c16",
}


def array_interface(number, shape, strides, where):
    """Describes memory for NumPy (__array_interface__). `strides` count elements; NumPy's count
    bytes."""
    if number not in TYPESTR:
        raise TypeError(f"NumPy has no dtype {DTYPES[number]}; use x.cast(\"float32\")")
    size = lib.tn_dtype_size(number)
    return {"version": 3, "typestr": TYPESTR[number], "shape": tuple(shape),
            "strides": tuple(s * size for s in strides), "data": (where, False)}


@callback(_api.cb_tn_grad_hook)
def _gradient_hook(user, gradient, replacement):
    result = held(user)(borrow(gradient))
    if result is not None:
        replacement[0] = to_scope(result)


class Hook:
    """A registered hook. remove() unregisters it."""

    def __init__(self, handle):
        self._handle = handle

    def remove(self):
        return lib.tn_hook_remove(self._handle)


class Tensor:
    """A tensor. Operators are methods: x.relu(), x.sum(dims=[0])."""

    __slots__ = ("_ptr", "_owner", "__weakref__")
    __array_ufunc__ = None  # makes NumPy call this class for `array * tensor`

    def __init__(self, *unused):
        raise TypeError("Tensor() cannot be called; use tenon.tensor(data), tenon.zeros(shape) or "
                        "tenon.from_numpy(array)")

    # ---- properties ------------------------------------------------------------------------

    @property
    def shape(self):
        found = lib.tn_tensor_shape(self._ptr)
        return tuple(found.at[i] for i in range(found.count))

    @property
    def strides(self):
        """The strides, in elements."""
        found = lib.tn_tensor_strides(self._ptr)
        return tuple(found.at[i] for i in range(found.count))

    @property
    def ndim(self):
        return lib.tn_tensor_ndim(self._ptr)

    @property
    def dtype(self):
        """The name of the dtype, such as "float32"."""
        return DTYPES[lib.tn_tensor_dtype(self._ptr)]

    @property
    def device(self):
        """The name of the device, such as "cpu:0"."""
        return lib.tn_device_name(lib.tn_tensor_device(self._ptr)).decode()

    def numel(self):
        return lib.tn_tensor_numel(self._ptr)

    def is_contiguous(self):
        return lib.tn_tensor_is_contiguous(self._ptr)

    def data_ptr(self):
        """Returns the address of the first element; the device must use host memory."""
        if not self.numel():
            return lib.tn_tensor_data(self._ptr) or 0
        return checked(lib.tn_tensor_data(self._ptr))

    def __len__(self):
        if not self.ndim:
            raise TypeError("a tensor without dimensions has no length")
        return self.shape[0]

    def __repr__(self):
        text = text_of(interface("tenon.print.api", _api.tn_print_api).tensor, self._ptr)
        return f"tensor({text}, requires_grad=True)" if self.requires_grad else f"tensor({text})"

    __hash__ = object.__hash__

    # ---- values ----------------------------------------------------------------------------

    def tolist(self):
        """Returns the elements as nested lists of Python numbers, or a number if there are no
        dimensions."""
        number = lib.tn_tensor_dtype(self._ptr)
        if number not in _ELEMENTS:
            return self.cast("float32").tolist()
        type_, parts = _ELEMENTS[number]
        count = self.numel()
        flat = (type_ * max(count * parts, 1))()
        check(lib.tn_tensor_copy_out(self._ptr, c.addressof(flat), count * parts * c.sizeof(type_)))
        values = list(flat)[:count * parts]
        if parts == 2:
            values = [complex(values[i], values[i + 1]) for i in range(0, len(values), 2)]
        shape = self.shape
        for dim in range(len(shape) - 1, 0, -1):
            size, rows = shape[dim], math.prod(shape[:dim])
            values = [values[i * size:(i + 1) * size] for i in range(rows)]
        return values if shape else values[0]

    def item(self):
        """Returns the only element as a bool, an int, a float or a complex."""
        from ._values import number_of

        found = _api.tn_scalar()
        check(lib.tn_tensor_scalar(self._ptr, c.byref(found)))
        return number_of(found)

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __index__(self):
        if self.numel() != 1 or "int" not in self.dtype:
            raise TypeError(f"tensor: cannot be an index, got {self.dtype}{list(self.shape)}; "
                            "expected one element of an integer dtype")
        return self.item()

    def __bool__(self):
        return bool(self.item())

    # ---- exchange --------------------------------------------------------------------------

    @property
    def __array_interface__(self):
        if self.requires_grad:
            raise TypeError("a tensor that requires a gradient cannot be an array; use x.detach()")
        return array_interface(lib.tn_tensor_dtype(self._ptr), self.shape, self.strides,
                               self.data_ptr())

    def numpy(self):
        """Returns a NumPy array that shares the memory of the tensor and keeps it alive."""
        import numpy

        self.__array_interface__  # raises the reason, which NumPy would hide
        return numpy.asarray(self)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return _dlpack.export(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self):
        device = lib.tn_tensor_view(self._ptr).contents.device
        return (device.type, device.id)

    # ---- gradients -------------------------------------------------------------------------

    @property
    def requires_grad(self):
        return lib.tn_tensor_requires_grad(self._ptr)

    @requires_grad.setter
    def requires_grad(self, value):
        check(lib.tn_tensor_set_requires_grad(self._ptr, bool(value)))

    def requires_grad_(self, value=True):
        self.requires_grad = value
        return self

    @property
    def is_leaf(self):
        return lib.tn_tensor_is_leaf(self._ptr)

    @property
    def grad(self):
        return borrow(lib.tn_tensor_grad(self._ptr))

    @grad.setter
    def grad(self, value):
        check(lib.tn_tensor_set_grad(self._ptr, address(value)))

    def retain_grad(self):
        check(lib.tn_tensor_retain_grad(self._ptr))

    def backward(self, gradient=None, retain_graph=False, create_graph=False):
        """Accumulates gradients in the leaves that this tensor was computed from."""
        options = _api.tn_backward_options(c.sizeof(_api.tn_backward_options), retain_graph,
                                           create_graph)
        with Scope():
            check(lib.tn_backward_from(addresses([self]), addresses([gradient]), 1,
                                       c.byref(options)))

    def detach(self):
        return scoped(lib.tn_tensor_detach, self._ptr)

    def register_hook(self, function):
        """Calls function(gradient) in backward. If it returns a tensor, that replaces the
        gradient."""
        number = hold(function)
        handle = lib.tn_tensor_hook(self._ptr, _gradient_hook, number, release)
        if not handle:
            release(number)
            raise failure()
        return Hook(handle)

    # ---- other memory ----------------------------------------------------------------------

    def to(self, *where, device=None, dtype=None):
        """Returns the tensor on another device or with another dtype: to("cuda:0"),
        to("float64"). Returns the tensor itself if nothing changes."""
        for word in where:
            name = str(word)
            if dtype is None and name.split(".")[-1] in DTYPES.values():
                dtype = name
            else:
                device = name
        found = self
        if dtype is not None and DTYPES[dtype_number(dtype)] != self.dtype:
            found = found.cast(dtype)
        if device is not None and device_of(device) != lib.tn_tensor_device(self._ptr):
            found = found._to_device(device_of(device))
        return found

    def _to_device(self, device):
        from ._ops import call_into

        shape = ints(self.shape)
        with Scope():
            other = borrow(lib.tn_tensor_empty(shape, lib.tn_tensor_dtype(self._ptr), device))
        return call_into("copy", [self], other)

    def copy_(self, other):
        """Writes the values of another tensor into this one."""
        from ._ops import call_into

        return call_into("copy", [other], self)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        made = self.detach().clone()
        made.requires_grad = self.requires_grad and self.is_leaf
        return made

    # ---- indexing --------------------------------------------------------------------------

    def __getitem__(self, index):
        from ._index import get

        return get(self, index)

    def __setitem__(self, index, value):
        from ._index import put

        put(self, index, value)

    def __iter__(self):
        return (self.select(0, i) for i in range(len(self)))

    def __contains__(self, value):
        return bool((self == value).any().item())

    @property
    def T(self):
        return self.permute(list(range(self.ndim))[::-1])

    @property
    def mT(self):
        return self.transpose(-1, -2)

    @property
    def itemsize(self):
        """The bytes of an element."""
        return lib.tn_dtype_size(lib.tn_tensor_dtype(self._ptr))

    @property
    def data(self):
        """The same memory without a recording of gradients."""
        return self.detach()

    def __getattr__(self, name):
        from ._ops import method

        found = method(name)
        if found is None:
            raise AttributeError(f"Tensor has no attribute {name}, and no operator has this name")
        return found.__get__(self)

    def __dir__(self):
        from ._compose import FUNCTIONS, METHODS, NOT_METHODS
        from ._signatures import ROWS

        found = set(_api.OPERATORS) | set(FUNCTIONS) | set(ROWS)
        return sorted(set(object.__dir__(self)) | found - NOT_METHODS | set(METHODS))
