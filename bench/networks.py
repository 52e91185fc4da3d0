# SPDX-License-Identifier: MIT
"""The networks of bench/networks.c for PyTorch, with the same names of parameters.

A network without an entry in `networks` is the module that its spec names: the specs are
expressions of Python, too.
"""

import torch
import torch.nn.functional as F
from torch import nn

from unet import UNet


class LanguageModel(nn.Module):
    def __init__(self, words=10000, size=256):
        super().__init__()
        self.encoder = nn.Embedding(words, size)
        self.rnn = nn.LSTM(size, size, 2, batch_first=True)
        self.decoder = nn.Linear(size, words)

    def forward(self, words):
        return self.decoder(self.rnn(self.encoder(words))[0])


class Conv1D(nn.Module):
    """A Linear whose weight is transposed, as transformers has it."""

    def __init__(self, outer, inner):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(inner, outer)), nn.Parameter(
            torch.empty(outer)
        )

    def forward(self, x):
        rows = torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight)
        return rows.reshape(*x.shape[:-1], -1)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = Conv1D(3 * width, width), Conv1D(width, width)

    def forward(self, x, past=None):
        n, length, width = x.shape
        parts = self.c_attn(x).split(width, -1)
        q, k, v = (p.view(n, length, self.heads, -1).transpose(1, 2) for p in parts)
        if past is not None:
            k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return self.c_proj(y.transpose(1, 2).reshape(n, length, width))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(4 * width, width), Conv1D(width, 4 * width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.ln_2, self.mlp = nn.LayerNorm(width), Mlp(width)

    def forward(self, x, past=None):
        x = x + self.attn(self.ln_1(x), past)
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    """GPT-2 small as transformers names it; `cache` has keys and values of each layer in turn."""

    def __init__(self, words=50257, places=1024, width=768, layers=12, heads=12):
        super().__init__()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(words, width),
                "wpe": nn.Embedding(places, width),
                "h": nn.ModuleList(Block(width, heads) for _ in range(layers)),
                "ln_f": nn.LayerNorm(width),
            }
        )
        self.lm_head = nn.Linear(width, words, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, words, *cache):
        body = self.transformer
        first = cache[0].shape[2] if cache else 0
        x = body["wte"](words) + body["wpe"].weight[first : first + words.shape[1]]
        for i, block in enumerate(body["h"]):
            x = block(x, cache[2 * i : 2 * i + 2] if cache else None)
        return self.lm_head(body["ln_f"](x))


def vision(name, **options):
    import torchvision

    return getattr(torchvision.models, name)(**options)


def small_resnet():
    """What programs do to a ResNet of torchvision for small images."""
    net = vision("resnet18", num_classes=10)
    net.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    net.maxpool = nn.Identity()
    return net


networks = {
    "resnet18-cifar": small_resnet,
    "resnet18": lambda: vision("resnet18"),
    "lstm": LanguageModel,
    "resnet50": lambda: vision("resnet50"),
    "mobilenet": lambda: vision("mobilenet_v2", dropout=0.0),
    "densenet": lambda: vision("densenet121"),
    "unet": lambda: UNet(3, 2, base=32),
    "vit": lambda: vision("vit_b_16"),
    "gpt2": GPT2,
    "gpt2-token": GPT2,
}


def make(name, spec):
    return networks[name]() if name in networks else eval(spec, vars(nn).copy())
