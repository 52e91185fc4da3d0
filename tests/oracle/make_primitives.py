#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# What no function of PyTorch has a name for, and what the other scripts have few of:
#   PYTHON-WITH-TORCH make_primitives.py > primitives.txt
from cases import *

SHAPES = [
    ("plain", (2, 3), {}),
    ("transposed", (3, 4), dict(order=(1, 0))),
    ("expanded", (1, 3), dict(expand=(4, 3))),
    ("narrowed", (3, 5), dict(narrow=(1, 1, 3))),
    ("empty", (0, 3), {}),
    ("scalar", (), {}),
]


def each(op, call, grad=True, floats=FLOATS, scalar=True, **options):
    for d in floats:
        for name, shape, more in SHAPES:
            if scalar or shape:
                Case(
                    "%s/%s-%s" % (op, name, NAMES[d]),
                    op,
                    call,
                    [x(*shape, dtype=d, grad=grad, **more)],
                    **options
                )


for value in (2.5, -1.0):
    each("add_scalar", lambda t: t + value, value=value)
    each("mul_scalar", lambda t: t * value, value=value)
each("angle", torch.angle, floats=(F32, F64))
each("conj", torch.conj)
each("real", torch.real)
for op in ("isnan", "isinf", "isfinite"):
    call = getattr(torch, op)
    each(op, call, grad=False)
    for d in FLOATS:
        Case(
            "%s/edges-%s" % (op, NAMES[d]),
            op,
            call,
            [n(data=[NAN, INF, -INF, 0.0, -0.0, 1.0], dtype=d)],
        )
each("nonzero", torch.nonzero, grad=False)
each("erfinv", lambda t: torch.erfinv(t), floats=())
for op, call in (("imag", torch.imag), ("view_as_real", torch.view_as_real)):
    each(op, call, floats=(C64, C128))


def relu_grad(gy, y):
    return gy * (y > 0).to(gy.dtype)


def log_softmax_grad(dim):
    return lambda gy, y: gy - y.exp() * gy.sum(dim, keepdim=True)


for d in (F32, F64):
    for name, shape, more in SHAPES:
        Case(
            "relu_grad/%s-%s" % (name, NAMES[d]),
            "relu_grad",
            relu_grad,
            [x(*shape, dtype=d, **more), n(*shape, dtype=d, **more)],
        )
        if shape:
            Case(
                "log_softmax_grad/%s-%s" % (name, NAMES[d]),
                "log_softmax_grad",
                log_softmax_grad(-1),
                [x(*shape, dtype=d, **more), x(*shape, dtype=d, **more)],
                dim=-1,
            )
        Case(
            "where/first-%s-%s" % (name, NAMES[d]),
            "where",
            torch.where,
            [n(*shape, dtype=BOOL, **more), x(*shape, dtype=d, **more), x(*shape, dtype=d, **more)],
        )
    for shape, dim, start, piece in (
        ((4, 3), 0, 1, (2, 3)),
        ((4, 3), 1, 0, (4, 2)),
        ((2, 3, 4), -1, 2, (2, 3, 2)),
        ((5,), 0, 4, (1,)),
        ((3, 2), 0, 1, (0, 2)),
        ((3,), 0, 0, (3,)),
    ):

        def spread(gy):
            return torch.narrow_copy(
                torch.zeros(shape, dtype=gy.dtype), 0, 0, shape[0]
            ).slice_scatter(gy, dim, start, start + piece[dim])

        Case(
            "narrow_grad/%s-%d-%s" % (row(shape), start, NAMES[d]),
            "narrow_grad",
            spread,
            [x(*piece, dtype=d)],
            shape=shape,
            dim=dim,
            start=start,
        )

    for name, rows, classes, reduction in (
        ("none", 3, 4, "none"),
        ("sum", 3, 4, "sum"),
        ("mean", 3, 4, "mean"),
        ("one", 1, 2, "mean"),
        ("single-class", 2, 1, "sum"),
        ("many", 9, 5, "none"),
    ):

        def back(gy, target, total):
            gx = torch.zeros(rows, classes, dtype=gy.dtype)
            share = (gy / total if reduction == "mean" else gy).expand(rows)
            return gx.scatter(1, target[:, None], -share[:, None])

        Case(
            "nll_loss_grad/%s-%s" % (name, NAMES[d]),
            "nll_loss_grad",
            back,
            [
                x(*((rows,) if reduction == "none" else ()), dtype=d),
                n(rows, dtype=I64, low=0, high=classes),
                n(data=float(rows), dtype=d),
            ],
            classes=classes,
            reduction=reduction,
        )
    Case(
        "outer/transposed-" + NAMES[d],
        "outer",
        torch.outer,
        [x(6, dtype=d, narrow=(0, 1, 3)), x(1, dtype=d, expand=(2,))],
    )
    Case(
        "mv/narrowed-" + NAMES[d],
        "mv",
        torch.mv,
        [x(3, 5, dtype=d, narrow=(1, 1, 3)), x(1, dtype=d, expand=(3,))],
    )

# ---- derivatives of activations ----
# Autograd's derivative of the activation, or the formula if the activation has corners.


def derived(f):
    def call(gy, a):
        a = a if a.requires_grad else a.detach().requires_grad_()
        return torch.autograd.grad(f(a), a, gy, create_graph=True)[0]

    return call


def gradient(op, function, smooth=True, kinks=(), **options):
    """In float64, rounded to the inputs' dtype."""

    def call(gy, a):
        return function(gy.double(), a.double()).to(gy.dtype)

    b = x if smooth else n
    for d in (F32, F64, F16, BF16):
        Case("%s/%s" % (op, NAMES[d]), op, call, [x(2, 3, dtype=d), b(2, 3, dtype=d)], **options)
    Case(op + "/scalar", op, call, [x(), b()], **options)
    Case(op + "/empty", op, call, [x(2, 0), b(2, 0)], **options)
    Case(op + "/transposed", op, call, [x(3, 4, order=(1, 0)), b(4, 3)], **options)
    Case(op + "/expanded", op, call, [x(1, 3, expand=(4, 3)), b(4, 3)], **options)
    Case(op + "/larger", op, call, [x(5, 27), b(5, 27)], **options)
    if kinks:
        Case(
            op + "/kinks",
            op,
            call,
            [n(len(kinks), dtype=F64), n(data=list(kinks), dtype=F64)],
            **options
        )


def zero_unless(condition):
    return lambda gy, a: torch.where(condition(a), gy, torch.zeros_like(gy))


softplus = lambda a: (1 + a.exp()).log()
gradient("sigmoid_grad", lambda gy, y: gy * y * (1 - y))
gradient("tanh_grad", lambda gy, y: gy * (1 - y * y))
gradient(
    "hardtanh_grad",
    zero_unless(lambda a: (a > -1) & (a < 2)),
    False,
    (-1.0, 2.0, 0.0),
    min_val=-1.0,
    max_val=2.0,
)
gradient(
    "leaky_relu_grad",
    lambda gy, a: torch.where(a > 0, gy, 0.25 * gy),
    False,
    (0.0, 1.0, -1.0),
    negative_slope=0.25,
)
gradient("threshold_grad", zero_unless(lambda a: a > 0.5), False, (0.5, 1.0, 0.0), threshold=0.5)
gradient(
    "hardsigmoid_grad",
    lambda gy, a: torch.where((a > -3) & (a < 3), gy / 6, 0 * gy),
    False,
    (-3.0, 3.0, 0.0),
)
gradient(
    "hardswish_grad",
    lambda gy, a: torch.where(a >= 3, gy, torch.where(a > -3, gy * (a / 3 + 0.5), 0 * gy)),
    True,
    (4.0, -4.0, 0.0),
)
gradient(
    "hardshrink_grad", zero_unless(lambda a: a.abs() > 0.5), False, (0.5, -0.5, 1.0), lambd=0.5
)
gradient(
    "elu_grad",
    lambda gy, a: gy
    * torch.where(a > 0, 1.5 * torch.ones_like(a), 2.0 * 0.75 * (0.75 * a.clamp(max=0)).exp()),
    True,
    (0.0, 30.0, -30.0),
    positive=1.5,
    negative=2.0,
    inner=0.75,
)
gradient(
    "softplus_grad",
    derived(lambda a: torch.nn.functional.softplus(a, 2.0, 20.0)),
    True,
    (30.0, -30.0),
    beta=2.0,
    threshold=20.0,
)
gradient("silu_grad", derived(lambda a: a * a.sigmoid()), True, (30.0, -30.0, 0.0))
gradient("mish_grad", derived(lambda a: a * softplus(a).tanh()), True, (30.0, -30.0, 0.0))
for form in ("none", "tanh"):
    gradient(
        "gelu_grad",
        derived(lambda a: torch.nn.functional.gelu(a, approximate=form)),
        True,
        (30.0, -30.0, 0.0),
        approximate=form,
    )
# the gradient of the product of one number is 1, even for 0 and infinity
for value in (INF, 0.0, 2.0):
    Case("prod/one-%g" % value, "prod", torch.prod, [x(data=value, dtype=F64)])
for d in (F32, F64):
    for name, shape, more in SHAPES:
        if shape:
            Case(
                "softmax_grad/%s-%s" % (name, NAMES[d]),
                "softmax_grad",
                lambda gy, y: y * (gy - (gy * y).sum(-1, keepdim=True)),
                [x(*shape, dtype=d, **more), x(*shape, dtype=d, **more)],
                dim=-1,
            )
gradient(
    "elu_result_grad",
    lambda gy, y: gy * torch.where(y > 0, 1.5 * torch.ones_like(y), 0.75 * (y + 2.0)),
    True,
    (0.0, 30.0, -2.0),
    positive=1.5,
    negative=2.0,
    inner=0.75,
)


# ---- derivatives of logit, sinc, glu and cumprod ----
def sinc_slope(gy, a):
    """PyTorch's own has the second derivative NaN at 0."""
    near = a.abs() < 1e-5
    b = torch.where(near, 1, a)
    far = ((math.pi * b).cos() - torch.sinc(b)) / b
    return gy * torch.where(near, a * (-math.pi * math.pi / 3), far)


gradient(
    "sinc_grad",
    sinc_slope,
    True,
    (0.0, -0.0, 1e-9, 0.125, 0.25, -0.25, 0.5, 1.0, -2.5, 30.0, 1e6, INF, NAN),
)
Case("sinc_grad/zero", "sinc_grad", sinc_slope, [x(4), x(data=[0.0, -0.0, 0.125, -0.25])])


def inside(*shape, grad=True, **more):
    """Numbers between 0 and 1."""
    data = ((torch.rand(shape, dtype=F64) * 14).round() / 16 + 1 / 16).tolist()
    return x(data=data, grad=grad, **more)


for eps in (None, 0.25, 0.0, -1.0, 0.75):
    given = {} if eps is None else dict(eps=eps)
    name = "logit_grad" if eps is None else "logit_grad/%g" % eps
    smooth = eps is None or eps <= 0
    slope = derived(lambda a: torch.logit(a, eps))
    for d in (F32, F64, F16, BF16):
        tensors = [x(2, 3, dtype=d), inside(2, 3, dtype=d, grad=smooth)]
        Case("%s/%s" % (name, NAMES[d]), "logit_grad", slope, tensors, **given)
    tensors = [x(4, 3), inside(3, 4, order=(1, 0), grad=smooth)]
    Case(name + "/transposed", "logit_grad", slope, tensors, **given)
    Case(name + "/scalar", "logit_grad", slope, [x(), inside(grad=smooth)], **given)
    Case(name + "/empty", "logit_grad", slope, [x(2, 0), inside(2, 0, grad=smooth)], **given)
    tensors = [x(5, 27), inside(5, 27, grad=smooth)]
    Case(name + "/larger", "logit_grad", slope, tensors, **given)
    # Left out is where PyTorch has two answers: NaN with limits (0 in its vectors, NaN in what
    # remains of a tensor), and a negative eps outside of 0 to 1 (NaN, a number with create_graph).
    edges = [0.0, 1.0, 0.25, 0.75, 0.125, 0.875]
    edges += [-0.5, 1.5, INF, -INF] if eps is None or eps >= 0 else []
    edges += [NAN, NAN] if eps is None else []
    for d in (F32, F64, F16, BF16):
        tensors = [n(data=[1.5, -2.0] * (len(edges) // 2), dtype=d), n(data=edges, dtype=d)]
        Case("%s/edges-%s" % (name, NAMES[d]), "logit_grad", slope, tensors, **given)


def glu_slope(dim):
    return derived(lambda a: torch.nn.functional.glu(a, dim))


for dim, name, gy, a in (
    [(-1, NAMES[d], x(2, 3, dtype=d), x(2, 6, dtype=d)) for d in (F32, F64, F16, BF16)]
    + [(0, "first-" + NAMES[d], x(2, 3, dtype=d), x(4, 3, dtype=d)) for d in (F32, F64, BF16)]
    + [
        (1, "transposed", x(4, 3), x(6, 4, order=(1, 0))),
        (1, "expanded", x(1, 3, expand=(4, 3)), x(1, 6, expand=(4, 6))),
        (1, "narrowed", x(3, 4, narrow=(1, 1, 2)), x(3, 6, narrow=(1, 1, 4))),
        (1, "middle", x(2, 2, 3), x(2, 4, 3)),
        (1, "images", like_images(2, 2, 3, 2), like_images(2, 4, 3, 2)),
        (-1, "empty", x(0, 3), x(0, 6)),
        (-1, "none", x(3, 0), x(3, 0)),
        (-1, "larger", x(5, 27), x(5, 54)),
        (0, "ends", n(data=[1.0] * 4), n(data=[INF, 2.0, NAN, 1.0, 2.0, 90.0, 1.0, -90.0])),
    ]
):
    Case("glu_grad/" + name, "glu_grad", glu_slope(dim), [gy, a], dim=dim)


def product_slope(dim):
    """By the definition, without a division: the sums of the products without one factor."""

    def call(gy, a):
        if a.dim() == 0:
            return gy * 1
        gy, a = gy.movedim(dim, -1), a.movedim(dim, -1)
        all = [torch.zeros_like(gy[..., :0])]
        for k in range(a.shape[-1]):
            one = torch.ones_like(a[..., :1])
            rest = torch.cat([a[..., :k], one, a[..., k + 1 :]], -1).cumprod(-1)
            all.append((rest[..., k:] * gy[..., k:]).sum(-1, keepdim=True))
        return torch.cat(all, -1).movedim(-1, dim)

    return call


for dim, name, gy, a in (
    [(1, NAMES[d], x(2, 4, dtype=d), x(2, 4, dtype=d)) for d in FLOATS + (C64, C128)]
    + [(1, "lines-" + NAMES[d], x(9, 5, dtype=d), x(9, 5, dtype=d)) for d in FLOATS]
    + [(0, "first-" + NAMES[d], x(5, 9, dtype=d), x(5, 9, dtype=d)) for d in FLOATS]
    + [
        (1, "transposed", x64(9, 4), x64(4, 9, order=(1, 0))),
        (1, "transposed-both", x64(4, 9, order=(1, 0)), x64(4, 9, order=(1, 0))),
        (1, "expanded", x64(9, 1, expand=(9, 3)), x64(1, 3, expand=(9, 3))),
        (1, "narrowed", x64(9, 5, narrow=(1, 1, 3)), x64(9, 5, narrow=(1, 2, 3))),
        (-2, "middle", x64(2, 3, 4), x64(2, 3, 4)),
        (0, "scalar", x(), n()),
        (0, "one", x(1), x(1)),
        (1, "empty", x(2, 0), x(2, 0)),
        (1, "no-lines", x(0, 2), x(0, 2)),
        (0, "larger", x64(40), x64(40)),
    ]
    + [
        (
            1,
            "zeros-" + NAMES[d],
            x(9, 4, dtype=d),
            x(
                data=[[2.0, 0.0, 3.0, 0.5], [0.0, 2.0, 3.0, 1.0], [1.0, 2.0, 0.5, 0.0]]
                + [[0.0, 0.0, 2.0, 1.0], [2.0, -0.0, 0.0, 3.0], [0.0, 0.0, 0.0, 0.0]]
                + [[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 1.0, 0.0], [1.5, 2.0, 0.0, 3.0]],
                dtype=d,
            ),
        )
        for d in FLOATS
    ]
):
    Case("cumprod_grad/" + name, "cumprod_grad", product_slope(dim), [gy, a], dim=dim)
print("end")
