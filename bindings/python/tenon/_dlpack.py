# SPDX-License-Identifier: MIT
"""DLPack: exchange of tensors with other libraries without copies; both share the memory."""

import ctypes as c
import sys
import threading

from . import _api
from ._library import Scope, checked, failure, lib

# Separate prototypes, because the whole process shares the functions of ctypes.pythonapi.
_new = c.PYFUNCTYPE(c.py_object, c.c_void_p, c.c_char_p, c.c_void_p)(
    ("PyCapsule_New", c.pythonapi))
_is_valid = c.PYFUNCTYPE(c.c_int, c.py_object, c.c_char_p)(("PyCapsule_IsValid", c.pythonapi))
_pointer = c.PYFUNCTYPE(c.c_void_p, c.py_object, c.c_char_p)(
    ("PyCapsule_GetPointer", c.pythonapi))
_rename = c.PYFUNCTYPE(c.c_int, c.py_object, c.c_char_p)(("PyCapsule_SetName", c.pythonapi))

_OLD, _NEW = b"dltensor", b"dltensor_versioned"
_USED = {_OLD: b"used_dltensor", _NEW: b"used_dltensor_versioned"}
_STRUCT = {_OLD: _api.tn_dlpack, _NEW: _api.tn_dlpack_versioned}
_CUDA = 2

# Capsules that were exported, which are freed by _offer(). They have no destructor, because Python
# may free a capsule while an exception propagates. A destructor that is written in Python would
# then lose the exception, and the interpreter would abort.
_exported = []
_exporting = threading.Lock()


def _offer(where, name):
    """Returns a new capsule. First frees the content of earlier capsules that nobody references
    any more and whose content nobody has taken."""
    capsule = _new(where, name, None)
    with _exporting:
        rows = [(capsule, name, where)] + _exported
        del _exported[:]
        unused = []
        mine = 0  # references to the new capsule, which nobody but this function holds
        for row in rows:
            count = sys.getrefcount(row[0])
            mine = mine or count
            if not _is_valid(row[0], row[1]):
                continue  # the consumer has taken its content
            (_exported if count >= mine else unused).append(row)
    for _, name, where in unused:
        struct = _STRUCT[name]
        struct.from_address(where).deleter(c.cast(where, c.POINTER(struct)))
    return capsule


def export(tensor, stream, max_version, dl_device, copy):
    device = tensor.__dlpack_device__()
    if dl_device is not None and tuple(dl_device) != device:
        raise BufferError(f"the tensor is on {tensor.device}; copy it with x.to(device)")
    if copy:
        tensor = tensor.detach().clone()
    if tensor.requires_grad:
        raise BufferError("a tensor that requires a gradient cannot be exported; use x.detach()")
    # 1 and 2 stand for CUDA's default streams, and -1 says that no wait is needed. None is passed
    # for these: the library then waits until the work is done, which is always correct.
    native = stream if isinstance(stream, int) and stream > 2 else None
    if max_version is not None and max_version[0] >= 1:
        made, name = lib.tn_tensor_to_dlpack_versioned(tensor._ptr, native), _NEW
    else:
        made, name = lib.tn_tensor_to_dlpack(tensor._ptr, native), _OLD
    return _offer(c.addressof(checked(made).contents), name)


def _capsule_of(source):
    if not hasattr(source, "__dlpack__"):
        return source
    options = {}
    if hasattr(source, "__dlpack_device__") and source.__dlpack_device__()[0] == _CUDA:
        options["stream"] = 1
    try:
        return source.__dlpack__(max_version=(1, 0), **options)
    except TypeError:
        return source.__dlpack__(**options)


def from_dlpack(source):
    """Returns a tensor that shares the memory of another library's tensor, given as an object with
    __dlpack__ or as a capsule."""
    from ._tensor import borrow

    capsule = _capsule_of(source)
    for name, struct in _STRUCT.items():
        if _is_valid(capsule, name):
            managed = c.cast(_pointer(capsule, name), c.POINTER(struct))
            take = (lib.tn_tensor_from_dlpack if name == _OLD
                    else lib.tn_tensor_from_dlpack_versioned)
            with Scope():
                found = take(managed)
                if not found:
                    raise failure()
                _rename(capsule, _USED[name])
                return borrow(found)
    raise TypeError(f"source: wrong, got {type(source).__name__}; expected an object with "
                    "__dlpack__, or a capsule that was not used yet")
