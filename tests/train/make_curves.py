#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Curves of the loss of four networks, each 200 steps, with the same weights and data here and in
# test_curves.c.
#   PYTHON-WITH-TORCH make_curves.py > curves.txt           records the curves of PyTorch
#   PYTHON-WITH-TORCH make_curves.py --against test_curves  trains now in both, and compares
# A curve is a line `curve NAME f32|f64`, a line each for `net`, `optim`, `scheduler`, `clip`, and a
# line of the losses. The specs are Python, too: PyTorch builds the networks from the same text.
import subprocess
import sys

import torch
from torch import nn

STEPS, BATCHES, COMPARED = 200, 4, 50
LAYER = "TransformerEncoderLayer(16, 2, dim_feedforward=32, dropout=0.0, %sbatch_first=True)"
CURVES = {
    "mlp": dict(
        net="Sequential(Linear(16, 32), Tanh(), Linear(32, 32), ReLU(), Linear(32, 8))",
        optim="SGD(lr=0.05, momentum=0.9, weight_decay=0.001)",
        scheduler="StepLR(60, gamma=0.5)",
    ),
    "lenet5": dict(
        net="Sequential(Conv2d(1, 6, 5, padding=2), Tanh(), AvgPool2d(2), Conv2d(6, 16, 5), "
        "Tanh(), AvgPool2d(2), Flatten(), Linear(400, 120), Tanh(), Linear(120, 84), Tanh(), "
        "Linear(84, 8))",
        optim="Adam(lr=0.002)",
        scheduler="CosineAnnealingLR(200)",
    ),
    "transformer": dict(
        net="Sequential(Embedding(20, 16), %s, %s, Linear(16, 20))"
        % (LAYER % "", LAYER % "activation='gelu', norm_first=True, "),
        optim="AdamW(lr=0.003, weight_decay=0.05)",
        scheduler="LinearLR(0.1, total_iters=20)",
        clip=1.0,
    ),
    "lstm": dict(
        net="lstm_lm(20, embedding_dim=12, hidden_size=16, num_layers=2, dropout=0.0)",
        optim="RMSprop(lr=0.003, momentum=0.5)",
        scheduler="ExponentialLR(0.995)",
        clip=0.5,
    ),
}
# Shapes of a batch; the targets of the last two are the next tokens.
SHAPES = {"mlp": (16, 16), "lenet5": (4, 1, 28, 28), "transformer": (4, 13), "lstm": (4, 13)}


class lstm_lm(nn.Module):
    """The parameters have the names and the order of Tenon's model of this name."""

    def __init__(self, tokens, embedding_dim, hidden_size, num_layers, dropout):
        super().__init__()
        self.encoder = nn.Embedding(tokens, embedding_dim)
        self.rnn = nn.LSTM(embedding_dim, hidden_size, num_layers, batch_first=True)
        self.decoder = nn.Linear(hidden_size, tokens)

    def forward(self, x):
        return self.decoder(self.rnn(self.encoder(x))[0])


class Numbers:
    """Numbers in [-1, 1), and whole numbers below a limit, that the test computes, too."""

    def __init__(self):
        self.state = 1

    def next(self):
        self.state = (self.state * 1103515245 + 12345) % 2**31
        return self.state / 2**30 - 1

    def tensor(self, shape, scale):
        count = int(torch.Size(shape).numel())
        values = [scale * self.next() for _ in range(count)]
        return torch.tensor(values, dtype=torch.float64).reshape(shape)

    def whole(self, shape, limit):
        count = int(torch.Size(shape).numel())
        values = [int((self.next() + 1) / 2 * limit) for _ in range(count)]
        return torch.tensor(values).reshape(shape)


def fill(net, numbers):
    """Weights by their number of inputs; 1 or more for the factors of a layer norm."""
    with torch.no_grad():
        for name, p in net.named_parameters():
            factor = "norm" in name and name.endswith("weight")
            scale = (p.numel() / p.shape[0]) ** -0.5 if p.dim() > 1 else 0.1
            p.copy_(numbers.tensor(p.shape, scale) + (1 if factor else 0))


def batches(name, numbers, dtype):
    shape, tokens = SHAPES[name], name in ("transformer", "lstm")
    for _ in range(BATCHES):
        if tokens:
            row = numbers.whole(shape, 20)
            yield row[:, :-1], row[:, 1:].reshape(-1)
        else:
            x = numbers.tensor(shape, 1.0).to(dtype)
            yield x, numbers.whole(shape[:1], 8)


def train(name, net, optim, scheduler, clip=0.0, dtype=torch.float32):
    numbers = Numbers()
    net = eval(net, {**vars(nn), "lstm_lm": lstm_lm}).to(dtype).train()
    fill(net, numbers)
    data = list(batches(name, numbers, dtype))
    kind, options = optim.split("(", 1)
    optimizer = eval(
        "kind(net.parameters(), " + options,
        dict(vars(torch.optim), kind=getattr(torch.optim, kind), net=net),
    )
    kind, options = scheduler.split("(", 1)
    kind = getattr(torch.optim.lr_scheduler, kind)
    scheduler = eval("kind(optimizer, " + options, dict(kind=kind, optimizer=optimizer))
    for step in range(STEPS):
        x, target = data[step % BATCHES]
        optimizer.zero_grad()
        y = net(x)
        loss = nn.functional.cross_entropy(y.reshape(len(target), -1), target)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        scheduler.step()
        yield loss.item()


def curves():
    for name, one in CURVES.items():
        for dtype in (torch.float32, torch.float64):
            yield name, str(dtype)[-2:], one, list(train(name, dtype=dtype, **one))


def compare(program):
    """Trains in Tenon and here. The program prints `losses NAME f32|f64 LOSS...` for each
    curve."""
    lines = subprocess.run([program, "--print"], check=True, capture_output=True, text=True)
    rows = [l.split() for l in lines.stdout.splitlines() if l.startswith("losses ")]
    theirs = {tuple(row[1:3]): row[3:] for row in rows}
    worst = 0.0
    for name, bits, _, losses in curves():
        other = [float(v) for v in theirs[name, "f" + bits]]
        gaps = [abs(a - b) for a, b in zip(losses, other)]
        assert len(gaps) == STEPS, (name, len(gaps))
        first = max(gaps[:COMPARED])
        worst = max(worst, first)
        print(
            "%-12s f%s: first loss %.6f, last %.6f; largest difference in %d steps %.3g, in %d %.3g"
            % (name, bits, losses[0], losses[-1], COMPARED, first, STEPS, max(gaps))
        )
    return 0 if worst <= 1e-4 else 1


torch.set_num_threads(1)
if len(sys.argv) == 3 and sys.argv[1] == "--against":
    sys.exit(compare(sys.argv[2]))
print("# Made by make_curves.py with PyTorch %s" % torch.__version__.split("+")[0])
for name, bits, one, losses in curves():
    print("curve", name, "f" + bits)
    for key in ("net", "optim", "scheduler", "clip"):
        print(key, one.get(key, 0.0))
    print(" ".join(("%.9g" if bits == "32" else "%.17g") % v for v in losses))
