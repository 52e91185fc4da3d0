#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Fused operators, compared with PyTorch's composition of the same functions:
#   PYTHON-WITH-TORCH make_fused.py > fused.txt
from cases import *

FOLLOWERS = {
    "none": lambda z: z,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda z: F.gelu(z, approximate="tanh"),
    "silu": F.silu,
}


def linear(name, activation, a, w, b=None, r=None):
    def function(a, w, b=None, r=None):
        z = F.linear(a, w, b)
        y = FOLLOWERS[activation](z)
        kept = activation in ("gelu", "gelu_tanh", "silu") or (
            activation == "relu" and r is not None
        )
        y = y if r is None else y + r
        return y, z if kept else torch.zeros(0, dtype=z.dtype)

    Case(
        "linear_activation/%s-%s" % (activation, name),
        "linear_activation",
        function,
        [a, w, b, r],
        activation=activation,
    )


for d in FLOATS:
    for f in FOLLOWERS:
        linear(NAMES[d], f, x(3, 4, dtype=d), x(5, 4, dtype=d), x(5, dtype=d))
        linear(
            "sum-" + NAMES[d],
            f,
            x(2, 3, 4, dtype=d),
            x(5, 4, dtype=d),
            x(5, dtype=d),
            x(2, 3, 5, dtype=d),
        )
for d in (F32, F64):
    for f in FOLLOWERS:
        linear("plain-" + NAMES[d], f, x(7, 3, dtype=d), x(2, 3, dtype=d))
        linear("no-rows-" + NAMES[d], f, x(0, 3, dtype=d), x(2, 3, dtype=d), x(2, dtype=d))
        linear(
            "vector-" + NAMES[d], f, x(3, dtype=d), x(2, 3, dtype=d), x(2, dtype=d), x(2, dtype=d)
        )
        linear(
            "turned-" + NAMES[d],
            f,
            x(3, 8, dtype=d, order=(1, 0)),
            x(3, 33, dtype=d, order=(1, 0)),
            x(33, dtype=d),
            x(33, 8, dtype=d, order=(1, 0)),
        )
        linear(
            "apart-" + NAMES[d],
            f,
            x(4, 2, 3, dtype=d, order=(1, 0, 2)),
            x(5, 3, dtype=d),
            x(5, dtype=d),
            x(4, 2, 5, dtype=d, order=(1, 0, 2)),
        )
        linear(
            "expanded-" + NAMES[d],
            f,
            x(1, 3, dtype=d, expand=(9, 3)),
            x(4, 3, dtype=d),
            x(1, dtype=d, expand=(4,)),
            x(1, 4, dtype=d, expand=(9, 4)),
        )


def limited(y, limit):
    return F.relu(y) if limit is None else F.hardtanh(y, 0.0, limit)


def standardize(name, a, dims, w=None, b=None, r=None, eps=1e-5, **limit):
    def function(a, w=None, b=None, r=None):
        mean, var = a.mean(dims, keepdim=True), a.var(dims, unbiased=False, keepdim=True)
        y = (a - mean) * torch.rsqrt(var + eps)
        y = y if w is None else y * w
        y = y if b is None else y + b
        return limited(y if r is None else y + r, limit.get("max")), mean, var

    Case(
        "standardize_relu/" + name,
        "standardize_relu",
        function,
        [a, w, b, r],
        dims=dims,
        eps=eps,
        **limit
    )


def images(*shape, dtype=F64):
    n_, c, *rest = shape
    return x(n_, *rest, c, dtype=dtype, order=(0, len(shape) - 1, *range(1, len(shape) - 1)))


for d in (F32, F64):
    name = "-" + NAMES[d]
    c = dict(dtype=d)
    standardize("channels" + name, x(4, 3, 5, **c), [0, 2], x(3, 1, **c), x(3, 1, **c))
    standardize(
        "channels-sum" + name, x(4, 3, 5, **c), [0, 2], x(3, 1, **c), x(3, 1, **c), x(4, 3, 5, **c)
    )
    standardize("last" + name, x(4, 6, **c), [1], x(6, **c), x(6, **c), x(4, 6, **c))
    standardize("plain" + name, x(2, 3, 4, **c), [1, 2], eps=0.1)
    standardize("side" + name, images(3, 4, 2, 5, **c), [0, 2, 3], x(4, 1, 1, **c), x(4, 1, 1, **c))
    standardize(
        "side-sum" + name,
        images(3, 4, 2, 5, **c),
        [0, 2, 3],
        x(4, 1, 1, **c),
        x(4, 1, 1, **c),
        images(3, 4, 2, 5, **c),
    )
    standardize("side-plain" + name, images(3, 4, 2, 5, **c), [0, 2, 3], r=images(3, 4, 2, 5, **c))
    standardize(
        "mixed" + name,
        images(3, 4, 2, 5, **c),
        [0, 2, 3],
        x(4, 1, 1, **c),
        None,
        x(3, 4, 2, 5, **c),
    )
    standardize("limit" + name, x(4, 3, 5, **c), [0, 2], x(3, 1, **c), x(3, 1, **c), max=0.5)
    standardize("side-limit" + name, images(3, 4, 2, 5, **c), [0, 2, 3], max=0.5)


def batch(name, a, r, training, d, running=True, affine=True, **limit):
    def function(a, m, v, w, b, r=None):
        y = F.batch_norm(a, m, v, w, b, training, 0.0 if training else 0.1)
        return limited(y if r is None else y + r, limit.get("max"))

    Case(
        "batch_norm_relu/" + name,
        "batch_norm_relu",
        function,
        [
            a,
            n(3, dtype=d) if running else None,
            n(3, dtype=d, positive=True) if running else None,
            x(3, dtype=d) if affine else None,
            x(3, dtype=d) if affine else None,
            r,
        ],
        training=training,
        momentum=0.0 if training else 0.1,
        **limit
    )


for d in FLOATS:
    for training in (True, False):
        name = "%s-%s" % ("training" if training else "running", NAMES[d])
        batch(name, x(4, 3, 2, 2, dtype=d), None, training, d)
        if d in (
            F32,
            F64,
        ):  # where halves are rounded in between, a sum is on either side of relu's kink
            batch("sum-" + name, x(4, 3, 2, 2, dtype=d), x(4, 3, 2, 2, dtype=d), training, d)
batch("flat", x(5, 3, dtype=F64), x(5, 3, dtype=F64), True, F64)
batch("plain", x(5, 3, 2, dtype=F64), None, True, F64, running=False, affine=False)
batch("last", images(2, 3, 3, 2), images(2, 3, 3, 2), True, F64)
batch("last-32", images(2, 3, 3, 2, dtype=F32), images(2, 3, 3, 2, dtype=F32), True, F32)
batch("limit", x(4, 3, 2, 2, dtype=F64), x(4, 3, 2, 2, dtype=F64), True, F64, max=0.5)
batch("running-limit", x(4, 3, 2, 2, dtype=F64), None, False, F64, max=0.5)

# ---- the derivatives ----
for d in (F32, F64):

    def derivative(name, a, dims, shape, w=None, residual=True, **limit):
        def function(gy, y, a, mean, var, w=None):
            g = torch.where((y <= 0) | (y >= limit.get("max", INF)), torch.zeros_like(gy), gy)
            spread = torch.rsqrt(var + 1e-5)
            unit = (a - mean) * spread
            scaled = g if w is None else g * w
            gx = spread * (
                scaled
                - scaled.mean(dims, keepdim=True)
                - unit * (scaled * unit).mean(dims, keepdim=True)
            )
            return (
                gx,
                (g * unit).sum_to_size(shape) if shape else torch.zeros(0, dtype=gy.dtype),
                g.sum_to_size(shape) if shape else torch.zeros(0, dtype=gy.dtype),
                g if residual else torch.zeros(0, dtype=gy.dtype),
            )

        size = a()[1].shape
        moment = [1 if i in dims else s for i, s in enumerate(size)]
        more = dict(affine_shape=list(shape)) if shape else {}
        Case(
            "standardize_relu_grad/%s-%s" % (name, NAMES[d]),
            "standardize_relu_grad",
            function,
            [
                x(*size, dtype=d),
                n(*size, dtype=d),
                (True, a),
                x(*moment, dtype=d),
                x(*moment, dtype=d, positive=True),
                w,
            ],
            dims=dims,
            residual=residual,
            **limit,
            **more
        )

    derivative("last", x(4, 6, dtype=d)[1], [1], (6,), x(6, dtype=d))
    derivative("channels", x(4, 3, 5, dtype=d)[1], [0, 2], (3, 1), x(3, 1, dtype=d))
    derivative(
        "channels-alone", x(4, 3, 5, dtype=d)[1], [0, 2], (3, 1), x(3, 1, dtype=d), residual=False
    )
    derivative("plain", x(4, 3, 5, dtype=d)[1], [1, 2], (), residual=False)
    derivative("side", images(3, 4, 2, 3, dtype=d)[1], [0, 2, 3], (4, 1, 1), x(4, 1, 1, dtype=d))
    derivative("limit", x(4, 3, 5, dtype=d)[1], [0, 2], (3, 1), x(3, 1, dtype=d), max=0.5)
    derivative(
        "side-limit",
        images(3, 4, 2, 3, dtype=d)[1],
        [0, 2, 3],
        (4, 1, 1),
        residual=False,
        max=0.5,
    )


# ---- steps of recurrent networks ----
GATES = {"tanh": 1, "relu": 1, "lstm": 4, "gru": 3}
LENGTH, BATCH, HIDDEN = 4, 3, 2
WHERE = [3, 4, 1]


def steps_forward(kind, reverse, keep):
    def call(gx, h, c, w, b, lengths):
        ys, kept, cells = [None] * LENGTH, [None] * LENGTH, [None] * LENGTH
        for t in reversed(range(LENGTH)) if reverse else range(LENGTH):
            gh, c0, h0 = F.linear(h, w, b), c, h
            if kind == "lstm":
                i, f, g, o = (gx[t] + gh).chunk(4, 1)
                parts = [i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()]
                c = parts[1] * c0 + parts[0] * parts[2]
                h = parts[3] * c.tanh()
            elif kind == "gru":
                (a, z, u), (ha, hz, hu) = gx[t].chunk(3, 1), gh.chunk(3, 1)
                r, z = (a + ha).sigmoid(), (z + hz).sigmoid()
                m = (u + r * hu).tanh()
                parts = [r, z, m, hu]
                h = m + z * (h0 - m)
            else:
                parts = []
                h = getattr(torch, kind)(gx[t] + gh)
            if lengths is not None:
                now = (lengths > t)[:, None]
                h = torch.where(now, h, h0)
                c = torch.where(now, c, c0) if c is not None else None
                parts = [torch.where(now, p, torch.zeros_like(p)) for p in parts]
            ys[t], cells[t] = h, c
            kept[t] = torch.cat(parts, 1) if parts else None
        none = torch.zeros(0, dtype=gx.dtype)
        return (
            torch.stack(ys),
            h,
            c if kind == "lstm" else none,
            torch.stack(ys) if keep else none,
            torch.stack(kept) if keep and kept[0] is not None else none,
            torch.stack(cells) if keep and kind == "lstm" else none,
        )

    return call


def steps_backward(kind, reverse):
    def call(states, h0, w, gates, cells, c0, lengths, gy, gh, gc, ggates, gcells):
        order = list(reversed(range(LENGTH)) if reverse else range(LENGTH))
        gx, through = [None] * LENGTH, [None] * LENGTH
        gh = torch.zeros_like(h0) if gh is None else gh
        gc = torch.zeros_like(h0) if gc is None else gc
        for at in reversed(range(LENGTH)):
            t = order[at]
            before = states[order[at - 1]] if at else h0
            gh = gh + gy[t] if gy is not None else gh
            gc = gc + gcells[t] if gcells is not None else gc
            more = ggates[t].chunk(4, 1) if ggates is not None else [0] * 4
            direct, past = torch.zeros_like(gh), gc
            if kind == "lstm":
                i, f, g, o = gates[t].chunk(4, 1)
                c_before, bent = cells[order[at - 1]] if at else c0, cells[t].tanh()
                past = gc + gh * o * (1 - bent * bent)
                x = [
                    (past * g + more[0]) * i * (1 - i),
                    (past * c_before + more[1]) * f * (1 - f),
                    (past * i + more[2]) * (1 - g * g),
                    (gh * bent + more[3]) * o * (1 - o),
                ]
                past = past * f
                u = x
            elif kind == "gru":
                r, z, m, hu = gates[t].chunk(4, 1)
                gm = (gh * (1 - z) + more[2]) * (1 - m * m)
                gr = (gm * hu + more[0]) * r * (1 - r)
                gz = (gh * (before - m) + more[1]) * z * (1 - z)
                x, u, direct = [gr, gz, gm], [gr, gz, gm * r + more[3]], gh * z
            else:
                y = states[t]
                x = [gh * (1 - y * y) if kind == "tanh" else gh * (y > 0)]
                u = x
            x, u = torch.cat(x, 1), torch.cat(u, 1)
            if lengths is not None:
                now = (lengths > t)[:, None]
                x, u = (torch.where(now, v, torch.zeros_like(v)) for v in (x, u))
                direct, gc = torch.where(now, direct, gh), torch.where(now, past, gc)
            else:
                gc = past
            gx[t], through[t] = x, u
            gh = direct + u @ w
        none = torch.zeros(0, dtype=states.dtype)
        return (
            torch.stack(gx),
            torch.stack(through) if kind == "gru" else none,
            gh,
            gc if kind == "lstm" else none,
        )

    return call


def steps(kind, d, reverse, ends, keep=True):
    wide = (LENGTH, BATCH, GATES[kind] * HIDDEN)
    cell = x(BATCH, HIDDEN, dtype=d) if kind == "lstm" else None
    lengths = n(data=WHERE, dtype=I64) if ends else None
    name = "%s-%s%s%s%s" % (
        kind,
        NAMES[d],
        "-reverse" if reverse else "",
        "-lengths" if ends else "",
        "" if keep else "-plain",
    )
    Case(
        "recurrent_steps/" + name,
        "recurrent_steps",
        steps_forward(kind, reverse, keep),
        [
            (x if keep else n)(*wide, dtype=d),
            (x if keep else n)(BATCH, HIDDEN, dtype=d),
            cell if keep or cell is None else n(BATCH, HIDDEN, dtype=d),
            (x if keep else n)(wide[2], HIDDEN, dtype=d),
            (x if keep else n)(wide[2], dtype=d) if reverse else None,
            lengths,
        ],
        kind=kind,
        reverse=reverse,
        keep=keep,
    )
    if not keep or d != F64:  # gates that are not between 0 and 1 make errors of float32 large
        return
    four = (LENGTH, BATCH, 4 * HIDDEN)
    gated, lstm, all_ = GATES[kind] > 1, kind == "lstm", (LENGTH, BATCH, HIDDEN)
    for more in (False, True):
        Case(
            "recurrent_steps_grad/%s%s" % (name, "-more" if more else ""),
            "recurrent_steps_grad",
            steps_backward(kind, reverse),
            [
                (x if kind in ("tanh", "gru") else n)(*all_, dtype=d),
                (x if kind == "gru" else n)(BATCH, HIDDEN, dtype=d),
                x(wide[2], HIDDEN, dtype=d),
                x(*four, dtype=d) if gated else None,
                x(*all_, dtype=d) if lstm else None,
                x(BATCH, HIDDEN, dtype=d) if lstm else None,
                lengths,
                x(*all_, dtype=d),
                x(BATCH, HIDDEN, dtype=d) if more else None,
                x(BATCH, HIDDEN, dtype=d) if more and lstm else None,
                x(*four, dtype=d) if more and gated else None,
                x(*all_, dtype=d) if more and lstm else None,
            ],
            kind=kind,
            reverse=reverse,
        )


for d in (F32, F64):
    for kind in GATES:
        steps(kind, d, False, False)
        steps(kind, d, True, True)
        steps(kind, d, False, False, False)
# ---- a convolution and what follows it in inference ----
IMAGE_FOLLOWERS = {
    "none": lambda z: z,
    "relu": F.relu,
    "relu6": F.relu6,
    "silu": F.silu,
    "hardswish": F.hardswish,
}
CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def convolution(name, activation, a, w, b=None, norm=None, r=None, eps=1e-5, **options):
    def function(a, w, b=None, mean=None, var=None, gamma=None, beta=None, r=None):
        z = CONVOLUTIONS[w.ndim - 2](a, w, b, **options)
        if mean is not None:
            z = F.batch_norm(z, mean, var, gamma, beta, False, 0.0, eps)
        return IMAGE_FOLLOWERS[activation](z if r is None else z + r)

    lists = {k: v if k == "groups" else [v] for k, v in options.items()}
    Case(
        "convolution_activation/%s-%s" % (activation, name),
        "convolution_activation",
        function,
        [a, w, b, *(norm if norm is not None else [None] * 4), r],
        activation=activation,
        eps=eps,
        **lists
    )


def moments(channels, d, affine=True):
    return [
        n(channels, dtype=d),
        n(channels, dtype=d, positive=True),
        x(channels, dtype=d) if affine else None,
        x(channels, dtype=d) if affine else None,
    ]


for d in (F32, F64):
    for f in IMAGE_FOLLOWERS:
        name = NAMES[d]
        c = dict(dtype=d)
        convolution(
            "norm-sum-" + name,
            f,
            images(1, 4, 3, 4, **c),
            x(4, 1, 3, 3, **c),
            x(4, **c),
            moments(4, d, affine=f != "relu"),
            images(1, 4, 3, 4, **c),
            groups=4,
            padding=1,
        )
        if d == F64:
            continue
        convolution(name, f, x(2, 3, 4, 3, **c), x(4, 3, 3, 3, **c), x(4, **c), padding=1)
        convolution(
            "norm-" + name,
            f,
            images(2, 3, 5, 4, **c),
            x(5, 3, 3, 3, **c),
            None,
            moments(5, d),
            stride=2,
            padding=1,
            eps=1e-3,
        )
        convolution(
            "line-sum-" + name,
            f,
            x(2, 4, 9, **c),
            x(6, 2, 3, **c),
            r=x(2, 6, 5, **c),
            groups=2,
            dilation=2,
        )
        convolution(
            "volume-" + name,
            f,
            x(1, 2, 3, 4, 3, **c),
            x(3, 2, 1, 1, 1, **c),
            None,
            moments(3, d, False),
        )

# ---- sums of rows of an embedding ----
for d in FLOATS:
    for mode in ("sum", "mean"):
        Case(
            "embedding_sum/%s-%s" % (mode, NAMES[d]),
            "embedding_sum",
            lambda w, at, mode=mode: F.embedding_bag(at, w, mode=mode),
            [x(7, 5, dtype=d), places(3, 4, high=7)],
            mean=mode == "mean",
        )
print("end")
