#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Arithmetic, comparison and activations:  PYTHON-WITH-TORCH make_elementwise.py > elementwise.txt
from cases import *

# ---- arithmetic ----
for mode in ("trunc", "floor"):
    call = lambda a, b: torch.div(a, b, rounding_mode=mode)
    for name, a, b in (
        ("f32", within(-8, 8, 3, 5), within(-4, 0, 3, 5)),
        ("f64", x64(2, 3), within(0, 4, 3, dtype=F64)),
        ("f16", x(2, 3, dtype=F16), within(0, 4, 3, dtype=F16)),
        ("ints", n(3, 4, dtype=I64, low=-9, high=9), n(3, 4, dtype=I64, low=1, high=4)),
        ("negative-ints", n(3, 4, dtype=I32, low=-9, high=9), n(4, dtype=I32, low=-3, high=0)),
        ("bytes", n(4, dtype=torch.uint8, low=0, high=200), n(4, dtype=torch.uint8, low=1, high=9)),
        ("int-float", n(2, 3, dtype=I64), within(0, 4, 2, 3)),
        ("empty", x(0, 2), x(1, 2, positive=True)),
    ):
        case("div", "%s-%s" % (mode, name), call, [a, b], rounding_mode=mode)
    edges_two("div", call, rounding_mode=mode)
    case(
        "div",
        "%s-exact" % mode,
        call,
        [n(data=[6.0, 0.6, -0.7, 1.0, 0.1]), n(data=[3.0, 0.2, 0.1, 0.1, 0.1])],
        rounding_mode=mode,
    )
case(
    "div", "bools", torch.div, [n(data=[True, False], dtype=BOOL), n(data=[True, True], dtype=BOOL)]
)
two("minimum", torch.minimum, nonzero=False)
edges_two("minimum", torch.minimum)
case("minimum", "ties", torch.minimum, [x(data=[1.0, 2.0, 3.0]), x(data=[1.0, 3.0, 2.0])])
two("remainder", torch.remainder, low=0)
edges_two("remainder", torch.remainder)
case(
    "remainder",
    "negative",
    torch.remainder,
    [x(data=[5.5, -5.5, 6.0, -6.0]), x(data=[-2.0, -2.0, -3.0, -3.0])],
)
two("fmod", torch.fmod, low=0)
edges_two("fmod", torch.fmod)
case(
    "fmod",
    "negative",
    torch.fmod,
    [x(data=[5.5, -5.5, 6.0, -6.0]), x(data=[-2.0, -2.0, -3.0, -3.0])],
)
two("pow", torch.pow, low=-2, high=3, first=(0, 3))
edges_two("pow", torch.pow)
case(
    "pow",
    "zeros",
    torch.pow,
    [x64(data=[0.0, 0.0, 2.0, 0.0, -2.0]), x64(data=[0.0, 2.0, 0.0, 1.0, 3.0])],
)
two("atan2", torch.atan2, ints=False)
edges_two("atan2", torch.atan2)
case("atan2", "ints", torch.atan2, [n(2, 3, dtype=I64), n(3, dtype=I32)])
for e in (0.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.0, -2.0, 1.7, 4.0):
    call = lambda a: torch.pow(a, int(e) if e == int(e) else e)
    for d in (F32, F64):
        case("pow_scalar", "%g-%s" % (e, NAMES[d]), call, [within(0, 3, 2, 3, dtype=d)], exponent=e)
        case(
            "pow_scalar", "%g-edges-%s" % (e, NAMES[d]), call, [n(data=EDGES, dtype=d)], exponent=e
        )
    if e >= 0:
        case("pow_scalar", "%g-ints" % e, call, [n(5, dtype=I64)], exponent=int(e))
    case("pow_scalar", "%g-f16" % e, call, [within(0, 3, 4, dtype=F16)], exponent=e)
    case("pow_scalar", "%g-negative" % e, call, [n(5)], exponent=e)
case("pow_scalar", "zero", lambda a: a**2, [x(data=[0.0, -1.0])], exponent=2.0)
case("pow_scalar", "bf16", lambda a: a**2, [x(2, 2, dtype=BF16, order=(1, 0))], exponent=2.0)

function("abs", torch.abs)
function("sign", torch.sign)
function("floor", torch.floor)
function("ceil", torch.ceil)
function("trunc", torch.trunc)
function("round", torch.round)
case("round", "halves", torch.round, [x(data=[0.5, 1.5, 2.5, -0.5, -1.5, 1e30])])
function("frac", torch.frac, ints=False)
function("square", torch.square)
function("reciprocal", torch.reciprocal, low=0, bools=True)
function("rsqrt", torch.rsqrt, low=0, bools=True)
function("expm1", torch.expm1, bools=True)
case("expm1", "small", torch.expm1, [x(data=[1e-6, -1e-6, 1e-3])])
function("log1p", torch.log1p, low=-0.875, bools=True)
case("log1p", "small", torch.log1p, [x(data=[1e-6, -1e-6, 1e-3])])
function("log2", torch.log2, low=0, bools=True)
function("log10", torch.log10, low=0, bools=True)
function("sin", torch.sin, bools=True)
function("cos", torch.cos, bools=True)
function("tan", torch.tan, low=-1.25, high=1.25, ints=False, edges=False)
case("tan", "edges", torch.tan, [n(data=[0.0, -0.0, INF, -INF, NAN, 1e-30, 1.0])])
case("tan", "ints", torch.tan, [n(5, dtype=I64)])
function("asin", torch.asin, low=-0.9375, high=0.9375, ints=False)
case("asin", "ints", torch.asin, [n(5, dtype=I64, low=-1, high=2)])
function("acos", torch.acos, low=-0.9375, high=0.9375, ints=False)
case("acos", "ints", torch.acos, [n(5, dtype=I64, low=-1, high=2)])
function("atan", torch.atan, bools=True)
function("sinh", torch.sinh, bools=True)
function("cosh", torch.cosh, bools=True)
function("tanh", torch.tanh, bools=True)
function("erf", torch.erf, bools=True)
function("erfc", torch.erfc, bools=True)
function("erfinv", torch.erfinv, low=-0.9375, high=0.9375, ints=False)
case("erfinv", "tails", torch.erfinv, [x64(data=[0.7, 0.71, -0.999, 0.9999])])
case("erfinv", "ints", torch.erfinv, [n(5, dtype=I64, low=-1, high=2)])


def bounds(low, high):
    options = {}
    if low is not None:
        options["min"] = low
    if high is not None:
        options["max"] = high
    return options


for low, high in ((-1.0, 1.5), (None, 0.5), (0.0, None), (2.0, -1.0)):
    options = bounds(low, high)
    call = lambda a: torch.clamp(a, low, high)
    for d in (F32, F64, F16, BF16):
        case("clamp", "%s-%s-%s" % (low, high, NAMES[d]), call, [x(2, 4, dtype=d)], **options)
    case("clamp", "%s-%s-edges" % (low, high), call, [x(data=EDGES + [1.5, -1.0, 2.0])], **options)
    case("clamp", "%s-%s-transposed" % (low, high), call, [x(3, 2, order=(1, 0))], **options)
case("clamp", "scalar", lambda a: a.clamp(-1, 1), [x()], min=-1, max=1)
case("clamp", "empty", lambda a: a.clamp(-1, 1), [x(0, 2)], min=-1, max=1)
case("clamp", "ints", lambda a: a.clamp(-1, 2), [n(7, dtype=I64)], min=-1, max=2)
case("clamp", "ints-below", lambda a: a.clamp(max=1), [n(7, dtype=torch.int8)], max=1)
case("clamp", "ints-to-float", lambda a: a.clamp(-1.5, 2.5), [n(7, dtype=I64)], min=-1.5, max=2.5)
ties = [1.0, 2.0, 3.0, 0.0, -1.0, NAN]
for name, a, low, high in (
    ("both", x(3, 4), x(4), x(3, 1)),
    ("low", x64(3, 4), x64(3, 4), None),
    ("high", x(3, 4), None, x()),
    ("crossed", x(5), within(1, 3, 5), within(-3, -1, 5)),
    (
        "ties",
        x(data=ties),
        x(data=[1.0, 1.0, 4.0, 0.0, -2.0, 1.0]),
        x(data=[2.0, 2.0, 4.0, 0.0, -1.0, 2.0]),
    ),
    ("ints", n(5, dtype=I64), n(5, dtype=I64, low=-2, high=0), n(1, dtype=I64, low=1)),
    ("f16", x(4, dtype=F16), x(dtype=F16), x(4, dtype=F16)),
    ("empty", x(0, 2), x(2), None),
    ("mixed", x(4), x64(4), None),
):
    case("clamp_tensor", name, lambda a, low, high: torch.clamp(a, low, high), [a, low, high])
for name, make in (
    ("f32", dict()),
    ("f64", dict(dtype=F64)),
    ("f16", dict(dtype=F16)),
    ("bf16", dict(dtype=BF16)),
):
    case("lerp", name, torch.lerp, [x(2, 3, **make), x(2, 3, **make), within(0, 1, 2, 3, **make)])
    case(
        "lerp_scalar",
        name,
        lambda a, b: torch.lerp(a, b, 0.25),
        [x(2, 3, **make), x(2, 3, **make)],
        weight=0.25,
    )
    for v in (1.0, -2.5):
        case(
            "addcmul",
            "%s-%g" % (name, v),
            lambda a, b, c: torch.addcmul(a, b, c, value=v),
            [x(2, 3, **make), x(3, **make), x(2, 1, **make)],
            value=v,
        )
        case(
            "addcdiv",
            "%s-%g" % (name, v),
            lambda a, b, c: torch.addcdiv(a, b, c, value=v),
            [x(2, 3, **make), x(3, **make), within(0.5, 4, 2, 1, **make)],
            value=v,
        )
for op, call, options in (
    ("lerp", torch.lerp, {}),
    ("addcmul", torch.addcmul, {}),
    ("addcdiv", torch.addcdiv, {}),
):
    third = lambda *s, **more: within(0.5, 2, *s, **more)
    case(op, "broadcast", call, [x(2, 1, 3), x(4, 1), third(3)], **options)
    case(op, "scalar", call, [x(), x(), third()], **options)
    case(op, "empty", call, [x(0, 3), x(3), third(1, 3)], **options)
    case(
        op,
        "transposed",
        call,
        [x(3, 2, order=(1, 0)), x(2, 3), third(3, 2, order=(1, 0))],
        **options
    )
for name, a in (("broadcast", x(2, 1)), ("empty", x(0, 1))):
    case("lerp_scalar", name, lambda a, b: torch.lerp(a, b, 0.75), [a, x(3)], weight=0.75)
case(
    "addcmul",
    "ints",
    lambda a, b, c: torch.addcmul(a, b, c, value=2),
    [n(4, dtype=I64), n(4, dtype=I64), n(4, dtype=I64)],
    value=2,
)

# ---- comparison, logic, choice ----
for op in ("eq", "ne", "lt", "le", "gt", "ge"):
    call = getattr(torch, op)
    two(op, call, grad=False, nonzero=False)
    edges_two(op, call)
    case(
        op,
        "bools",
        call,
        [
            n(data=[True, False, True, False], dtype=BOOL),
            n(data=[True, True, False, False], dtype=BOOL),
        ],
    )
    case(op, "bool-int", call, [n(4, dtype=BOOL), n(4, dtype=I64, low=-1, high=2)])
    case(op, "int-scalar-float", call, [n(5, dtype=I64), n(data=0.5)])
    case(
        op,
        "large-ints",
        call,
        [
            n(data=[2**53 + 1, -(2**62) - 1], dtype=I64),
            n(data=[2**53 + 1, -(2**62) - 1], dtype=I64),
        ],
    )
for op in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    call = getattr(torch, op)
    for d in (I64, I32, torch.int16, torch.int8):
        case(
            op,
            NAMES[d],
            call,
            [n(2, 4, dtype=d, low=-99, high=99), n(4, dtype=d, low=-99, high=99)],
        )
    case(
        op,
        "bytes",
        call,
        [n(3, dtype=torch.uint8, low=0, high=255), n(3, dtype=torch.uint8, low=0, high=255)],
    )
    case(
        op,
        "bools",
        call,
        [
            n(data=[True, False, True, False], dtype=BOOL),
            n(data=[True, True, False, False], dtype=BOOL),
        ],
    )
    case(op, "mixed", call, [n(3, 2, order=(1, 0), dtype=I32), n(1, dtype=I64)])
    case(op, "bool-int", call, [n(4, dtype=BOOL), n(4, dtype=I64)])
    case(op, "empty", call, [n(0, 2, dtype=I64), n(2, dtype=I64)])
    case(op, "scalars", call, [n(dtype=I64), n(dtype=I64)])
for d in (I64, I32, torch.int8, torch.uint8, BOOL):
    case("bitwise_not", NAMES[d], torch.bitwise_not, [n(2, 3, dtype=d, low=0, high=100)])
case("bitwise_not", "transposed", torch.bitwise_not, [n(2, 3, dtype=BOOL, order=(1, 0))])
case("bitwise_not", "empty", torch.bitwise_not, [n(0, dtype=I64)])
for op in ("logical_and", "logical_or", "logical_xor"):
    call = getattr(torch, op)
    edges_two(op, call)
    case(
        op,
        "bools",
        call,
        [
            n(data=[True, False, True, False], dtype=BOOL),
            n(data=[True, True, False, False], dtype=BOOL),
        ],
    )
    case(op, "ints", call, [n(2, 4, dtype=I64, low=-1, high=2), n(4, dtype=I64, low=-1, high=2)])
    case(op, "mixed", call, [n(3, 2, order=(1, 0), dtype=I32, low=-1, high=2), n(2, 3)])
    case(op, "f16", call, [n(4, dtype=F16), n(dtype=BOOL)])
    case(op, "empty", call, [n(0, 2), n(2)])
    case(op, "recorded", call, [x(3), x(3)])
for d in (F32, F64, F16, I64, torch.int8, BOOL):
    case("logical_not", NAMES[d], torch.logical_not, [n(data=[0, 1, 0, 2], dtype=d)])
case("logical_not", "edges", torch.logical_not, [n(data=EDGES)])
case("logical_not", "empty", torch.logical_not, [n(0, 2)])
for op in ("isnan", "isinf", "isfinite"):
    call = getattr(torch, op)
    for d in (F32, F64, F16, BF16):
        case(op, NAMES[d], call, [n(data=[1.0, NAN, INF, -INF, 0.0, -2.0], dtype=d)])
    case(op, "ints", call, [n(3, dtype=I64)])
    case(op, "bools", call, [n(3, dtype=BOOL)])
    case(op, "transposed", call, [n(data=[[1.0, NAN], [INF, 2.0], [0.0, 1.0]], order=(1, 0))])
    case(op, "empty", call, [n(0, 2)])
    case(op, "scalar", call, [n(data=NAN)])
mask = lambda *s, **more: n(*s, dtype=BOOL, **more)
for d in (F32, F64, F16, BF16, I64, torch.int8, BOOL):
    case("where", NAMES[d], torch.where, [mask(2, 3), x(2, 3, dtype=d), x(2, 3, dtype=d)])
for name, c, a, b in (
    ("broadcast", mask(2, 1, 3), x(4, 1), x(3)),
    ("scalars", mask(2, 3), x(), x()),
    ("scalar", mask(), x(2, 3), x(3)),
    ("second-scalar", mask(2, 5), x(2, 5), x()),
    ("first-scalar", mask(2, 5), x(), x(2, 5)),
    ("empty", mask(0, 3), x(3), x(1, 3)),
    ("transposed", mask(3, 2, order=(1, 0)), x(2, 3), x(3, 2, order=(1, 0))),
    ("mixed", mask(4), x(4), x64(4)),
    ("int-float", mask(4), n(4, dtype=I64), x(4)),
    ("int-scalar", mask(4), n(4, dtype=I64), n(data=0.5)),
    ("larger", mask(3, 21), x(3, 21), x(3, 21)),
    ("nan", mask(data=[True, False, True]), x(data=[1.0, NAN, INF]), x(data=[NAN, 2.0, NAN])),
):
    case("where", name, torch.where, [c, a, b])
for d in (F32, F64, F16, BF16, I64, I32, BOOL):
    case(
        "masked_fill",
        NAMES[d],
        lambda a, m: a.masked_fill(m, 1),
        [x(2, 3, dtype=d), mask(2, 3)],
        value=1,
    )
case("masked_fill", "inf", lambda a, m: a.masked_fill(m, -INF), [x(2, 3), mask(3)], value="-inf")
case("masked_fill", "broadcast", lambda a, m: a.masked_fill(m, 2.5), [x(3), mask(2, 1)], value=2.5)
case("masked_fill", "empty", lambda a, m: a.masked_fill(m, 2.5), [x(0, 3), mask(3)], value=2.5)
case("masked_fill", "scalar", lambda a, m: a.masked_fill(m, 2.5), [x(), mask()], value=2.5)
case(
    "masked_fill",
    "transposed",
    lambda a, m: a.masked_fill(m, 2.5),
    [x(3, 2, order=(1, 0)), mask(2, 3)],
    value=2.5,
)
for d in (F32, F64, F16, BF16):
    case("nan_to_num", NAMES[d], torch.nan_to_num, [x(data=[1.0, NAN, INF, -INF, -2.0], dtype=d)])
    case(
        "nan_to_num",
        "given-" + NAMES[d],
        lambda a: torch.nan_to_num(a, 3.0, 4.0, -5.0),
        [x(data=[1.0, NAN, INF, -INF, -2.0], dtype=d)],
        nan=3.0,
        posinf=4.0,
        neginf=-5.0,
    )
case("nan_to_num", "ints", torch.nan_to_num, [n(4, dtype=I64)])
case("nan_to_num", "empty", torch.nan_to_num, [x(0, 3)])
case("nan_to_num", "transposed", torch.nan_to_num, [x(data=[[1.0, NAN], [INF, 0.5]], order=(1, 0))])


# ---- activations ----
def activation(op, call, edges=True, kinks=(), **options):
    function(op, call, ints=False, edges=edges, **options)
    if kinks:
        case(op, "kinks", call, [x64(data=list(kinks))], **options)


activation("relu6", F.relu6, kinks=(0.0, -0.0, 6.0, 5.9, NAN))
for slope in (0.01, 0.25, -0.5):
    activation(
        "leaky_relu",
        lambda a: F.leaky_relu(a, slope),
        kinks=(0.0, -0.0),
        negative_slope=slope,
        edges=slope > 0.1,
    )
for alpha in (1.0, 1.75):
    activation("elu", lambda a: F.elu(a, alpha), kinks=(0.0, -0.0, -800.0, 800.0), alpha=alpha)
    activation("celu", lambda a: F.celu(a, alpha), kinks=(0.0, -0.0, -800.0, 800.0), alpha=alpha)
activation("selu", F.selu, kinks=(0.0, -0.0, -800.0, 800.0))
for form in ("none", "tanh"):
    activation(
        "gelu",
        lambda a: F.gelu(a, approximate=form),
        edges=False,
        approximate=form,
        kinks=(0.0, 30.0, -30.0, 9.0, -9.0),
    )
activation("silu", F.silu, kinks=(0.0, 100.0, -100.0))
activation("mish", F.mish, kinks=(0.0, 100.0, -100.0), edges=False)
activation("hardtanh", F.hardtanh, kinks=(1.0, -1.0, 0.0, NAN))
activation(
    "hardtanh", lambda a: F.hardtanh(a, -0.5, 2.0), min_val=-0.5, max_val=2.0, kinks=(-0.5, 2.0)
)
activation("hardswish", F.hardswish, kinks=(0.0, 1.0, 2.9, -2.9, 3.1), edges=False)
# its float64 gradient is a float32 constant in PyTorch: only the values of float64 are taken
activation("hardsigmoid", F.hardsigmoid, wide=False)
case("hardsigmoid", "kinks", F.hardsigmoid, [x(data=[3.0, -3.0, 0.0, NAN])])
activation("logsigmoid", F.logsigmoid, kinks=(0.0, 100.0, -100.0, 800.0, -800.0))
activation("tanhshrink", F.tanhshrink, edges=False, kinks=(0.0, 30.0))
activation("softshrink", F.softshrink, kinks=(0.5, -0.5, 0.0))
activation("softshrink", lambda a: F.softshrink(a, 1.25), lambd=1.25, edges=False)
activation("hardshrink", F.hardshrink, kinks=(0.5, -0.5, 0.0))
activation("hardshrink", lambda a: F.hardshrink(a, 1.25), lambd=1.25, edges=False)
activation("softplus", F.softplus, kinks=(20.0, 20.5, 100.0, -100.0))
activation("softplus", lambda a: F.softplus(a, 2.5, 4.0), beta=2.5, threshold=4.0, kinks=(1.6, 1.7))
activation("softsign", F.softsign)
activation(
    "threshold", lambda a: F.threshold(a, 0.5, -7.0), threshold=0.5, value=-7.0, kinks=(0.5, NAN)
)
for name, a, w in (
    ("one", x(2, 3), x(1)),
    ("vector", x(5), x(1)),
    ("channels", x(2, 3), x(3)),
    ("images", x(2, 3, 2, 2), x(3)),
    ("f64", x64(2, 3, 2), x64(3)),
    ("f16", x(2, 3, dtype=F16), x(3, dtype=F16)),
    ("transposed", x(3, 2, order=(1, 0)), x(3)),
    ("zero", x(data=[0.0, -0.0, 1.0]), x(1)),
    ("scalar", x(), x(1)),
    ("empty", x(0, 3), x(3)),
):
    case("prelu", name, F.prelu, [a, w])
for name, a, d in (
    ("last", x(2, 4), -1),
    ("first", x(4, 3), 0),
    ("middle", x(2, 4, 3), 1),
    ("f64", x64(2, 6), 1),
    ("f16", x(2, 4, dtype=F16), -1),
    ("transposed", x(4, 3, order=(1, 0)), 1),
    ("empty", x(0, 4), 1),
    ("vector", x(6), 0),
):
    case("glu", name, lambda a: F.glu(a, d), [a], dim=d)
for name, a, d in (
    ("last", x(2, 4), -1),
    ("first", x(4, 3), 0),
    ("f64", x64(2, 6), 1),
    ("f16", x(2, 4, dtype=F16), -1),
    ("transposed", x(4, 3, order=(1, 0)), 1),
    ("empty", x(0, 4), 1),
    ("scalar", x(), 0),
):
    case("softmin", name, lambda a: F.softmin(a, d), [a], dim=d)


# ---- complex numbers ----
def turned(op, call, first=(C64, C128), **options):
    """An operator of one complex tensor."""
    for d in first:
        case(op, NAMES[d], call, [x(2, 3, dtype=d)], **options)
        case(op, "%s-transposed" % NAMES[d], call, [x(3, 2, dtype=d, order=(1, 0))], **options)
    case(op, "c64-scalar", call, [x(dtype=C64)], **options)
    case(op, "c64-empty", call, [x(0, 2, dtype=C64)], **options)
    case(op, "c64-narrowed", call, [x(4, 2, dtype=C64, narrow=(0, 1, 2))], **options)
    case(op, "c64-expanded", call, [x(1, 2, dtype=C64, expand=(3, 2))], **options)
    case(
        op,
        "c128-zero",
        call,
        [x(data=[0j, 1 + 0j, -1 + 0j, 1j, -2j], dtype=C128, grad=op not in ("log", "sqrt"))],
        **options
    )


for d in (F32, F64):
    case("complex", NAMES[d], torch.complex, [x(2, 3, dtype=d), x(2, 3, dtype=d)])
    case("complex", "broadcast-" + NAMES[d], torch.complex, [x(2, 1, dtype=d), x(3, dtype=d)])
case("complex", "empty", torch.complex, [x(0, 2), x(2)])
case("complex", "transposed", torch.complex, [x(3, 2, order=(1, 0)), x(2, 3)])
turned("real", torch.real)
turned("imag", torch.imag)
turned("view_as_real", torch.view_as_real)
turned("conj", lambda a: torch.conj(a).resolve_conj())
turned("angle", torch.angle)
turned("abs", torch.abs)
turned("neg", torch.neg)
turned("exp", torch.exp)
turned("log", torch.log)
turned("sqrt", torch.sqrt)
for name, make in (("f32", x(2, 3)), ("i64", n(2, 3, dtype=I64)), ("bf16", x(3, dtype=BF16))):
    case("real", name, torch.real, [make])
    case("conj", name, torch.conj, [make])
for d in (F32, F64, F16):
    case("angle", NAMES[d], torch.angle, [x(data=[1.0, -1.0, 2.5, -3.0, INF, -INF], dtype=d)])
case("angle", "edges", torch.angle, [n(data=[0.0, -0.0, NAN])])
case("angle", "ints", torch.angle, [n(5, dtype=I64)])
for op in ("add", "sub", "mul", "div"):
    call = getattr(torch, op)
    for name, a, b in (
        ("c64", x(2, 3, dtype=C64), x(2, 3, dtype=C64)),
        ("c128", x(2, 3, dtype=C128), x(3, dtype=C128)),
        ("f32-c64", x(2, 3), x(2, 3, dtype=C64)),
        ("c64-f32-scalar", x(2, 3, dtype=C64), within(1, 3)),
        ("c64-c128", x(2, dtype=C64), x(2, dtype=C128)),
        ("c64-transposed", x(3, 2, dtype=C64, order=(1, 0)), x(2, 3, dtype=C64)),
    ):
        case(op, name, call, [a, b])
for op in ("eq", "ne"):
    call = getattr(torch, op)
    for d in (C64, C128):
        case(
            op,
            NAMES[d],
            call,
            [n(data=[1 + 1j, 2 - 1j, 1j], dtype=d), n(data=[1 + 1j, 2 + 1j, 0j], dtype=d)],
        )
case("where", "c64", torch.where, [mask(2, 3), x(2, 3, dtype=C64), x(2, 3, dtype=C64)])
case(
    "masked_fill",
    "c64",
    lambda a, m: a.masked_fill(m, 2.5),
    [x(2, 3, dtype=C64), mask(3)],
    value=2.5,
)
case("mul_scalar", "c64", lambda a: a * 2.5, [x(2, 3, dtype=C64)], value=2.5)
case("add_scalar", "c64", lambda a: a + 2.5, [x(2, 3, dtype=C64)], value=2.5)
for d in (
    F32,
    F64,
    F16,
    BF16,
    C64,
    C128,
):  # of real numbers the gradient is zero, which PyTorch gives without memory
    take = x if d.is_complex else n
    case("sgn", NAMES[d], torch.sgn, [take(2, 3, dtype=d)])
    case("sgn", "turned-" + NAMES[d], torch.sgn, [take(3, 2, dtype=d, order=(1, 0))])
case("sgn", "zeros", torch.sgn, [n(3, data=[0.0, -2.0, 0.5])])
case("sgn", "empty", torch.sgn, [n(0, 3)])
# ---- last, so that the random numbers of the cases above stay the same ----
activation("relu_squared", lambda a: F.relu(a).square(), kinks=(0.0, -0.0))
for d in (F32, F64):
    case("view_as_complex", NAMES[d], torch.view_as_complex, [x(2, 3, 2, dtype=d)])
    case("view_as_complex", "row-" + NAMES[d], torch.view_as_complex, [x(2, dtype=d)])
case("view_as_complex", "transposed", torch.view_as_complex, [x(3, 2, 2, order=(1, 0, 2))])
case("view_as_complex", "narrowed", torch.view_as_complex, [x(4, 2, narrow=(0, 1, 2))])
case("view_as_complex", "expanded", torch.view_as_complex, [x(1, 2, expand=(3, 2))])
case("view_as_complex", "empty", torch.view_as_complex, [x(0, 2)])
print("end")
