# SPDX-License-Identifier: MIT
#
# The programs of random_networks.py: lines such as `v3 = call(v1)` with the module `Linear(4, 6)`,
# or `v4 = v3.softmax(-1) + v1`. Each line is tried in PyTorch in float64; lines that PyTorch
# refuses, or whose numbers are too large, are left out.
import random
import re

import numpy
import torch
from torch import nn

MOST_NUMBERS = 2000  # of one value
LINES = 12

# Functions that the two sides spell differently: (Tenon, PyTorch).
FUNCTIONS = {
    "amax": (lambda x, d: x.amax(dims=[d], keepdim=True), lambda x, d: x.amax(d, keepdim=True)),
    "attend": (
        lambda q, k, v, causal: _tenon().scaled_dot_product_attention(q, k, v, is_causal=causal),
        lambda q, k, v, causal: nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=causal),
    ),
    "cat": (lambda d, *x: _tenon().cat(list(x), dim=d), lambda d, *x: torch.cat(x, d)),
    "clamp": (lambda x, a, b: x.clamp(min=a, max=b), lambda x, a, b: x.clamp(a, b)),
    "cummax": (lambda x, d: x.cummax(dim=d)[0], lambda x, d: x.cummax(d)[0]),
    "maximum": (lambda a, b: a.maximum(b), lambda a, b: a.maximum(b)),
    "mean": (lambda x, d: x.mean(dims=[d], keepdim=True), lambda x, d: x.mean(d, keepdim=True)),
    "narrow": (lambda x, d, a, n: x.narrow(d, a, n), lambda x, d, a, n: x.narrow(d, a, n)),
    "pad": (lambda x, *p: _tenon().pad(x, list(p)), lambda x, *p: nn.functional.pad(x, list(p))),
    "permute": (lambda x, *d: x.permute(list(d)), lambda x, *d: x.permute(d)),
    "sort": (lambda x, d: x.sort(dim=d)[0], lambda x, d: x.sort(d)[0]),
    "stack": (lambda d, *x: _tenon().stack(list(x), dim=d), lambda d, *x: torch.stack(x, d)),
    "sum": (lambda x, d: x.sum(dims=[d], keepdim=True), lambda x, d: x.sum(d, keepdim=True)),
    "topk": (lambda x, k, d: x.topk(k, dim=d)[0], lambda x, k, d: x.topk(k, d)[0]),
    "var": (lambda x, d: x.var(dims=[d], keepdim=True), lambda x, d: x.var(d, keepdim=True)),
    "where": (lambda a, b: _tenon().where(a.gt(b), a, b), lambda a, b: torch.where(a > b, a, b)),
}


def _tenon():
    import tenon

    return tenon


class Program:
    def __init__(self, seed):
        self.seed = seed
        self.views = False  # whether a result is a view of another value
        self.inputs, self.values, self.lines, self.outputs, self.cotangents = [], [], [], [], []

    def kinds(self):
        """The types of layers, and the functions, for the report."""
        return {module.split("(")[0] if module else expression.translate(
            str.maketrans("", "", "0123456789, -")) for _, expression, module in self.lines}

    def __str__(self):
        rows = ["  %s = %s%s" % (name, values.dtype, list(values.shape))
                for name, values in zip(self.inputs, self.values)]
        rows += ["  %s = %s%s" % (name, expression, "   # call: " + module if module else "")
                 for name, expression, module in self.lines]
        return "\n".join(rows + ["  results: " + ", ".join(self.outputs)])


# ---- layers --------------------------------------------------------------------------------------
ACTIVATIONS = [  # none that jumps: where it does, rounding decides
    "ReLU()", "ReLU6()", "ELU(0.7)", "SELU()", "CELU(1.3)", "GELU()", "GELU('tanh')", "SiLU()",
    "Mish()", "Tanh()", "Sigmoid()", "LogSigmoid()", "Softplus(2.0, 15.0)", "Softsign()",
    "Tanhshrink()", "Hardtanh(-0.4, 1.5)", "Hardswish()", "Hardsigmoid()", "LeakyReLU(0.2)",
    "Softshrink(0.2)", "Threshold(0.1, 0.1)", "PReLU()", "Identity()",
    "Dropout(0.0)", "RReLU(0.2, 0.2)", "GLU(-1)", "Softmax(-1)", "LogSoftmax(-1)", "Softmin(-1)",
]


def divisor(r, n):
    return r.choice([d for d in range(1, n + 1) if n % d == 0])


def windows(r, n):
    """Kernel, stride, padding and dilation of convolutions and pools."""
    kernel = r.randint(1, min(n, 4))
    return kernel, r.randint(1, 2), r.randint(0, kernel // 2), r.choice([1, 1, 2])


def convolution(r, shape, rank):
    inner, kernel = shape[1], windows(r, min(shape[2:]))
    groups = divisor(r, inner)
    outer = groups * r.randint(1, 3)
    mode = r.choice(["zeros", "zeros", "reflect", "replicate", "circular"])
    if rank == 3 and mode == "reflect":
        mode = "zeros"
    bias = r.random() < 0.7
    if r.random() < 0.25:
        return "ConvTranspose%dd(%d, %d, %d, %d, %d, 0, %d, %s, %d)" % (
            rank, inner, outer, kernel[0], kernel[1], kernel[2], groups, bias, kernel[3])
    return "Conv%dd(%d, %d, %d, %d, %d, %d, %d, %s, '%s')" % (
        (rank, inner, outer) + kernel + (groups, bias, mode))


def pool(r, shape, rank):
    kernel, stride, padding, dilation = windows(r, min(shape[2:]))
    out = r.randint(1, 4)
    return r.choice([
        "MaxPool%dd(%d, %d, %d, %d, False, %s)" % (
            rank, kernel, stride, padding, dilation, r.random() < 0.5),
        "AvgPool%dd(%d, %d, %d, %s, %s)" % (
            rank, kernel, stride, padding, r.random() < 0.5, r.random() < 0.5),
        "AdaptiveAvgPool%dd(%d)" % (rank, out), "AdaptiveMaxPool%dd(%d)" % (rank, out),
        "LPPool%dd(2.0, %d, %d)" % (rank, kernel, stride),
    ])


def spatial(r, shape):
    """Layers on [N, C, ...]."""
    rank, inner = len(shape) - 2, shape[1]
    norm = r.random() < 0.7
    pads = r.choice(["ReflectionPad", "ReplicationPad", "ZeroPad", "CircularPad"])
    found = [
        convolution(r, shape, rank), convolution(r, shape, rank), pool(r, shape, rank),
        "BatchNorm%dd(%d, affine=%s, track_running_stats=%s)" % (
            rank, inner, norm, r.random() < 0.8),
        "InstanceNorm%dd(%d, affine=%s)" % (rank, inner, norm),
        "GroupNorm(%d, %d, affine=%s)" % (divisor(r, inner), inner, norm),
        "%s%dd(1)" % (pads, rank), "LocalResponseNorm(%d)" % r.randint(1, 3),
        "Upsample(scale_factor=2.0)", "ChannelShuffle(%d)" % divisor(r, inner),
        "Flatten(%d)" % r.randint(1, rank), "Dropout1d(0.0)",
    ]
    if rank == 1:
        found.append("Upsample(scale_factor=2.0, mode='linear', align_corners=%s)" % norm)
    if rank == 2:
        found += [
            "Upsample(scale_factor=2.0, mode='%s', align_corners=%s)" % (
                r.choice(["bilinear", "bicubic"]), norm),
            "Unfold(2)", "PixelUnshuffle(2)", "PixelShuffle(2)", "Softmax2d()",
        ]
    return found


def sequences(r, shape):
    """Layers on [N, L, E]; their expressions, where they return several results."""
    width = shape[-1]
    heads = divisor(r, width)
    layer = "%d, %d, %d, 0.0, '%s', batch_first=True, norm_first=%s" % (
        width, heads, r.randint(2, 9), r.choice(["relu", "gelu"]), r.random() < 0.5)
    hidden, count, both = r.randint(2, 6), r.randint(1, 2), r.random() < 0.4
    rest = "%d, %d, %d, bias=%s, batch_first=True, bidirectional=%s" % (
        width, hidden, count, r.random() < 0.8, both)
    return [
        ("TransformerEncoderLayer(%s)" % layer, "call({a})"),
        ("TransformerDecoderLayer(%s)" % layer, "call({a}, {b})"),
        ("TransformerEncoder(TransformerEncoderLayer(%s), 2)" % layer, "call({a})"),
        ("MultiheadAttention(%d, %d, batch_first=True)" % (width, heads), "call({a}, {b}, {a})[0]"),
        ("MultiheadAttention(%d, %d, 0.0, False, batch_first=True)" % (width, heads),
         "call({a}, {a}, {a})[1]"),
        ("LSTM(%s)" % rest, "call({a})[0]"), ("GRU(%s)" % rest, "call({a})[0]"),
        ("LSTM(%s)" % rest, "call({a})[1][1]"), ("GRU(%s)" % rest, "call({a})[1]"),
        ("RNN(%s, nonlinearity='%s')" % (rest, r.choice(["tanh", "relu"])), "call({a})[0]"),
    ]


def layers(r, shape):
    """Pairs of a module and the expression that calls it."""
    width = shape[-1] if shape else 1
    found = [(r.choice(ACTIVATIONS), "call({a})") for _ in range(4)]
    if len(shape) >= 2:
        bias = r.random() < 0.7
        found += [(spec, "call({a})") for spec in (
            "Linear(%d, %d, bias=%s)" % (width, r.randint(1, 8), bias),
            "Linear(%d, %d)" % (width, width),
            "LayerNorm([%d], elementwise_affine=%s)" % (width, bias),
            "RMSNorm([%d])" % width, "Flatten(1)")]
        found.append(("Bilinear(%d, %d, 3)" % (width, width), "call({a}, {b})"))
    if len(shape) == 2:
        parts = divisor(r, width)
        found += [("BatchNorm1d(%d)" % width, "call({a})"),
                  ("Unflatten(1, (%d, -1))" % parts, "call({a})"),
                  ("CosineSimilarity()", "call({a}, {b})"),
                  ("PairwiseDistance()", "call({a}, {b})")]
    if 3 <= len(shape) <= 5:
        few = spatial(r, shape)
        found += [(spec, "call({a})") for spec in r.sample(few, min(len(few), 6))]
    if len(shape) == 3:
        found += r.sample(sequences(r, shape), 4)
    return found


# ---- operators -----------------------------------------------------------------------------------
def operators(r, shape):
    """Expressions of one value {a}, or of {a} and {b} of the same shape."""
    d = r.randrange(len(shape))
    e = r.randrange(len(shape))
    order = list(range(len(shape)))
    r.shuffle(order)
    length = r.randint(1, max(shape[d], 1))
    found = [
        "{a} + {b}", "{a} * {b}", "{a} - {b} * 0.5", "{a} + {b}", "F.where({a}, {b})",
        "{a} / ({b} * {b} + 1.0)", "F.maximum({a}, {b})", "F.cat(%d, {a}, {b})" % d,
        "F.stack(%d, {a}, {b})" % d, "F.mean({a}, %d)" % d, "F.sum({a}, %d)" % d,
        "F.amax({a}, %d)" % d, "F.narrow({a}, %d, %d, %d)" % (d, shape[d] - length, length),
        "F.permute({a}, %s)" % ", ".join(map(str, order)), "{a}.transpose(%d, %d)" % (d, e),
        "F.sort({a}, %d)" % d, "F.cummax({a}, %d)" % d, "{a}.cumsum(%d)" % d,
        "F.topk({a}, %d, %d)" % (length, d), "F.clamp({a}, -0.7, 0.9)", "{a}.softmax(%d)" % d,
        "{a}.tanh() + {a}", "F.mean({a}, %d) * {b}" % d, "{a}.exp() * 0.2",
        "({a} * {a} + 0.5).sqrt()",
        "{a}.sin()", "({a} * {a} + 1.0).log()", "{a}.abs()", "{a}.erf()", "F.pad({a}, 1, 2)",
        "{a}.matmul({b}.transpose(-1, -2))", "{a}.unsqueeze(%d)" % d, "{a}.log_softmax(%d)" % d,
        "{a}.logsumexp(%d)" % d,
    ]
    if shape[d] > 2:
        found += ["{a} * F.var({a}, %d)" % d]
    if len(shape) >= 3:
        found += ["F.attend({a}, {b}, {a}, %s)" % (r.random() < 0.3)] * 2
    return found


# ---- programs ------------------------------------------------------------------------------------
def _inputs(r, rng, program, values):
    shapes = [(r.randint(2, 4), r.randint(1, 8)),
              (r.randint(1, 3), r.randint(1, 6), r.randint(2, 8)),
              (r.randint(1, 3), r.randint(1, 6), r.randint(2, 8)),
              (r.randint(1, 3), r.randint(1, 6), r.randint(3, 8), r.randint(3, 8)),
              (r.randint(1, 3), r.randint(1, 6), r.randint(3, 8), r.randint(3, 8)),
              (2, r.randint(1, 3), r.randint(2, 4), r.randint(2, 4), r.randint(3, 4))]
    shape = r.choice(shapes)
    for name in ("x", "y")[:r.randint(1, 2)]:
        program.inputs.append(name)
        program.values.append(rng.standard_normal(shape).astype(numpy.float32).astype(float))
        values[name] = torch.from_numpy(program.values[-1])
    if r.random() < 0.15:
        program.inputs.append("words")
        program.values.append(rng.integers(0, 9, (r.randint(1, 3), r.randint(2, 6))))
        words = torch.from_numpy(program.values[-1])
        module = r.choice(
            ["Embedding(9, 6)", "Embedding(9, 4, 2)", "EmbeddingBag(9, 5, mode='mean')"])
        program.lines.append(("v0", "call(words)", module))
        values["v0"] = eval(module, vars(nn)).double()(words).detach()


def _try(expression, module, values):
    """The value of a line in float64; None if PyTorch refuses it or it is of no use."""
    scope = dict(values, F=type("F", (), {name: pair[1] for name, pair in FUNCTIONS.items()}))
    try:
        if module is not None:
            scope["call"] = eval(module, vars(nn)).double()
        with torch.no_grad():
            result = eval(expression, {}, scope)
    except (RuntimeError, ValueError, IndexError, TypeError, AssertionError, NotImplementedError):
        return None
    good = (isinstance(result, torch.Tensor) and 1 <= result.ndim <= 5 and
            0 < result.numel() <= MOST_NUMBERS and bool(torch.isfinite(result).all()) and
            float(result.abs().max()) < 30)
    return result.detach() if good else None


def _partner(r, values, name):
    """A value of the same shape, often the newest, perhaps the same value."""
    same = [other for other in values
            if values[other].shape == values[name].shape and values[other].is_floating_point()]
    return r.choice(same)


def random_program(seed):
    """Returns the program of a seed."""
    r, rng = random.Random(seed), numpy.random.default_rng(seed)
    torch.manual_seed(seed)
    program, values = Program(seed), {}
    _inputs(r, rng, program, values)
    for _ in range(200):
        if len(program.lines) >= r.randint(4, LINES):
            break
        names = list(values)
        a = names[-1] if r.random() < 0.7 else r.choice(names)
        if not values[a].is_floating_point():
            continue
        shape = tuple(values[a].shape)
        module, expression = None, r.choice(operators(r, shape))
        if r.random() < 0.6:
            module, expression = r.choice(layers(r, shape))
        expression = expression.replace("{a}", a).replace("{b}", _partner(r, values, a))
        result = _try(expression, module, values)
        if result is not None:
            name = "v%d" % len(program.lines)
            program.lines.append((name, expression, module))
            values[name] = result
    made = [name for name, _, _ in program.lines]
    used = " ".join(expression for _, expression, _ in program.lines)
    read = set(re.findall(r"\w+", used))
    memory = [values[name].untyped_storage().data_ptr()
              for name in program.inputs if name in values]
    # A plan returns no views of inputs.
    shuffled = [n for n, _, module in program.lines if "ChannelShuffle" in str(module)]
    made = [n for n in made if n not in shuffled and
            values[n].untyped_storage().data_ptr() not in memory] or made[-1:]
    loose = [name for name in made[:-1] if name not in read]
    program.outputs = made[-1:] + r.sample(loose, min(len(loose), 2))
    places = [value.untyped_storage().data_ptr() for value in values.values()]
    program.views = bool(shuffled) or any(
        places.count(values[name].untyped_storage().data_ptr()) > 1 for name in program.outputs)
    program.cotangents = [rng.standard_normal(tuple(values[name].shape)).astype(
        numpy.float32).astype(float) for name in program.outputs]
    return program
