# SPDX-License-Identifier: MIT
"""Options, values and packs: how Python's values cross the boundary. One row of a table for each
kind of option and for each kind of value."""

import ctypes as c
import math

from . import _api
from ._library import NONE, check, checked, lib

# ---- element types -----------------------------------------------------------------------------

DTYPES = {}
for _name, _number in _api.ENUMS["tn_dtype"].items():
    if _name not in ("TN_DTYPE_COUNT", "TN_DTYPE_AUTO"):
        DTYPES[_number] = lib.tn_dtype_name(_number).decode()


def dtype_number(dtype):
    """The number of a dtype: a name, or what has one (NumPy's, PyTorch's); None: the default."""
    if dtype is None:
        return _api.TN_DTYPE_AUTO
    if dtype in (bool, int, float, complex):
        return {bool: _api.TN_BOOL, int: _api.TN_I64, complex: _api.TN_C64}.get(
            dtype, lib.tn_default_dtype())
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    found = c.c_uint32()
    check(lib.tn_dtype_parse(name.split(".")[-1].encode(), c.byref(found)))
    return found.value


# ---- options -----------------------------------------------------------------------------------


class Row:
    """A row of int64_t or double, and what it points to."""

    def __init__(self, struct, element, convert):
        self.struct, self.element, self.convert = struct, element, convert

    def write(self, value, keep):
        if value is None:
            return self.struct(None, -1)
        values = list(value) if hasattr(value, "__iter__") else [value]
        array = (self.element * max(len(values), 1))(*[self.convert(v) for v in values])
        keep.append(array)
        return self.struct(array, len(values))

    def read(self, stored):
        return None if stored.count < 0 else [stored.at[i] for i in range(stored.count)]


def _whole(value):
    if isinstance(value, float) and not value.is_integer():
        raise TypeError(f"expected a whole number, got {value}")
    return int(value)


def _write_text(value, keep):
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {value!r}")
    text = value.encode()
    keep.append(text)
    return text


def scalar_of(value):
    """A tn_scalar, of the kind that the value has in Python; of an array of NumPy or a tensor
    without dimensions its number."""
    made = _api.tn_scalar()
    if hasattr(value, "item"):
        value = value.item()
    if value is None:
        made.kind = _api.TN_SCALAR_NONE
    elif isinstance(value, bool):
        made.kind, made.as_.i = _api.TN_SCALAR_BOOL, int(value)
    elif isinstance(value, int):
        if not -2 ** 63 <= value < 2 ** 64:
            raise OverflowError(f"{value} does not fit 64 bits")
        if value < 2 ** 63:
            made.kind, made.as_.i = _api.TN_SCALAR_INT, value
        else:
            made.kind, made.as_.u = _api.TN_SCALAR_UINT, value
    elif isinstance(value, float):
        made.kind, made.as_.f = _api.TN_SCALAR_FLOAT, value
    elif isinstance(value, complex):
        made.kind = _api.TN_SCALAR_COMPLEX
        made.as_.c[0], made.as_.c[1] = value.real, value.imag
    else:
        raise TypeError(f"expected a number, got {value!r}")
    return made


def number_of(scalar):
    """The reverse: a bool, an int, a float, a complex, or None."""
    return {
        _api.TN_SCALAR_NONE: lambda: None,
        _api.TN_SCALAR_BOOL: lambda: bool(scalar.as_.i),
        _api.TN_SCALAR_INT: lambda: scalar.as_.i,
        _api.TN_SCALAR_FLOAT: lambda: scalar.as_.f,
        _api.TN_SCALAR_COMPLEX: lambda: complex(scalar.as_.c[0], scalar.as_.c[1]),
        _api.TN_SCALAR_UINT: lambda: scalar.as_.u,
    }[scalar.kind]()


def _read_dtype(stored):
    return DTYPES.get(stored)


_ints = Row(_api.tn_ints, c.c_int64, _whole)
_floats = Row(_api.tn_floats, c.c_double, float)


class OptionKind:
    """How a kind of option is stored: `write` makes the member of a value, `read` the reverse;
    `python` are the types of a default that say that an option is of this kind."""

    def __init__(self, number, ctype, write, read, python=()):
        self.number, self.ctype, self.write, self.read, self.python = (
            number, ctype, write, read, python)


OPTION_KINDS = [
    OptionKind(_api.TN_OPTION_KIND_BOOL, c.c_bool, lambda v, keep: bool(v), bool, (bool,)),
    OptionKind(_api.TN_OPTION_KIND_INT, c.c_int64,
               lambda v, keep: _api.TN_LIST_OPEN if v is None else _whole(v),
               lambda v: None if v == _api.TN_LIST_OPEN else v, (int,)),
    OptionKind(_api.TN_OPTION_KIND_FLOAT, c.c_double,
               lambda v, keep: math.nan if v is None else float(v),
               lambda v: None if math.isnan(v) else v, (float,)),
    OptionKind(_api.TN_OPTION_KIND_STRING, c.c_char_p, _write_text,
               lambda v: None if v is None else v.decode(), (str,)),
    OptionKind(_api.TN_OPTION_KIND_INTS, _api.tn_ints, _ints.write, _ints.read, (list, tuple)),
    OptionKind(_api.TN_OPTION_KIND_FLOATS, _api.tn_floats, _floats.write, _floats.read),
    OptionKind(_api.TN_OPTION_KIND_DTYPE, c.c_uint32,
               lambda v, keep: dtype_number(v), _read_dtype),
    OptionKind(_api.TN_OPTION_KIND_SCALAR, _api.tn_scalar, lambda v, keep: scalar_of(v),
               number_of, (complex,)),
]
KIND = {kind.number: kind for kind in OPTION_KINDS}


def kind_of(number, owner, name):
    try:
        return KIND[number]
    except KeyError:
        raise NotImplementedError(
            f"{owner}: {name}: options of kind {number} are not known to this module") from None


# ---- values ------------------------------------------------------------------------------------


def value_of(value, keep):
    """A tn_value that is valid as long as `keep`."""
    from ._module import Module
    from ._tensor import Tensor

    made = _api.tn_value()
    keep.append(value)
    if value is None:
        made.kind = _api.TN_VALUE_NONE
    elif isinstance(value, bool):
        made.kind, made.as_.i = _api.TN_VALUE_BOOL, int(value)
    elif isinstance(value, int):
        made.kind, made.as_.i = _api.TN_VALUE_INT, value
    elif isinstance(value, float):
        made.kind, made.as_.f = _api.TN_VALUE_FLOAT, value
    elif isinstance(value, complex):
        parts = (_api.tn_value * 2)(value_of(value.real, keep), value_of(value.imag, keep))
        keep.append(parts)
        made.kind, made.count, made.as_.list = _api.TN_VALUE_COMPLEX, 2, parts
    elif isinstance(value, str):
        made.kind, made.as_.s = _api.TN_VALUE_STRING, value.encode()
    elif isinstance(value, (bytes, bytearray)):
        made.kind, made.count, made.as_.s = _api.TN_VALUE_BYTES, len(value), bytes(value)
    elif isinstance(value, Tensor):
        made.kind, made.as_.tensor = _api.TN_VALUE_TENSOR, value._ptr
    elif isinstance(value, Module):
        made.kind, made.as_.module = _api.TN_VALUE_MODULE, value._ptr
    elif isinstance(value, (list, tuple)):
        array = (_api.tn_value * max(len(value), 1))(*[value_of(v, keep) for v in value])
        keep.append(array)
        made.kind = _api.TN_VALUE_LIST if isinstance(value, list) else _api.TN_VALUE_TUPLE
        made.count, made.as_.list = len(value), array
    else:
        raise TypeError(f"a {type(value).__name__} cannot be passed to a module: {value!r}")
    keep.append(made)
    return made


def python_of(value):
    """The value in Python, with references of its own."""
    from ._module import borrow_module
    from ._tensor import borrow

    readers = {
        _api.TN_VALUE_NONE: lambda: None,
        _api.TN_VALUE_BOOL: lambda: bool(value.as_.i),
        _api.TN_VALUE_INT: lambda: value.as_.i,
        _api.TN_VALUE_FLOAT: lambda: value.as_.f,
        _api.TN_VALUE_STRING: lambda: value.as_.s.decode(),
        _api.TN_VALUE_SPEC: lambda: value.as_.s.decode(),
        _api.TN_VALUE_BYTES: lambda: c.string_at(value.as_.opaque, value.count),
        _api.TN_VALUE_LIST: lambda: [python_of(value.as_.list[i]) for i in range(value.count)],
        _api.TN_VALUE_TUPLE: lambda: tuple(
            python_of(value.as_.list[i]) for i in range(value.count)),
        _api.TN_VALUE_COMPLEX: lambda: complex(value.as_.list[0].as_.f, value.as_.list[1].as_.f),
        _api.TN_VALUE_TENSOR: lambda: borrow(value.as_.tensor),
        _api.TN_VALUE_MODULE: lambda: borrow_module(value.as_.module),
    }
    if value.kind not in readers:
        raise NotImplementedError(f"a value of kind {value.kind} is not known to this module")
    return readers[value.kind]()


class Pack:
    """A pack of the caller's; `pointer` of one that belongs to the library."""

    def __init__(self, pointer=None):
        self.own = pointer is None
        self.pointer = checked(lib.tn_pack_new()) if self.own else pointer

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.own:
            lib.tn_pack_drop(self.pointer)

    def add(self, args, kwargs):
        for name, value in [(None, v) for v in args] + list(kwargs.items()):
            keep = []
            check(lib.tn_pack_add(self.pointer, name.encode() if name else None,
                                  value_of(value, keep)))

    def read(self):
        """Positional values and named ones."""
        args, kwargs = [], {}
        for i in range(lib.tn_pack_count(self.pointer)):
            value = python_of(lib.tn_pack_at(self.pointer, i))
            name = lib.tn_pack_name(self.pointer, i)
            if name is None:
                args.append(value)
            else:
                kwargs[name.decode()] = value
        return args, kwargs

    def result(self):
        """What a call gave: one value, several, or named ones."""
        args, kwargs = self.read()
        if kwargs:
            return {**dict(enumerate(args)), **kwargs} if args else kwargs
        return args[0] if len(args) == 1 else tuple(args)


def optional(pointer):
    """NULL stays NULL for the library: an absent tensor is TN_NONE."""
    return NONE if pointer is None else pointer
