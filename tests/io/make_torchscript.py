# SPDX-License-Identifier: MIT
#
# Writes files/torchscript.pt and files/torchscript-frozen.pt with PyTorch: archives of
# torch.jit.save, for test_torchscript.c to read. Ends with 77 where PyTorch is not installed.
#   python make_torchscript.py
import io
import os
import sys
import warnings
import zipfile

try:
    import torch
except ImportError as missing:
    print("SKIP: %s" % missing)
    sys.exit(77)

warnings.simplefilter("ignore")
here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")


class Part(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(3, 2)
        self.register_buffer("buf", torch.arange(4.0))
        self.scale = 2.5
        self.names = ["a", "b"]
        self.sizes = [1, 2]
        self.table = {"x": 1}

    def forward(self, x):
        return (
            self.lin(x) * self.scale
            + self.buf[0]
            + len(self.names)
            + len(self.sizes)
            + self.table["x"]
        )


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.tied = self.part.lin
        self.list = [torch.ones(2), torch.zeros(3)]
        self.register_buffer("none", None)

    def forward(self, x):
        return self.tied(x) + self.part(x) + self.list[0].sum() + torch.tensor([1.0, 2.0])


net = Net()
with torch.no_grad():
    for start, values in enumerate(net.parameters()):
        values.copy_(torch.arange(values.numel()).reshape(values.shape) + 10.0 * start)


def write(module, name):
    """Without the members that name source files of this machine."""
    archive = io.BytesIO()
    torch.jit.save(module, archive)
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(os.path.join(here, name), "w") as file:
        for member in source.infolist():
            if not member.filename.endswith(".debug_pkl"):
                file.writestr(zipfile.ZipInfo(member.filename), source.read(member.filename))


write(torch.jit.script(net), "torchscript.pt")
write(torch.jit.freeze(torch.jit.script(net.eval())), "torchscript-frozen.pt")
print("ok")
