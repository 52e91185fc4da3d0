# SPDX-License-Identifier: MIT
#
# Writes files/python.safetensors with the reference library, for the tests to read, and checks that files/tenon.safetensors,
# which Tenon wrote, reads back as it should.
#   python make-files.py            both
#   python make-files.py --check    the second alone; ends with 77 where the library is not installed
import os
import sys

try:
    import torch
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print("SKIP: %s" % missing)
    sys.exit(77)

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")
odd = torch.tensor([1.5, -0.0, float("inf"), 2.0 ** -149, float("nan")])
tensors = {
    "0.weight": torch.arange(6, dtype=torch.float32).reshape(2, 3) / 4,
    "0.bias": torch.tensor([-1.0, 1.0]),
    "double": torch.tensor([[0.1], [1e300]], dtype=torch.float64),
    "half": torch.tensor([1.0, -0.5, 65504.0], dtype=torch.float16),
    "brain": torch.tensor([1.0, -0.5, 3e38], dtype=torch.bfloat16),
    "long": torch.tensor([-(2 ** 63), 2 ** 63 - 1]),
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

if "--check" not in sys.argv:
    save_file(tensors, os.path.join(here, "python.safetensors"), metadata={"format": "pt", "note": "a b\n%d"})

path = os.path.join(here, "tenon.safetensors")
read = load_file(path)
assert sorted(read) == sorted(tensors), sorted(read)
for name, tensor in tensors.items():
    assert read[name].dtype == tensor.dtype and read[name].shape == tensor.shape, name
    assert read[name].flatten().view(torch.uint8).equal(tensor.flatten().view(torch.uint8)), name
with safe_open(path, "pt") as file:
    assert file.metadata() == {"format": "pt", "note": "a b\n%d"}, file.metadata()
print("ok: %d tensors" % len(read))
