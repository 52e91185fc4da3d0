#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Published architectures, each rebuilt in C from its printed text, against PyTorch, live (make
# models). Each network gets random weights, which are saved as
# safetensors. examples/networks/NAME reads print(model), these weights and an input, and its
# logits are compared with PyTorch's. Of GPT-2 the peaks of memory are measured as well. Ends with
# 77, and says SKIP, if PyTorch or safetensors is not installed; networks of torchvision and
# transformers are skipped one by one.
import os
import subprocess
import sys
import tempfile

try:
    import torch
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print("SKIP: %s" % missing)
    sys.exit(77)
from torch import nn

MOST = 1e-4  # of difference
# Bytes of memory (RSS, in which pages of the mapped file count) at the peak, for GPT-2 with a file
# of 498 MB: loading it and reading a byte of each page; loading it and one forward.
LOADING, MEMORY = 520e6, 560e6


class Double(nn.Sequential):
    def __init__(self, inner, outer):
        super().__init__(
            nn.Conv2d(inner, outer, 3, padding=1, bias=False),
            nn.BatchNorm2d(outer),
            nn.ReLU(),
            nn.Conv2d(outer, outer, 3, padding=1, bias=False),
            nn.BatchNorm2d(outer),
            nn.ReLU(),
        )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.bottom, self.pool = (
            Double(3, 32),
            Double(32, 64),
            Double(64, 128),
            nn.MaxPool2d(2),
        )
        self.up2, self.join2 = nn.ConvTranspose2d(128, 64, 2, stride=2), Double(128, 64)
        self.up1, self.join1 = nn.ConvTranspose2d(64, 32, 2, stride=2), Double(64, 32)
        self.head = nn.Conv2d(32, 5, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(self.pool(first))
        x = self.up2(self.bottom(self.pool(second)))
        x = self.up1(self.join2(torch.cat((second, x), 1)))
        return self.head(self.join1(torch.cat((first, x), 1)))


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5000, 128)
        self.lstm = nn.LSTM(128, 256, num_layers=2, batch_first=True, dropout=0.2)
        self.head = nn.Linear(256, 5000)

    def forward(self, words):
        return self.head(self.lstm(self.table(words))[0])


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        layers = []
        for i, (inner, outer) in enumerate(((100, 512), (512, 256), (256, 128), (128, 64))):
            layers += [
                nn.ConvTranspose2d(inner, outer, 4, 2 if i else 1, 1 if i else 0, bias=False),
                nn.BatchNorm2d(outer),
                nn.ReLU(True),
            ]
        self.main = nn.Sequential(
            *layers, nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh()
        )

    def forward(self, x):
        return self.main(x)


def vision(name):
    def make():
        import torchvision

        return getattr(torchvision.models, name)(), torch.randn(2, 3, 224, 224)

    return make


def bert():
    import transformers

    return transformers.BertForSequenceClassification(transformers.BertConfig()), torch.randint(
        30522, (2, 24)
    )


def gpt2():
    import transformers

    return transformers.GPT2LMHeadModel(transformers.GPT2Config()), torch.randint(50257, (1, 16))


NETWORKS = {
    name: vision(name)
    for name in (
        "resnet50",
        "mobilenet_v2",
        "densenet121",
        "efficientnet_b0",
        "convnext_tiny",
        "swin_t",
        "vit_b_16",
    )
}
NETWORKS.update(
    unet=lambda: (UNet(), torch.randn(2, 3, 64, 64)),
    bert=bert,
    gpt2=gpt2,
    lstm=lambda: (LanguageModel(), torch.randint(5000, (3, 20))),
    dcgan=lambda: (Generator(), torch.randn(2, 100, 1, 1)),
)


def made(name):
    """Sets eval mode, and values other than the first ones: zeros and ones would hide mistakes."""
    torch.manual_seed(0)
    net, x = NETWORKS[name]()
    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm2d)]
    with torch.no_grad():
        for p in net.parameters():
            if p.ndim < 2 or p.min() == p.max():
                p.add_(torch.randn_like(p) * 0.02)
        for m in norms:
            m.momentum = 1.0
            m.weight.mul_(
                0.5
            )  # random networks amplify rounding from layer to layer, trained ones do not
        if norms:
            net.train()(x)
    for m in norms:
        m.momentum = 0.1
    return net.eval(), x


# The peak of a process counts that of its parent at the fork, so a small process starts it.
MEASURE = (
    "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024); sys.exit(code)"
)


def measured(build, command, text):
    """Runs a program of the build tree and returns the most memory that it had, in bytes."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", MEASURE, os.path.join(build, "run"), *command],
        input=text,
        capture_output=True,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode())
    return int(done.stdout.split()[-1])


def compared(name, build, folder):
    net, x = made(name)
    with torch.no_grad():
        wanted = net(x)
    wanted = wanted if torch.is_tensor(wanted) else wanted.logits
    paths = [os.path.join(folder, part + ".safetensors") for part in ("weights", "data", "logits")]
    ties = getattr(net, "all_tied_weights_keys", {})
    save_file({k: t.contiguous() for k, t in net.state_dict().items() if k not in ties}, paths[0])
    save_file({"input": x}, paths[1])
    text = str(net).encode()
    del net
    programs = os.path.join(build, "examples/networks", name), os.path.join(
        build, "tests/models/printed"
    )
    peak = measured(build, [programs[0], *paths], text)
    printed = os.path.join(folder, "model.txt")
    with open(printed, "wb") as file:
        file.write(text)
    loading = measured(build, [programs[1], printed, paths[0], "load"], b"")
    logits = load_file(paths[2])["logits"]
    if logits.shape != wanted.shape:
        raise RuntimeError(
            "logits of shape %s; expected %s" % (tuple(logits.shape), tuple(wanted.shape))
        )
    return (
        float((logits - wanted).abs().max()),
        float(wanted.abs().max()),
        (loading, peak),
        os.path.getsize(paths[0]),
    )


def main():
    build, names = os.path.abspath(sys.argv[1]), sys.argv[2:] or list(NETWORKS)
    failed = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                difference, largest, (loading, peak), size = compared(name, build, folder)
            except ImportError as missing:
                print("SKIP: %s: %s" % (name, missing))
                continue
            except RuntimeError as why:
                failed += 1
                print("FAILED: %s: %s" % (name, why))
                continue
        good = difference <= MOST  # a NaN is not good
        good = good and (name != "gpt2" or (loading < LOADING and peak < MEMORY))
        failed += not good
        print(
            "%s: %-16s largest difference %.1e, largest logit %.2f, file %.1f MB, peak of loading "
            "%.1f MB, with a forward %.1f MB"
            % (
                "ok" if good else "FAILED",
                name,
                difference,
                largest,
                size / 1e6,
                loading / 1e6,
                peak / 1e6,
            ),
            flush=True,
        )
    sys.exit(failed > 0)


main()
