#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Four networks as PyTorch computes them, for test_spec_networks.c: weights, input, target, result,
# loss, and after backward the gradient of the input and of every parameter and what became of the
# buffers.
#   make_spec_networks.py FOLDER [SEED]          writes NAME.safetensors for each
#   make_spec_networks.py --live SOURCE BUILD    (make models) makes them anew and compares them
#                                                with the committed files, within rounding; then
#                                                runs the test with the weights and inputs of
#                                                another seed
# PyTorch computes in float64 with weights and inputs that are float32 numbers; what is written is
# rounded to float32. The names of the parameters are those that the specs in test_spec_networks.c
# give.
# --live ends with 77 where PyTorch or safetensors is not installed.
import os
import subprocess
import sys
import tempfile
from collections import OrderedDict

try:
    import torch
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print("SKIP: %s" % missing)
    sys.exit(77)
from torch import nn


class Residual(nn.Module):  # as Tenon's: the branch in order, then the shortcut
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        if inner != outer:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer)
            )

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (self.shortcut(x) if hasattr(self, "shortcut") else x))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(17, 8)
        self.lstm = nn.LSTM(8, 12, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(24, 5)

    def forward(self, x):
        return self.head(self.lstm(self.table(x))[0]).flatten(0, 1)


def lenet5():
    net = nn.Sequential(
        nn.Conv2d(1, 6, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.Tanh(),
        nn.Linear(120, 84),
        nn.Tanh(),
        nn.Linear(84, 10),
    )
    return net, torch.randn(3, 1, 32, 32), torch.randint(10, (3,))


def resnet18():
    parts = OrderedDict(
        conv1=nn.Conv2d(3, 4, 7, 2, 3, bias=False),
        bn1=nn.BatchNorm2d(4),
        relu=nn.ReLU(),
        maxpool=nn.MaxPool2d(3, 2, 1),
    )
    for i, (inner, outer) in enumerate(((4, 4), (4, 8), (8, 16), (16, 32))):
        parts["layer%d" % (i + 1)] = nn.Sequential(
            Residual(inner, outer, 2 if i else 1), Residual(outer, outer, 1)
        )
    parts["avgpool"], parts["flatten"], parts["fc"] = (
        nn.AdaptiveAvgPool2d((1, 1)),
        nn.Flatten(),
        nn.Linear(32, 10),
    )
    return nn.Sequential(parts), torch.randn(4, 3, 48, 48), torch.randint(10, (4,))


def transformer():
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(16, 4, dim_feedforward=32, dropout=0.0, batch_first=True), 2
    )
    return (
        nn.Sequential(nn.Embedding(20, 16), encoder, nn.Flatten(0, 1), nn.Linear(16, 20)),
        torch.randint(20, (3, 7)),
        torch.randint(20, (21,)),
    )


def lstm():
    return Tagger(), torch.randint(17, (4, 9)), torch.randint(5, (36,))


MODELS = (lenet5, resnet18, transformer, lstm)


def narrow(t):
    return (
        t.detach().float().contiguous().clone()
        if t.is_floating_point()
        else t.detach().contiguous().clone()
    )


def made(model, seed):
    torch.manual_seed(seed)
    net, x, target = model()
    for (
        name,
        p,
    ) in (
        net.named_parameters()
    ):  # copies of a layer, biases and norms are all alike when they are new
        with torch.no_grad():
            p.add_(torch.randn_like(p) * 0.1)
    net.double().train()
    x = x.double().requires_grad_() if x.is_floating_point() else x
    out = {"input": narrow(x), "target": target}
    out.update(("state." + name, narrow(t)) for name, t in net.state_dict().items())
    result = net(x)
    loss = nn.CrossEntropyLoss()(result, target)
    loss.backward()
    out["result"], out["loss"] = narrow(result), narrow(loss)
    if x.grad is not None:
        out["gradient"] = narrow(x.grad)
    out.update(("gradient." + name, narrow(p.grad)) for name, p in net.named_parameters())
    out.update(("after." + name, narrow(b)) for name, b in net.named_buffers())
    return out


def write(folder, seed):
    for model in MODELS:
        save_file(made(model, seed), os.path.join(folder, model.__name__ + ".safetensors"))


def live(source, build):
    for model in MODELS:
        fresh, held = made(model, 0), load_file(
            os.path.join(source, "tests/models/files", model.__name__ + ".safetensors")
        )
        if sorted(fresh) != sorted(held):
            sys.exit("%s: other names than the committed file" % model.__name__)
        for name, t in fresh.items():
            difference = float((t.double() - held[name].double()).abs().max())
            if not difference <= 1e-6 * (1 + float(t.double().abs().max())):
                sys.exit(
                    "%s: %s is %g away from the committed file" % (model.__name__, name, difference)
                )
    with tempfile.TemporaryDirectory() as folder:
        write(folder, 1)
        sys.exit(
            subprocess.run(
                [os.path.join(build, "tests/models/test_spec_networks")],
                env=dict(
                    os.environ,
                    TN_TEST_MODELS=folder,
                    TENON_PLUGIN_PATH=os.path.join(os.path.abspath(build), "plugins/.libs"),
                ),
            ).returncode
        )


if sys.argv[1] == "--live":
    live(*sys.argv[2:4])
write(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
