# SPDX-License-Identifier: MIT
#
# Writes files/python.safetensors with the reference library and files/*.npy with NumPy, for the
# tests to read, and checks that files/tenon.safetensors and files/tenon-*.npy, which Tenon wrote
# (TENON_TEST_WRITE_FILES=1), read back as they should.
#   python make_safetensors_npy.py            both
#   python make_safetensors_npy.py --check    only the second; ends with 77 without the library
import os
import sys

try:
    import numpy
    import torch
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print("SKIP: %s" % missing)
    sys.exit(77)

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")
odd = torch.tensor([1.5, -0.0, float("inf"), 2.0**-149, float("nan")])
tensors = {
    "0.weight": torch.arange(6, dtype=torch.float32).reshape(2, 3) / 4,
    "0.bias": torch.tensor([-1.0, 1.0]),
    "double": torch.tensor([[0.1], [1e300]], dtype=torch.float64),
    "half": torch.tensor([1.0, -0.5, 65504.0], dtype=torch.float16),
    "brain": torch.tensor([1.0, -0.5, 3e38], dtype=torch.bfloat16),
    "long": torch.tensor([-(2**63), 2**63 - 1]),
    "int": torch.tensor([-5, 7], dtype=torch.int32),
    "short": torch.tensor([-300], dtype=torch.int16),
    "byte": torch.tensor([0, 255], dtype=torch.uint8),
    "char": torch.tensor([-128], dtype=torch.int8),
    "bool": torch.tensor([True, False, True]),
    "scalar": torch.tensor(3.25),
    "empty": torch.zeros(0, 4),
    "größe \"%s\"": torch.tensor([9.0]),
    "odd": odd,
}

arrays = {
    "matrix": numpy.arange(6, dtype="<f4").reshape(2, 3) / 4,
    "half": numpy.array([1.0, -0.5, 65504.0], dtype="<f2"),
    "bool": numpy.array([[True], [False], [True]]),
    "scalar": numpy.array(0x7FF8000000000123, dtype="<u8").view("<f8"),
    "empty": numpy.zeros((0, 4), dtype="<i8"),
    "columns": numpy.asfortranarray(numpy.arange(12, dtype="<i2").reshape(2, 3, 2)),
    "big": numpy.array([-5, 66051], dtype=">i4"),
    "complex": numpy.array([1.5 - 2j, 1e300j], dtype="<c16"),
    "complex-big": numpy.array([1.5 - 2j, 3j], dtype=">c8"),
}
second = numpy.array([1, 65535], dtype="<u2")

if "--check" not in sys.argv:
    for name, array in arrays.items():
        numpy.save(os.path.join(here, name + ".npy"), array)
    with open(os.path.join(here, "version2.npy"), "wb") as file:
        numpy.lib.format.write_array(file, second, version=(2, 0))
    save_file(
        tensors,
        os.path.join(here, "python.safetensors"),
        metadata={"format": "pt", "note": "a b\n%d"},
    )

path = os.path.join(here, "tenon.safetensors")
read = load_file(path)
assert sorted(read) == sorted(tensors), sorted(read)
for name, tensor in tensors.items():
    assert read[name].dtype == tensor.dtype and read[name].shape == tensor.shape, name
    assert read[name].flatten().view(torch.uint8).equal(tensor.flatten().view(torch.uint8)), name
with safe_open(path, "pt") as file:
    assert file.metadata() == {"format": "pt", "note": "a b\n%d"}, file.metadata()
arrays["version2"] = second
for name in ("matrix", "scalar", "empty", "bool", "half", "complex", "columns", "version2"):
    array = numpy.load(os.path.join(here, "tenon-%s.npy" % name), allow_pickle=False)
    assert array.dtype == arrays[name].dtype and array.shape == arrays[name].shape, name
    assert array.tobytes() == arrays[name].tobytes(), name
print("ok: %d tensors" % len(read))
