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


def standardize(name, a, dims, w=None, b=None, r=None, eps=1e-5):
    def function(a, w=None, b=None, r=None):
        mean, var = a.mean(dims, keepdim=True), a.var(dims, unbiased=False, keepdim=True)
        y = (a - mean) * torch.rsqrt(var + eps)
        y = y if w is None else y * w
        y = y if b is None else y + b
        return F.relu(y if r is None else y + r), mean, var

    Case("standardize_relu/" + name, "standardize_relu", function, [a, w, b, r], dims=dims, eps=eps)


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


def batch(name, a, r, training, d, running=True, affine=True):
    def function(a, m, v, w, b, r=None):
        y = F.batch_norm(a, m, v, w, b, training, 0.0 if training else 0.1)
        return F.relu(y if r is None else y + r)

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

# ---- the derivatives ----
for d in (F32, F64):

    def derivative(name, a, dims, shape, w=None, residual=True):
        def function(gy, y, a, mean, var, w=None):
            g = torch.where(y <= 0, torch.zeros_like(gy), gy)
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
            **more
        )

    derivative("last", x(4, 6, dtype=d)[1], [1], (6,), x(6, dtype=d))
    derivative("channels", x(4, 3, 5, dtype=d)[1], [0, 2], (3, 1), x(3, 1, dtype=d))
    derivative(
        "channels-alone", x(4, 3, 5, dtype=d)[1], [0, 2], (3, 1), x(3, 1, dtype=d), residual=False
    )
    derivative("plain", x(4, 3, 5, dtype=d)[1], [1, 2], (), residual=False)
    derivative("side", images(3, 4, 2, 3, dtype=d)[1], [0, 2, 3], (4, 1, 1), x(4, 1, 1, dtype=d))
print("end")
