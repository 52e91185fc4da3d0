# SPDX-License-Identifier: MIT
"""Datasets that are written in Python. The library knows one dataset, "PythonDataset", whose option
is the number of the Python object (hold())."""

import ctypes as c
import threading

from . import _api
from ._library import callback, head, held, lib, member, register, release
from ._values import Pack

_lock = threading.Lock()
_registered = []


class _Options(c.Structure):
    _fields_ = [("number", c.c_int64)]


def _table():
    rows = (_api.tn_option * 2)()
    rows[0].name = b"number"
    rows[0].help = b"the number of the object"
    rows[0].kind = _api.TN_OPTION_KIND_INT
    rows[0].flags = _api.TN_OPTION_REQUIRED
    rows[0].offset = _Options.number.offset
    return rows


@callback(member(_api.tn_dataset_def, "open"))
def _open(pointer):
    args = pointer.contents
    number = _Options.from_address(args.options).number
    dataset = held(number)
    args.handle, args.count = number, len(dataset)
    classes = getattr(dataset, "classes", None) or []
    names = (c.c_char_p * max(len(classes), 1))(*[str(name).encode() for name in classes])
    _names[number] = names
    args.classes = len(classes)
    if classes:
        args.class_names = names


_names = {}  # of classes, which the library reads until `close`


@callback(member(_api.tn_dataset_def, "get"))
def _get(pointer):
    args = pointer.contents
    sample = held(args.handle)[args.index]
    entries = list(sample) if isinstance(sample, (tuple, list)) else [sample]
    named = sample if isinstance(sample, dict) else {}
    Pack(args.out).add([] if named else [_entry(v) for v in entries],
                       {name: _entry(value) for name, value in named.items()})


def _entry(value):
    """An entry of a sample: arrays of NumPy become tensors."""
    if hasattr(value, "__array_interface__") and not hasattr(value, "_ptr"):
        from ._make import tensor

        return value.item() if getattr(value, "ndim", 1) == 0 else tensor(value)
    return value


@callback(member(_api.tn_dataset_def, "close"), failed=0)
def _close(number):
    _names.pop(number, None)
    release(number)


def register_once():
    with _lock:
        if _registered:
            return
        def_ = _api.tn_dataset_def(head(_api.tn_dataset_def), b"PythonDataset",
                                   b"samples of an object of Python")
        rows = _table()
        def_.options = c.cast(rows, c.POINTER(_api.tn_option))
        def_.data_size = c.sizeof(_Options)
        def_.open, def_.get, def_.close = _open, _get, _close
        register(def_)
        _registered.append((def_, rows))


def lib_dataset(number):
    """Returns the address of the library's dataset for a held object, or None after a failure."""
    register_once()
    found = lib.tn_dataset_parse(f"PythonDataset({number})".encode())
    if not found:
        _names.pop(number, None)
    return found
