# SPDX-License-Identifier: MIT
#
# Writes files/pytorch*.pt with PyTorch and files/python*.npz with NumPy, for the tests to read, the
# hostile ones among them with Python's own zipfile and pickle; checks that files/tenon.npz, which
# Tenon wrote (TENON_TEST_WRITE_FILES=1), reads back as it should.
#   python make_pytorch_npz.py            both
#   python make_pytorch_npz.py --check    only the second; ends with 77 without a library
import collections
import io
import os
import re
import sys
import zipfile

try:
    import numpy
    import torch
except ImportError as missing:
    print("SKIP: %s" % missing)
    sys.exit(77)

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")


def at(name):
    return os.path.join(here, name)


# ---- a state_dict, every type of element, and memory that is shared ------------------------------
base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
tensors = collections.OrderedDict()
tensors["float32"] = torch.tensor([[1.5, -0.0, float("inf")], [2.0**-149, 3.0, -4.0]])
tensors["float64"] = torch.tensor([0.1, 1e300], dtype=torch.float64)
tensors["float16"] = torch.tensor([1.0, -0.5, 65504.0], dtype=torch.float16)
tensors["bfloat16"] = torch.tensor([1.0, -0.5, 3e38], dtype=torch.bfloat16)
tensors["complex64"] = torch.tensor([1.5 - 2j, 3j], dtype=torch.complex64)
tensors["complex128"] = torch.tensor([1.5 - 2j, 1e300j], dtype=torch.complex128)
tensors["bool"] = torch.tensor([True, False, True])
tensors["uint8"] = torch.tensor([0, 255], dtype=torch.uint8)
tensors["int8"] = torch.tensor([-128], dtype=torch.int8)
tensors["int16"] = torch.tensor([-300], dtype=torch.int16)
tensors["int32"] = torch.tensor([-5, 7], dtype=torch.int32)
tensors["int64"] = torch.tensor([-(2**63), 2**63 - 1])
tensors["uint16"] = torch.tensor([1, 65535]).to(torch.uint16)
tensors["uint32"] = torch.tensor([1, 2**32 - 1]).to(torch.uint32)
tensors["uint64"] = torch.tensor([1, -1]).view(torch.uint64)
tensors["float8_e4m3"] = torch.tensor([1.0, -0.5]).to(torch.float8_e4m3fn)
tensors["float8_e5m2"] = torch.tensor([1.0, -0.5]).to(torch.float8_e5m2)
tensors["scalar"] = torch.tensor(3.25)
tensors["empty"] = torch.zeros(0, 4)
tensors["base"] = base
tensors["base.transposed"] = base.t()
tensors["base.middle"] = base[1:, 1:3]
tensors["base.again"] = base
tensors["spread"] = torch.tensor([7.0]).expand(2, 3)
tensors["parameter"] = torch.nn.Parameter(torch.tensor([9.0]))
tensors["größe"] = torch.tensor([1.0])

net = torch.nn.Sequential(
    collections.OrderedDict(fc=torch.nn.Linear(2, 1), bn=torch.nn.BatchNorm1d(1))
)
with torch.no_grad():
    for i, parameter in enumerate(net.parameters()):
        parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) + 10 * i)
optimizer = torch.optim.SGD(net.parameters(), lr=0.125, momentum=0.9)
net(torch.tensor([[1.0, 2.0], [3.0, 5.0]])).sum().backward()
optimizer.step()
with torch.no_grad():
    for i, parameter in enumerate(net.parameters()):
        parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) + 10 * i)
checkpoint = {
    "net": net.state_dict(),
    "optimizer": optimizer.state_dict(),
    "epoch": 7,
    "loss": 0.25,
    "best": None,
    "note": "it's a \"text\"",
    "bytes": b"a\x00\xff",
    "size": torch.Size([2, 3]),
    "device": torch.device("cpu"),
    "dtype": torch.float16,
    "large": 2**70,
    "less": -(2**70),
    "complex": 1 - 2j,
    "classes": ["cat", "dog", ("a", 1)],
    "set": {4},
    "counter": collections.Counter([3]),
    "list": [torch.tensor([1.0]), {"inner": torch.tensor([2])}],
    "none": {},
}
attributed = torch.nn.Parameter(torch.tensor([5.0]))
attributed.mark = 1


class Evil:
    def __reduce__(self):
        return (os.system, ("exit 1",))


class Plain:
    def __init__(self):
        self.value = 1


def changed(source, name, text):
    """The archive with another text in one member."""
    out = io.BytesIO()
    with zipfile.ZipFile(at(source)) as old, zipfile.ZipFile(out, "w") as new:
        for member in old.infolist():
            new.writestr(
                member.filename,
                text if member.filename.endswith(name) else old.read(member.filename),
            )
    return out.getvalue()


def old(thing, name, protocol=2):
    torch.save(thing, at(name), pickle_protocol=protocol, _use_new_zipfile_serialization=False)


if "--check" not in sys.argv:
    torch.save(tensors, at("pytorch.pt"))
    old(tensors, "pytorch-old.pt")
    for protocol in 3, 4, 5:
        old(tensors, "pytorch-old%d.pt" % protocol, protocol)
    for protocol in 0, 1:
        old(checkpoint, "refused-protocol%d-old.pt" % protocol, protocol)
    torch.save(checkpoint, at("pytorch-checkpoint.pt"))
    torch.save(checkpoint, at("pytorch-protocol4.pt"), pickle_protocol=4)
    torch.save(torch.tensor([1.0, 2.0]), at("pytorch-bare.pt"))
    old({"w": torch.tensor([1.0, 2.0])}, "pytorch-small-old.pt")
    torch.save([torch.tensor([1]), attributed], at("pytorch-list.pt"))
    torch.serialization.set_crc32_options(False)
    torch.save({"w": torch.tensor([1.0, 2.0])}, at("pytorch-no-sums.pt"))
    torch.serialization.set_crc32_options(True)
    with zipfile.ZipFile(
        at("pytorch-deflated.pt"), "w", zipfile.ZIP_DEFLATED
    ) as new, zipfile.ZipFile(at("pytorch-checkpoint.pt")) as source:
        for member in source.infolist():
            new.writestr(member.filename, source.read(member.filename))
    # What is refused.
    torch.save({"w": torch.ones(1), "evil": Evil()}, at("refused-system.pt"))
    torch.save({"plain": Plain()}, at("refused-class.pt"))
    torch.save(net, at("refused-module.pt"))
    torch.save({"s": torch.eye(2).to_sparse()}, at("refused-sparse.pt"))
    torch.save({"c": torch.tensor([1j]).conj()}, at("refused-conj.pt"))
    torch.save({"m": torch.ones(2, device="meta")}, at("refused-meta.pt"))
    torch.save({"n": numpy.float64(1)}, at("refused-numpy.pt"))
    torch.save({"e": torch.tensor([1.0]).to(torch.float8_e4m3fnuz)}, at("refused-dtype.pt"))
    with open(at("refused-big.pt"), "wb") as file:
        file.write(changed("pytorch-bare.pt", "byteorder", "big"))
    with open(at("refused-version.pt"), "wb") as file:
        file.write(changed("pytorch-bare.pt", "/version", "11\n"))
    with open(at("refused-big-old.pt"), "wb") as file:
        with open(at("pytorch-small-old.pt"), "rb") as source:
            text, count = re.subn(
                rb"(little_endianq.)\x88",
                lambda found: found.group(1) + b"\x89",
                source.read(),
                flags=re.DOTALL,
            )
            assert count == 1
            file.write(text)
    # NumPy.
    arrays = {
        "x": numpy.arange(6, dtype="<f4").reshape(2, 3) / 4,
        "größe.weight": numpy.array([-5, 66051], dtype=">i4"),
        "columns": numpy.asfortranarray(numpy.arange(12, dtype="<i2").reshape(2, 3, 2)),
        "none": numpy.zeros((0, 4)),
    }
    numpy.savez(at("python.npz"), **arrays)
    numpy.savez_compressed(at("python-deflated-small.npz"), **arrays)
    numpy.savez_compressed(
        at("python-deflated.npz"), **arrays, zeros=numpy.zeros(100000, dtype="<f8")
    )
    numpy.savez(at("refused-object.npz"), x=numpy.array([{}], dtype=object))

if not os.path.exists(at("tenon.npz")):
    sys.exit("files/tenon.npz is missing: TENON_TEST_WRITE_FILES=1 tests/io/test_npz writes it")
with numpy.load(at("tenon.npz"), allow_pickle=False) as file:
    assert sorted(file.files) == sorted(["x", "größe.weight", "columns", "none"]), file.files
    assert file["x"].dtype == "<f4" and (file["x"] == numpy.arange(6).reshape(2, 3) / 4).all()
    assert file["größe.weight"].dtype == "<i4" and file["größe.weight"].tolist() == [-5, 66051]
    assert (file["columns"] == numpy.arange(12).reshape(2, 3, 2)).all() and file[
        "columns"
    ].dtype == "<i2"
    assert file["none"].shape == (0, 4) and file["none"].dtype == "<f8"
print("ok")
