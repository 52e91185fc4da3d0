# SPDX-License-Identifier: MIT
#
# Files and networks both ways, live: what PyTorch, safetensors and NumPy write is read by Tenon,
# what Tenon writes is read by them, for every type of element that both sides have; ResNet-18 with
# PyTorch's weights gives PyTorch's logits and prints as it does; `tenon summary` counts what
# PyTorch's own counter counts.
#   make interchange PYTHON=...         or: interchange.py SOURCE BUILD
# Ends with 77 where PyTorch, safetensors or NumPy is not installed.
import collections
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
    from safetensors.torch import load_file, save_file
    from torch.utils.flop_counter import FlopCounterMode
except ImportError as missing:
    print("SKIP: %s" % missing)
    sys.exit(77)

source, build = (os.path.abspath(argument) for argument in sys.argv[1:3])
passed, failed = 0, []


def check(what, good, words=""):
    global passed
    if good:
        passed += 1
    else:
        failed.append(what)
        print("FAILED: %s %s" % (what, words))


def run(*arguments, text=None):
    command = [os.path.join(build, "run"), *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def bits(tensor):
    return (
        tensor.detach().contiguous().flatten().view(torch.uint8).tolist() if tensor.numel() else []
    )


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and bits(a) == bits(b)


# ---- every type of element -----------------------------------------------------------------------
types = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
]
torch.manual_seed(0)
tensors = collections.OrderedDict()
for dtype in types:
    name = str(dtype).replace("torch.", "")
    raw = torch.randint(
        0,
        2 if dtype is torch.bool else 256,
        (4 * dtype.itemsize if dtype is not torch.bool else 4,),
        dtype=torch.uint8,
    )
    tensors[name] = raw.view(dtype).reshape(2, 2)
    tensors[name + ".scalar"] = raw.view(dtype)[0].clone()
    tensors[name + ".empty"] = torch.zeros(0, 3).to(dtype)
    tensors[name + ".turned"] = raw.view(dtype).reshape(2, 2).t()
for_safetensors = {
    k: v.contiguous().clone() for k, v in tensors.items() if v.dtype is not torch.complex128
}
for_numpy = {
    k: v
    for k, v in tensors.items()
    if v.dtype not in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
}


def convert(origin, target):
    code, out, err = run("tenon", "convert", origin, target)
    check("%s to %s" % (origin, target), code == 0, err)
    return code == 0


def interchange():
    for zipped in (True, False):
        form = "zip" if zipped else "old"
        torch.save(for_safetensors, form + ".pt", _use_new_zipfile_serialization=zipped)
        torch.save(for_numpy, form + "-numpy.pth", _use_new_zipfile_serialization=zipped)
        if convert(form + ".pt", form + ".safetensors"):
            read = load_file(form + ".safetensors")
            check(form + ": names", sorted(read) == sorted(for_safetensors))
            for name, tensor in for_safetensors.items():
                check("%s.pt, safetensors: %s" % (form, name), same(read[name], tensor))
        if convert(form + "-numpy.pth", form + ".npz"):
            with numpy.load(form + ".npz", allow_pickle=False) as read:
                check(form + ": names, npz", sorted(read.files) == sorted(for_numpy))
                for name, tensor in for_numpy.items():
                    check(
                        "%s.pt, npz: %s" % (form, name),
                        same(torch.from_numpy(read[name].copy()), tensor),
                    )
    save_file(for_safetensors, "python.safetensors")
    if convert("python.safetensors", "again.safetensors"):
        read = load_file("again.safetensors")
        for name, tensor in for_safetensors.items():
            check("safetensors: " + name, same(read[name], tensor))
    for packed, save in ((False, numpy.savez), (True, numpy.savez_compressed)):
        save("python.npz", **{k: v.numpy() for k, v in for_numpy.items()})
        if convert("python.npz", "again.npz"):
            with numpy.load("again.npz", allow_pickle=False) as read:
                for name, tensor in for_numpy.items():
                    check(
                        "npz%s: %s" % (" deflated" if packed else "", name),
                        same(torch.from_numpy(read[name].copy()), tensor),
                    )


# ---- ResNet-18 -----------------------------------------------------------------------------------
class BasicBlock(torch.nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(outer)
        self.relu = torch.nn.ReLU(inplace=True)
        self.conv2 = torch.nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(outer)
        if inner != outer:
            self.downsample = torch.nn.Sequential(
                torch.nn.Conv2d(inner, outer, 1, stride, bias=False), torch.nn.BatchNorm2d(outer)
            )

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (self.downsample(x) if hasattr(self, "downsample") else x))


class ResNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(64)
        self.relu = torch.nn.ReLU(inplace=True)
        self.maxpool = torch.nn.MaxPool2d(3, 2, 1)
        for i, (inner, outer) in enumerate(((64, 64), (64, 128), (128, 256), (256, 512))):
            setattr(
                self,
                "layer%d" % (i + 1),
                torch.nn.Sequential(
                    BasicBlock(inner, outer, 2 if i else 1), BasicBlock(outer, outer, 1)
                ),
            )
        self.avgpool = torch.nn.AdaptiveAvgPool2d((1, 1))
        self.fc = torch.nn.Linear(512, 1000)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(
            self.avgpool(self.layer4(self.layer3(self.layer2(self.layer1(x))))).flatten(1)
        )


def resnet():
    net = ResNet()
    with torch.no_grad():
        net(torch.randn(8, 3, 64, 64))  # running statistics that are not those of the beginning
    net.eval()
    torch.save(net.state_dict(), "resnet18.pth")
    image = torch.randn(1, 3, 224, 224)
    numpy.save("image.npy", image.numpy())
    code, out, err = run(
        os.path.join(build, "examples", "resnet18"), "resnet18.pth", "image.npy", "logits.npy"
    )
    check("resnet18 runs", code == 0, err)
    if code == 0:
        with torch.no_grad():
            distance = float((net(image) - torch.from_numpy(numpy.load("logits.npy"))).abs().max())
        check("resnet18: logits", distance < 1e-4, "largest difference %g" % distance)
        print("resnet18: largest difference of a logit %.2g" % distance)
        check("resnet18: printed form", out.strip() == str(net))
        code, out, err = run(
            os.path.join(build, "examples", "recipes", "printed_model"),
            "resnet18.pth",
            "image.npy",
            "logits.npy",
            text=str(net),
        )
        check("printed_model runs", code == 0, err)
        with torch.no_grad():
            distance = float((net(image) - torch.from_numpy(numpy.load("logits.npy"))).abs().max())
        check("printed_model: logits", distance < 1e-4, "largest difference %g" % distance)
        print("printed_model: largest difference of a logit %.2g" % distance)
    return net


# ---- what tenon summary counts -------------------------------------------------------------------
# The last is the number of FLOPs: 0 says to ask PyTorch's counter, which does not see recurrent
# layers and Bilinear.
summaries = [
    (
        "Sequential(Conv2d(3, 8, 3, stride=2, padding=1, groups=1), BatchNorm2d(8), ReLU(), "
        "Conv2d(8, 8, 3, groups=4), ConvTranspose2d(8, 4, 3, stride=2), "
        "AdaptiveAvgPool2d(2), Flatten(), Linear(16, 5))",
        (2, 3, 20, 20),
        0,
    ),
    ("TransformerEncoderLayer(16, 4, dim_feedforward=32, batch_first=True)", (2, 7, 16), 0),
    ("LSTM(8, 16, num_layers=2)", (5, 3, 8), 2 * 5 * 3 * 4 * 16 * (8 + 16 + 16 + 16)),
    ("Bilinear(3, 4, 5)", (6, 3), (6, 4), None),
]


def summary():
    for spec, *shapes, flops in summaries:
        net = eval("torch.nn." + spec, {"torch": torch, **vars(torch.nn)}).eval()
        with FlopCounterMode(
            display=False
        ) as counter, torch.no_grad(), torch.nn.attention.sdpa_kernel(
            torch.nn.attention.SDPBackend.MATH
        ):
            torch.backends.mha.set_fastpath_enabled(False)
            net(*(torch.randn(shape) for shape in shapes))
        arguments = []
        for shape in shapes:
            arguments += ["--input", ",".join(map(str, shape))]
        code, out, err = run("tenon", "summary", spec, "--json", *arguments)
        check("summary " + spec, code == 0, err)
        if code:
            continue
        told = json.loads(out)
        check(
            "parameters of " + spec,
            told["parameters"] == sum(p.numel() for p in net.parameters()),
            told["parameters"],
        )
        if flops is not None:
            check(
                "FLOPs of " + spec,
                told["flops"] == (flops or counter.get_total_flops()),
                told["flops"],
            )


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    interchange()
    resnet()
    summary()
    os.chdir("/")
print("%d passed, %d failed" % (passed, len(failed)))
sys.exit(1 if failed else 0)
