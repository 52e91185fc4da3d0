# SPDX-License-Identifier: MIT
"""DLPack: tensors of other libraries and ours, over the same memory."""

import ctypes as c

from . import _api
from ._library import Scope, checked, closing, failure, forever, lib

# Prototypes of our own: those of ctypes.pythonapi are shared by the whole process.
_new = c.PYFUNCTYPE(c.py_object, c.c_void_p, c.c_char_p, c.c_void_p)(
    ("PyCapsule_New", c.pythonapi))
_is_valid = c.PYFUNCTYPE(c.c_int, c.py_object, c.c_char_p)(("PyCapsule_IsValid", c.pythonapi))
_pointer = c.PYFUNCTYPE(c.c_void_p, c.py_object, c.c_char_p)(
    ("PyCapsule_GetPointer", c.pythonapi))
_rename = c.PYFUNCTYPE(c.c_int, c.py_object, c.c_char_p)(("PyCapsule_SetName", c.pythonapi))
# The same on a capsule that is being freed, to which no reference can be made.
_freed_is_valid = c.PYFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p)(
    ("PyCapsule_IsValid", c.pythonapi))
_freed_pointer = c.PYFUNCTYPE(c.c_void_p, c.c_void_p, c.c_char_p)(
    ("PyCapsule_GetPointer", c.pythonapi))

_OLD, _NEW = b"dltensor", b"dltensor_versioned"
_USED = {_OLD: b"used_dltensor", _NEW: b"used_dltensor_versioned"}
_STRUCT = {_OLD: _api.tn_dlpack, _NEW: _api.tn_dlpack_versioned}
_CUDA = 2


@forever
@c.PYFUNCTYPE(None, c.c_void_p)
def _unused(capsule):
    """The destructor of a capsule: the consumer has taken its content, or nobody has."""
    if closing:
        return
    for name, struct in _STRUCT.items():
        if _freed_is_valid(capsule, name):
            where = _freed_pointer(capsule, name)
            struct.from_address(where).deleter(c.cast(where, c.POINTER(struct)))


def export(tensor, stream, max_version, dl_device, copy):
    device = tensor.__dlpack_device__()
    if dl_device is not None and tuple(dl_device) != device:
        raise BufferError(f"the tensor is on {tensor.device}; copy it with x.to(device)")
    if copy:
        tensor = tensor.detach().clone()
    if tensor.requires_grad:
        raise BufferError("a tensor that requires a gradient is not exported; use x.detach()")
    # 1 and 2 are CUDA's default streams, -1 says not to wait: 0 is waited for, which is right.
    native = stream if isinstance(stream, int) and stream > 2 else None
    if max_version is not None and max_version[0] >= 1:
        made, name = lib.tn_tensor_to_dlpack_versioned(tensor._ptr, native), _NEW
    else:
        made, name = lib.tn_tensor_to_dlpack(tensor._ptr, native), _OLD
    return _new(c.addressof(checked(made).contents), name, c.cast(_unused, c.c_void_p))


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
    """A tensor over the memory of another library's, which has __dlpack__; or of a capsule."""
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
    raise TypeError("expected an object with __dlpack__, or a capsule that was not used yet")
