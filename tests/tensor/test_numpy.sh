#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tensors to NumPy and back through DLPack, by ctypes on the built libtenon: the consumer here is
# the real one. Needs Python 3 with NumPy (PYTHON names another one); skipped, visibly, without.
python=${PYTHON-python3}
library=${abs_builddir-.}/.libs/libtenon.so
case ${TN_SANITIZERS-no} in
no | '') ;;
*) echo "SKIP: the library has sanitizers, which Python does not carry"; exit 77 ;;
esac
test -f "$library" || { echo "SKIP: no shared libtenon was built"; exit 77; }
"$python" -c 'import numpy' 2>/dev/null || { echo "SKIP: $python has no NumPy"; exit 77; }
exec "$python" - "$library" <<'END'
import ctypes, sys
import numpy as np

tn = ctypes.CDLL(sys.argv[1])
for name in ("tn_tensor_empty", "tn_tensor_as_strided", "tn_tensor_from_dlpack",
             "tn_tensor_to_dlpack", "tn_tensor_to_dlpack_versioned",
             "tn_tensor_data", "tn_tensor_from_dlpack_versioned", "tn_device_find"):
    getattr(tn, name).restype = ctypes.c_void_p
tn.tn_tensor_size.restype = tn.tn_tensor_offset.restype = ctypes.c_int64
tn.tn_scope_begin.restype = ctypes.c_uint64
tn.tn_error_text.restype = ctypes.c_char_p

if not tn.tn_device_find(b"cpu"):
    print("SKIP: no device of the host:", tn.tn_error_text().decode())
    sys.exit(77)


class Ints(ctypes.Structure):
    _fields_ = [("at", ctypes.POINTER(ctypes.c_int64)), ("count", ctypes.c_int64)]


def ints(*numbers):
    return Ints((ctypes.c_int64 * max(len(numbers), 1))(*numbers), len(numbers))


api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Producer:
    """What numpy.from_dlpack asks for."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, max_version=None, **rest):
        if max_version is not None and max_version[0] >= 1:
            managed = tn.tn_tensor_to_dlpack_versioned(ctypes.c_void_p(self.tensor), None)
            return api.PyCapsule_New(managed, b"dltensor_versioned", None)
        managed = tn.tn_tensor_to_dlpack(ctypes.c_void_p(self.tensor), None)
        return api.PyCapsule_New(managed, b"dltensor", None)


# NumPy has capsules with a version since 2.1; earlier, __dlpack__ has no argument max_version.
versioned = tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1)
if not versioned:
    print("note: NumPy", np.__version__, "makes no versioned capsules; those are not read here")

numbers = {"uint8": 1, "int16": 3, "int32": 4, "int64": 5, "float16": 6, "float32": 8,
           "float64": 9, "complex64": 10, "uint16": 12}
for name, number in numbers.items():
    scope = tn.tn_scope_begin()
    x = tn.tn_tensor_empty(ints(4, 6), number, None)
    assert x, tn.tn_error_text()
    view = tn.tn_tensor_as_strided(ctypes.c_void_p(x), ints(6, 3), ints(1, 6), ctypes.c_int64(6))
    whole, part = np.from_dlpack(Producer(x)), np.from_dlpack(Producer(view))
    assert whole.dtype.name == name and whole.shape == (4, 6) and part.shape == (6, 3)
    if whole.flags.writeable:
        whole[...] = np.arange(24).reshape(4, 6)
    assert (part == whole[1:4].T).all()
    tn.tn_scope_end(ctypes.c_uint64(scope))     # NumPy keeps the memory
    assert (part == whole[1:4].T).all()
    del whole, part

    # The other direction: Tenon's tensors with NumPy's memory.
    scope = tn.tn_scope_begin()
    array = np.arange(24).reshape(4, 6).astype(name)
    before = sys.getrefcount(array)
    protocols = ((None, b"dltensor", tn.tn_tensor_from_dlpack),
                 ((1, 0), b"dltensor_versioned", tn.tn_tensor_from_dlpack_versioned))
    protocols = protocols if versioned else protocols[:1]
    for version, label, take in protocols:
        capsule = array[1:].__dlpack__(max_version=version) if version else array[1:].__dlpack__()
        y = take(ctypes.c_void_p(api.PyCapsule_GetPointer(capsule, label)))
        assert y, tn.tn_error_text()
        api.PyCapsule_SetName(capsule, b"used_" + label)
        del capsule
        assert tn.tn_tensor_size(ctypes.c_void_p(y), ctypes.c_int64(0)) == 3
        assert tn.tn_tensor_data(ctypes.c_void_p(y)) == array[1:].ctypes.data
    assert sys.getrefcount(array) > before
    tn.tn_scope_end(ctypes.c_uint64(scope))
    assert sys.getrefcount(array) == before, "the deleter was not called once"
tn.tn_shutdown()
print("NumPy", np.__version__, "and Tenon exchanged", len(numbers), "types")
END
