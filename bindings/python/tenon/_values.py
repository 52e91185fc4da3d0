# SPDX-License-Identifier: MIT
"""Conversion between Python's values and the library's options, values and packs."""

import ctypes as c
import math
import operator

from . import _api
from ._library import NONE, check, checked, lib

# ---- dtypes ------------------------------------------------------------------------------------

DTYPES = {}
for _name, _number in _api.ENUMS["tn_dtype"].items():
    if _name not in ("TN_DTYPE_COUNT", "TN_DTYPE_AUTO"):
        DTYPES[_number] = lib.tn_dtype_name(_number).decode()


def dtype_number(dtype):
    """Returns the number of a dtype, given by name, as a Python type, or as a dtype object of NumPy
    or PyTorch. None gives TN_DTYPE_AUTO, which means the default."""
    if dtype is None:
        return _api.TN_DTYPE_AUTO
    if dtype in (bool, int, float, complex):
        return {bool: _api.TN_BOOL, int: _api.TN_I64, complex: _api.TN_C64}.get(
            dtype, lib.tn_default_dtype())
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    found = c.c_uint32()
    check(lib.tn_dtype_parse(name.split(".")[-1].encode(), c.byref(found)))
    return found.value


def is_dtype(word):
    """Whether a word, such as an argument of to(), means a dtype and no device."""
    return not isinstance(word, str) or word.split(".")[-1] in DTYPES.values()


# ---- options -----------------------------------------------------------------------------------


class Row:
    """Converts lists of numbers to and from tn_ints or tn_floats."""

    def __init__(self, struct, element, convert):
        self.struct, self.element, self.convert = struct, element, convert

    def write(self, value, keep):
        if value is None:
            return self.struct(None, -1)
        if _is_tensor(value) and value.ndim:
            raise TypeError(f"wrong type, got {_shown(value)}; expected numbers")
        many = hasattr(value, "__iter__") and not _is_tensor(value)
        values = list(value) if many else [value]
        array = (self.element * max(len(values), 1))(*[self.convert(v) for v in values])
        keep.append(array)
        return self.struct(array, len(values))

    def read(self, stored):
        return None if stored.count < 0 else [stored.at[i] for i in range(stored.count)]


def in_int64(value):
    """Refuses a number that ctypes would reduce to its low 64 bits without an error."""
    if not -2 ** 63 <= value < 2 ** 63:
        raise OverflowError(f"{value} does not fit into int64")
    return value


def _shown(value):
    shape = getattr(value, "shape", None)
    return repr(value) if shape is None else f"{type(value).__name__}{list(shape)}"


def _whole(value):
    """An integer of Python or NumPy. What only looks like one is refused: a float, a bool, a
    tensor of floats."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"wrong type, got {_shown(value)}; expected an integer")
    try:
        return in_int64(operator.index(value))
    except TypeError:
        raise TypeError(f"wrong type, got {_shown(value)}; expected an integer") from None


def _real(value):
    """A real number of Python or NumPy. A tensor is refused: its gradient would be lost."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0 and not _is_tensor(value):
        value = value.item()
    if not isinstance(value, (bool, int, float)):
        raise TypeError(f"wrong type, got {_shown(value)}; expected a number")
    return float(value)


def _truth(value):
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0 and not _is_tensor(value):
        value = value.item()
    if not isinstance(value, bool):
        raise TypeError(f"wrong type, got {_shown(value)}; expected True or False")
    return value


def _is_tensor(value):
    from ._tensor import Tensor

    return isinstance(value, Tensor)


def _write_text(value, keep):
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"wrong type, got {value!r}; expected a str")
    text = value.encode()
    keep.append(text)
    return text


def scalar_of(value):
    """Returns a tn_scalar of the kind that corresponds to the Python type of `value`, also of a
    number of NumPy. A tensor is refused: its gradient would be lost."""
    made = _api.tn_scalar()
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0 and not _is_tensor(value):
        value = value.item()
    if value is None:
        made.kind = _api.TN_SCALAR_NONE
    elif isinstance(value, bool):
        made.kind, made.as_.i = _api.TN_SCALAR_BOOL, int(value)
    elif isinstance(value, int):
        if not -2 ** 63 <= value < 2 ** 64:
            raise OverflowError(f"{value} does not fit in 64 bits")
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
        raise TypeError(f"wrong type, got {_shown(value)}; expected a number")
    return made


def number_of(scalar):
    """Returns the value of a tn_scalar: a bool, an int, a float, a complex, or None."""
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
_floats = Row(_api.tn_floats, c.c_double, _real)


class OptionKind:
    """How options of one kind are stored. `write` converts a Python value to the member of a
    struct, `read` converts it back. A default value of one of the types in `python` gives an option
    this kind."""

    def __init__(self, number, ctype, write, read, python=()):
        self.number, self.ctype, self.write, self.read, self.python = (
            number, ctype, write, read, python)


OPTION_KINDS = [
    OptionKind(_api.TN_OPTION_KIND_BOOL, c.c_bool, lambda v, keep: _truth(v), bool, (bool,)),
    OptionKind(_api.TN_OPTION_KIND_INT, c.c_int64,
               lambda v, keep: _api.TN_LIST_OPEN if v is None else _whole(v),
               lambda v: None if v == _api.TN_LIST_OPEN else v, (int,)),
    OptionKind(_api.TN_OPTION_KIND_FLOAT, c.c_double,
               lambda v, keep: math.nan if v is None else _real(v),
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
            f"{owner}: {name}: this module cannot convert options of kind {number}") from None


# ---- values ------------------------------------------------------------------------------------


def value_of(value, keep):
    """Returns a tn_value. Its memory is valid as long as the list `keep` exists."""
    from ._module import Module
    from ._tensor import Tensor

    made = _api.tn_value()
    keep.append(value)
    if value is None:
        made.kind = _api.TN_VALUE_NONE
    elif isinstance(value, bool):
        made.kind, made.as_.i = _api.TN_VALUE_BOOL, int(value)
    elif isinstance(value, int) and 2**63 <= value < 2**64:
        made.kind, made.as_.u = _api.TN_VALUE_UINT, value
    elif isinstance(value, int):
        made.kind, made.as_.i = _api.TN_VALUE_INT, in_int64(value)
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
    elif isinstance(value, dict):
        pairs = [value_of(part, keep) for pair in value.items() for part in pair]
        array = (_api.tn_value * max(len(pairs), 1))(*pairs)
        keep.append(array)
        made.kind, made.count, made.as_.list = _api.TN_VALUE_DICT, len(pairs), array
    else:
        raise TypeError(f"a {type(value).__name__} cannot be passed to a module: {value!r}")
    keep.append(made)
    return made


def python_of(value):
    """Returns a tn_value as a Python value, which holds its own references to tensors and
    modules."""
    from ._module import borrow_module
    from ._tensor import borrow

    readers = {
        _api.TN_VALUE_NONE: lambda: None,
        _api.TN_VALUE_BOOL: lambda: bool(value.as_.i),
        _api.TN_VALUE_INT: lambda: value.as_.i,
        _api.TN_VALUE_UINT: lambda: value.as_.u,
        _api.TN_VALUE_FLOAT: lambda: value.as_.f,
        _api.TN_VALUE_STRING: lambda: value.as_.s.decode(),
        _api.TN_VALUE_SPEC: lambda: value.as_.s.decode(),
        _api.TN_VALUE_BYTES: lambda: c.string_at(value.as_.opaque, value.count),
        _api.TN_VALUE_LIST: lambda: [python_of(value.as_.list[i]) for i in range(value.count)],
        _api.TN_VALUE_TUPLE: lambda: tuple(
            python_of(value.as_.list[i]) for i in range(value.count)),
        _api.TN_VALUE_DICT: lambda: {
            python_of(value.as_.list[i]): python_of(value.as_.list[i + 1])
            for i in range(0, value.count, 2)
        },
        _api.TN_VALUE_COMPLEX: lambda: complex(value.as_.list[0].as_.f, value.as_.list[1].as_.f),
        _api.TN_VALUE_TENSOR: lambda: borrow(value.as_.tensor),
        _api.TN_VALUE_MODULE: lambda: borrow_module(value.as_.module),
    }
    if value.kind not in readers:
        raise NotImplementedError(f"this module cannot convert values of kind {value.kind}")
    return readers[value.kind]()


class Pack:
    """A value pack: a new one that this object owns, or the library's pack at `pointer`."""

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
        """Returns the positional values as a list and the named values as a dictionary."""
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
        """Returns the result of a call: one value, a tuple of several, or a dictionary if there are
        named values."""
        args, kwargs = self.read()
        if kwargs:
            return {**dict(enumerate(args)), **kwargs} if args else kwargs
        return args[0] if len(args) == 1 else tuple(args)


def optional(pointer):
    """Returns TN_NONE, an absent tensor, for None; otherwise returns `pointer`."""
    return NONE if pointer is None else pointer
