#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# The networks of the plugin tenon.models as PyTorch, torchvision and transformers compute them.
#   make_models_plugin.py FILE                 writes files/models_plugin.txt for
#                                              test_models_plugin.c: small networks with weights
#                                              from a formula, in float64
#   make_models_plugin.py --live SOURCE BUILD  (make models) compares the committed file with a new
#                                              one, then networks of the published sizes: printed
#                                              text, strict loading of a state dict, results in
#                                              float32; in float64 results in both modes and
#                                              gradients
# Ends with 77, and says SKIP, if PyTorch or safetensors is not installed.
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
import torch.nn.functional as F

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
from unet import UNet

MOST = 1e-5  # of difference in float32, in units of the largest number
MOST_WIDE = 1e-9  # in float64. In float32, rounding grows in deep networks that are not trained.


class LeNet5(nn.Module):
    def __init__(self, size=32, channels=1):
        super().__init__()
        first, second = (2 if size < 32 else 0), (2 if size < 28 else 0)
        self.conv1 = nn.Conv2d(channels, 6, 5, padding=first)
        self.conv2 = nn.Conv2d(6, 16, 5, padding=second)
        left = ((size + 2 * first - 4) // 2 + 2 * second - 4) // 2
        self.fc1, self.fc2 = nn.Linear(16 * left * left, 120), nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.avg_pool2d(torch.tanh(self.conv1(x)), 2)
        x = F.avg_pool2d(torch.tanh(self.conv2(x)), 2).flatten(1)
        return self.fc3(torch.tanh(self.fc2(torch.tanh(self.fc1(x)))))


class RNNModel(nn.Module):
    def __init__(self, words, features, hidden, layers, dropout, tied=False):
        super().__init__()
        self.drop, self.encoder = nn.Dropout(dropout), nn.Embedding(words, features)
        self.rnn = nn.LSTM(features, hidden, layers, dropout=dropout, batch_first=True)
        self.decoder = nn.Linear(hidden, words)
        if tied:
            self.decoder.weight = self.encoder.weight

    def forward(self, words):
        return self.decoder(self.drop(self.rnn(self.drop(self.encoder(words)))[0]))


def small_stem(net):
    """What people do to a ResNet of torchvision for small images."""
    net.conv1 = nn.Conv2d(net.conv1.in_channels, net.conv1.out_channels, 3, 1, 1, bias=False)
    net.maxpool = nn.Identity()
    return net


def resnet(name, **options):
    import torchvision

    return getattr(torchvision.models, name)(**options)


def mlp(sizes, **options):
    import torchvision

    return torchvision.ops.MLP(sizes[0], sizes[1:], **options)


def tiny_resnet(block, layers, **options):
    from torchvision.models import resnet as family

    return small_stem(family.ResNet(getattr(family, block), layers, **options))


def mobilenet(**options):
    import torchvision

    return torchvision.models.mobilenet_v2(**options)


def vit(size, patch, layers, heads, features, wide, classes):
    import torchvision

    return torchvision.models.VisionTransformer(
        size, patch, layers, heads, features, wide, num_classes=classes
    )


def gpt2(**options):
    import transformers

    words = options.get("vocab_size", 50257)
    config = transformers.GPT2Config(bos_token_id=words - 1, eos_token_id=words - 1, **options)
    for name in ("resid_pdrop", "embd_pdrop", "attn_pdrop"):
        setattr(config, name, 0.0)
    return transformers.GPT2LMHeadModel(config)


def image(*shape):
    places = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return torch.sin(places * 0.37).view(shape)


def words(most, *shape):
    return (torch.arange(torch.Size(shape).numel()) * 7 % most).view(shape)


# The spec, the network, the input. The first list is recorded, so the networks are small.
SMALL = [
    ("mlp([6, 8, 4])", lambda: mlp([6, 8, 4]), lambda: image(5, 6)),
    (
        "mlp([6, 8, 8, 4], activation='tanh', norm='batch', bias=False)",
        lambda: mlp(
            [6, 8, 8, 4],
            norm_layer=nn.BatchNorm1d,
            activation_layer=nn.Tanh,
            inplace=None,
            bias=False,
        ),
        lambda: image(5, 6),
    ),
    ("lenet5(image_size=8)", lambda: LeNet5(8), lambda: image(2, 1, 8, 8)),
    ("lenet5(image_size=28, in_channels=2)", lambda: LeNet5(28, 2), lambda: image(1, 2, 28, 28)),
    (
        "resnet18(num_classes=3, width=64, layers=[1], stem='small')",
        lambda: tiny_stages(["BasicBlock", [1]], 3),
        lambda: image(2, 3, 5, 5),
    ),
    (
        "resnet50(num_classes=3, width=64, layers=[2, 1], stem='small', width_per_group=8)",
        lambda: tiny_stages(["Bottleneck", [2, 1]], 3, width_per_group=8),
        lambda: image(2, 3, 6, 6),
    ),
    (
        "mobilenet_v2(num_classes=3, width_mult=0.1, dropout=0.0)",
        lambda: mobilenet(num_classes=3, width_mult=0.1, dropout=0.0),
        lambda: image(3, 3, 40, 40),
    ),
    (
        "vit_tiny(num_classes=5, image_size=8, patch_size=4, num_layers=2, num_heads=2, "
        "hidden_dim=8, mlp_dim=12)",
        lambda: vit(8, 4, 2, 2, 8, 12, 5),
        lambda: image(3, 3, 8, 8),
    ),
    ("unet(2, 3, base=4, depth=2)", lambda: UNet(2, 3, 4, 2), lambda: image(2, 2, 9, 10)),
    (
        "unet(2, 3, base=4, depth=2, bilinear=True)",
        lambda: UNet(2, 3, 4, 2, True),
        lambda: image(2, 2, 9, 10),
    ),
    (
        "gpt2_small(vocab_size=11, n_positions=8, n_embd=8, n_layer=2, n_head=2, dropout=0.0)",
        lambda: gpt2(vocab_size=11, n_positions=8, n_embd=8, n_layer=2, n_head=2),
        lambda: words(11, 2, 6),
    ),
    (
        "lstm_lm(9, embedding_dim=6, hidden_size=5, dropout=0.0)",
        lambda: RNNModel(9, 6, 5, 2, 0.0),
        lambda: words(9, 2, 4),
    ),
    (
        "lstm_lm(9, embedding_dim=6, hidden_size=6, num_layers=1, dropout=0.0, tie_weights=True)",
        lambda: RNNModel(9, 6, 6, 1, 0.0, True),
        lambda: words(9, 2, 4),
    ),
]
WHOLE = [
    ("lenet5()", LeNet5, lambda: image(4, 1, 32, 32)),
    ("resnet18()", lambda: resnet("resnet18"), lambda: image(2, 3, 96, 96)),
    (
        "resnet18(num_classes=10, stem=small)",
        lambda: small_stem(resnet("resnet18", num_classes=10)),
        lambda: image(4, 3, 32, 32),
    ),
    ("resnet34()", lambda: resnet("resnet34"), lambda: image(2, 3, 96, 96)),
    ("resnet50()", lambda: resnet("resnet50"), lambda: image(2, 3, 96, 96)),
    ("mobilenet_v2(dropout=0.0)", lambda: mobilenet(dropout=0.0), lambda: image(2, 3, 96, 96)),
    ("vit_tiny()", lambda: vit(224, 16, 12, 3, 192, 768, 1000), lambda: image(1, 3, 224, 224)),
    ("vit_base()", lambda: vit(224, 16, 12, 12, 768, 3072, 1000), lambda: image(1, 3, 224, 224)),
    ("unet(3, 2)", lambda: UNet(3, 2), lambda: image(1, 3, 48, 50)),
    ("gpt2_small(dropout=0.0)", gpt2, lambda: words(50257, 1, 24)),
    (
        "lstm_lm(1000, dropout=0.0)",
        lambda: RNNModel(1000, 200, 200, 2, 0.0),
        lambda: words(1000, 2, 9),
    ),
]


def tiny_stages(what, classes, **options):
    """A ResNet with fewer stages: torchvision's has four; the others are removed."""
    block, layers = what
    net = tiny_resnet(block, layers + [1] * (4 - len(layers)), num_classes=classes, **options)
    expansion = 4 if block == "Bottleneck" else 1
    for i in range(len(layers), 4):
        delattr(net, "layer%d" % (i + 1))
    net.fc = nn.Linear((64 << (len(layers) - 1)) * expansion, classes)

    def forward(x):
        x = net.maxpool(net.relu(net.bn1(net.conv1(x))))
        for i in range(len(layers)):
            x = getattr(net, "layer%d" % (i + 1))(x)
        return net.fc(net.avgpool(x).flatten(1))

    net.forward = forward
    return net


def fill(net):
    """Values from a formula, in the order of the state dict; a tied tensor gets those of its last
    name."""
    with torch.no_grad():
        for j, (name, t) in enumerate(net.state_dict().items()):
            if not t.is_floating_point():
                continue
            wave = torch.sin(torch.arange(t.numel(), dtype=torch.float64) * 1.7 + j + 1)
            wave = wave.view(t.shape)
            if name.endswith("running_var"):
                wave = 1 + 0.3 * wave
            elif t.ndim == 1 and name.endswith("weight"):
                wave = 1 + 0.2 * wave
            elif t.ndim > 1:
                wave = wave * 1.2 / (t.numel() / t.shape[0]) ** 0.5
            t.copy_(wave)


def logits_of(net, x):
    y = net(x)
    return y if torch.is_tensor(y) else y.logits


def weights_of(count):
    """The cotangents of results, and of gradients: both are recorded as sums with them."""
    return torch.cos(torch.arange(count, dtype=torch.float64) * 0.9)


def record(out, spec, make, given):
    torch.manual_seed(0)
    net, x = make().double(), given()
    fill(net)
    state = net.state_dict()
    out.append("model " + spec)
    out += ["printed " + line for line in str(net).split("\n")]
    most = 0 if x.is_floating_point() else int(x.max()) + 1
    out.append("input %d %s" % (most, shape_of(x)))
    out += ["state %s %s" % (name, shape_of(t)) for name, t in state.items()]
    with torch.no_grad():
        numbers(out, "eval", logits_of(net.eval(), x))
    net.train()
    y = logits_of(net, x)
    numbers(out, "train", y)
    (y.flatten() * weights_of(y.numel())).sum().backward()
    for name, p in net.named_parameters():
        total = float((p.grad.flatten() * weights_of(p.numel())).sum())
        out.append("gradient %s %.17g" % (name, total))
    out.append("end")


def shape_of(t):
    return ",".join(str(n) for n in t.shape) or "-"


def numbers(out, word, t):
    flat = t.detach().flatten()
    step = max(1, flat.numel() // 24)
    kept = " ".join("%.17g" % v for v in flat[::step].tolist())
    out.append("%s %d %d %s" % (word, flat.numel(), step, kept))


def recorded():
    out = ["# SPDX-License-Identifier: MIT", "# Written by make_models_plugin.py."]
    for row in SMALL:
        record(out, *row)
    return "\n".join(out) + "\n"


def near(a, b):
    try:
        x, y = float(a), float(b)
    except ValueError:
        return a == b
    return abs(x - y) <= 1e-7 * (1 + abs(y))


def same_text(one, two):
    """Whether two recorded files are equal within rounding."""
    a, b = one.split(), two.split()
    return len(a) == len(b) and all(near(x, y) for x, y in zip(a, b))


# ---- networks of the published sizes, live ----


def shaken(net):
    """Values other than the first ones: zeros and ones would hide mistakes. Norms get the moments
    of their input, or the numbers of a deep network that is not trained grow."""
    with torch.no_grad():
        for p in net.parameters():
            if p.ndim < 2 or p.min() == p.max():
                p.add_(torch.randn_like(p) * 0.02)


def furthest(got, wanted):
    return float((got.double() - wanted.double()).abs().max()) / (float(wanted.abs().max()) + 1e-30)


def compared(spec, make, given, build, folder):
    """Returns the differences: of results in float32; of results and gradients in float64."""
    torch.manual_seed(0)
    net, x = make(), given()
    x = x.float() if x.is_floating_point() else x
    shaken(net)
    files = ("weights.pt", "data.safetensors", "out.safetensors")
    paths = [os.path.join(folder, part) for part in files]
    torch.save(net.state_dict(), paths[0])
    save_file({"input": x}, paths[1])
    done = subprocess.run(
        [
            os.path.join(build, "run"),
            os.path.join(build, "tests/models/models_plugin"),
            spec,
            *paths,
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    if done.stdout != str(net) + "\n":
        raise RuntimeError("prints another text:\n" + done.stdout)
    out = load_file(paths[2])
    net = net.double()  # the values are still float32 numbers
    x = x.double() if x.is_floating_point() else x
    with torch.no_grad():
        y = logits_of(net.eval(), x)
    narrow, wide = furthest(out["eval"], y), furthest(out["wide"], y)
    y = logits_of(net.train(), x)
    wide = max(wide, furthest(out["train"], y.detach()))
    (y.flatten() * weights_of(y.numel())).sum().backward()
    parameters = dict(net.named_parameters())
    if len(parameters) != sum(name.startswith("gradient.") for name in out):
        raise RuntimeError("another number of parameters")
    unit = max(float(p.grad.abs().max()) for p in parameters.values())
    slopes = 0.0
    for name, p in parameters.items():
        scale = max(float(p.grad.abs().max()), 1e-3 * unit)
        slopes = max(slopes, float((out["gradient." + name] - p.grad).abs().max()) / scale)
    return narrow, wide, slopes


def live(source, build):
    failed = 0
    with open(
        os.path.join(source, "tests/models/files/models_plugin.txt"), encoding="utf-8"
    ) as file:
        if not same_text(file.read(), recorded()):
            failed += 1
            print("FAILED: files/models_plugin.txt is not what PyTorch computes now")
    only = sys.argv[4:]
    for spec, make, given in WHOLE:
        if only and not any(spec.startswith(name) for name in only):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                narrow, wide, slopes = compared(spec, make, given, os.path.abspath(build), folder)
            except ImportError as missing:
                print("SKIP: %s: %s" % (spec, missing))
                continue
            except RuntimeError as why:
                failed += 1
                print("FAILED: %s: %s" % (spec, why))
                continue
        good = narrow <= MOST and wide <= MOST_WIDE and slopes <= MOST_WIDE  # a NaN is not good
        failed += not good
        print(
            "%s: %s: float32 %.1e, float64 %.1e, gradients %.1e"
            % ("ok" if good else "FAILED", spec, narrow, wide, slopes),
            flush=True,
        )
    sys.exit(failed > 0)


if sys.argv[1] == "--live":
    live(*sys.argv[2:4])
with open(sys.argv[1], "w", encoding="utf-8") as target:
    target.write(recorded())
