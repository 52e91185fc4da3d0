#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Special functions, and more of arithmetic, unary and compare, such as hypot, gcd, asinh, isclose:
#   PYTHON-WITH-TORCH make_elementwise_special.py > elementwise_special.txt
from cases import *
from special_functions import Incomplete, polygamma, precise


def turned(op, call):
    """An operator of one complex tensor."""
    for d in (C64, C128):
        Case("%s/%s" % (op, NAMES[d]), op, call, [x(2, 3, dtype=d)])
        Case("%s/transposed-%s" % (op, NAMES[d]), op, call, [x(3, 2, dtype=d, order=(1, 0))])
        Case(
            "%s/axes-%s" % (op, NAMES[d]),
            op,
            call,
            [x(data=[2 + 1j, -2 + 1j, 2 - 1j, -2 - 1j, 0.5j, -0.25j, 3j], dtype=d)],
        )
    Case(op + "/empty-c64", op, call, [x(0, 2, dtype=C64)])
    Case(op + "/scalar-c128", op, call, [x(dtype=C128)])


# ---- inverse hyperbolic functions, powers of 2 ----
LARGE = [1e-8, -1e-4, 0.25, 1e4, -3e4, 1e9, -2e9, 1e18, 1e25, -3e38]
function("asinh", torch.asinh, bools=True)
for d in (F32, F64):
    Case("asinh/sizes-" + NAMES[d], "asinh", torch.asinh, [n(data=LARGE, dtype=d)])
Case("asinh/sizes-f16", "asinh", torch.asinh, [n(data=[1e-3, 250.0, -300.0, 65504.0], dtype=F16)])
turned("asinh", torch.asinh)
function("acosh", torch.acosh, low=1, high=8, bools=True)
for d in (F32, F64):
    Case(
        "acosh/sizes-" + NAMES[d],
        "acosh",
        torch.acosh,
        [n(data=[1.0, 1.0000001, 1.001, 1.5, 1e4, 1e9, 3e9, 1e25, 3e38, 0.5, -3.0], dtype=d)],
    )
turned("acosh", torch.acosh)
function("atanh", torch.atanh, low=-0.9375, high=0.9375, ints=False, bools=True)
Case("atanh/ints", "atanh", torch.atanh, [n(5, dtype=I64, low=-1, high=2)])
for d in (F32, F64):
    Case(
        "atanh/sizes-" + NAMES[d],
        "atanh",
        torch.atanh,
        [n(data=[1e-8, -1e-4, 0.999999, -0.99, 1.0, -1.0, 1.5, -7.0], dtype=d)],
    )
turned("atanh", torch.atanh)
function("exp2", torch.exp2, bools=True)
for d in (F32, F64):
    Case(
        "exp2/sizes-" + NAMES[d],
        "exp2",
        torch.exp2,
        [n(data=[-149.0, -126.5, -20.25, 9.75, 10.125], dtype=d)],
    )
turned("exp2", torch.exp2)

# ---- two operands ----
BOOLS = (
    n(data=[True, False, True, False], dtype=BOOL),
    n(data=[True, True, False, False], dtype=BOOL),
)
two("xlogy", torch.xlogy, low=0, ints=False)
edges_two("xlogy", torch.xlogy)
Case(
    "xlogy/zeros",
    "xlogy",
    torch.xlogy,
    [x(data=[0.0, 0.0, 0.0, 2.0]), x(data=[0.5, 1.0, 2.0, 3.0])],
)
Case(
    "xlogy/zero-of-zero", "xlogy", torch.xlogy, [x(data=[0.0, 0.0, 0.0]), n(data=[0.0, -1.0, NAN])]
)
Case("xlogy/ints", "xlogy", torch.xlogy, [n(2, 3, dtype=I64), n(3, dtype=I32, low=1)])
Case("xlogy/bools", "xlogy", torch.xlogy, list(BOOLS))
for op in ("logaddexp", "logaddexp2"):
    call = getattr(torch, op)
    two(op, call, ints=False, mixed=False)
    edges_two(op, call)
    Case(op + "/f32-f64", op, call, [x(2, 3), x(2, 3, dtype=F64)])
    for d in (F32, F64):
        Case(
            "%s/sizes-%s" % (op, NAMES[d]),
            op,
            call,
            [
                x(data=[1000.0, -1000.0, 1000.0, -2000.0, 50.0], dtype=d),
                x(data=[1000.5, -1001.0, 2.0, 1e30, 3.0], dtype=d),
            ],
        )
        Case(
            "%s/infinite-%s" % (op, NAMES[d]),
            op,
            call,
            [
                n(data=[INF, -INF, INF, -INF, 1.0, NAN], dtype=d),
                n(data=[INF, -INF, -INF, 2.0, INF, INF], dtype=d),
            ],
        )
two("hypot", torch.hypot, ints=False, mixed=False)
edges_two("hypot", torch.hypot)
Case("hypot/f32-f64", "hypot", torch.hypot, [x(2, 3), x(2, 3, dtype=F64)])
for d in (F32, F64):
    Case(
        "hypot/sizes-" + NAMES[d],
        "hypot",
        torch.hypot,
        [
            x(data=[3.0, 3e19, 5.0, -2e30, 0.25], dtype=d),
            x(data=[4.0, -4e19, 1e30, 2.5e30, 1e-6], dtype=d),
        ],
    )
    Case(
        "hypot/infinite-" + NAMES[d],
        "hypot",
        torch.hypot,
        [n(data=[INF, NAN, -INF, NAN, 0.0], dtype=d), n(data=[NAN, -INF, INF, 1.0, -0.0], dtype=d)],
    )
Case(
    "hypot/f16",
    "hypot",
    torch.hypot,
    [x(data=[300.0, 3e4, 0.5], dtype=F16), x(data=[400.0, 4e4, 0.25], dtype=F16)],
)
two("copysign", torch.copysign, ints=False)
edges_two("copysign", torch.copysign)
for d in (F32, F64, F16, BF16):
    Case(
        "copysign/zeros-" + NAMES[d],
        "copysign",
        torch.copysign,
        [
            x(data=[1.0, -2.0, 0.0, -0.0, 3.5], dtype=d),
            n(data=[-0.0, 0.0, -1.0, 1.0, -INF], dtype=d),
        ],
    )
Case("copysign/ints", "copysign", torch.copysign, [n(2, 3, dtype=I64), n(3, dtype=I32)])
Case("copysign/bools", "copysign", torch.copysign, list(BOOLS))
Case(
    "copysign/bytes",
    "copysign",
    torch.copysign,
    [n(3, dtype=torch.uint8, low=0, high=9), n(data=[-1.0, 0.0, -0.0])],
)
for op in ("fmax", "fmin"):
    call = getattr(torch, op)
    two(op, call, nonzero=False)
    edges_two(op, call)
    Case(op + "/ties", op, call, [x(data=[1.0, 2.0, 3.0]), x(data=[1.0, 3.0, 2.0])])
    Case(op + "/bools", op, call, list(BOOLS))
    for d in (F32, F64, F16, BF16):
        Case(
            "%s/nan-%s" % (op, NAMES[d]),
            op,
            call,
            [
                x(data=[NAN, 1.0, NAN, INF, -INF], dtype=d),
                x(data=[2.0, NAN, NAN, NAN, 1.0], dtype=d),
            ],
        )
for d in (F32, F64, F16, BF16):
    Case(
        "signbit/" + NAMES[d],
        "signbit",
        torch.signbit,
        [n(data=[1.5, -2.5, 0.0, -0.0, INF, -INF, NAN], dtype=d)],
    )
for d in (I64, I32, torch.int8, torch.uint8, BOOL):
    Case(
        "signbit/" + NAMES[d],
        "signbit",
        torch.signbit,
        [n(2, 3, dtype=d, low=0 if d == torch.uint8 else -4)],
    )
Case("signbit/transposed", "signbit", torch.signbit, [n(3, 4, order=(1, 0))])
Case(
    "signbit/narrowed-expanded",
    "signbit",
    torch.signbit,
    [n(4, 1, narrow=(0, 1, 2), expand=(2, 3), dtype=F64)],
)
Case("signbit/empty", "signbit", torch.signbit, [n(0, 3)])
Case("signbit/scalar", "signbit", torch.signbit, [n(data=-0.0)])
Case("signbit/larger", "signbit", torch.signbit, [n(3, 19)])

# ---- gamma, Bessel, logit, sinc ----
GAMMA = [
    1e-8,
    -1e-8,
    0.001,
    0.5,
    0.75,
    1.0,
    1.5,
    2.0,
    2.5,
    7.875,
    8.125,
    30.25,
    1e3,
    1e6,
    -0.25,
    -1.5,
    -7.75,
    -20.125,
]
for op, call in (
    ("lgamma", precise(torch.lgamma)),
    ("digamma", precise(lambda a: polygamma(0, a))),
):
    function(op, call, low=0, high=9, bools=True, edges=False)
    for d in (F32, F64):
        Case("%s/sizes-%s" % (op, NAMES[d]), op, call, [x(data=GAMMA, dtype=d)])
        Case(
            "%s/edges-%s" % (op, NAMES[d]),
            op,
            call,
            [n(data=[0.0, -0.0, INF, NAN, -1.0, -2.0, -INF], dtype=d)],
        )
    Case(op + "/negative", op, call, [within(-4, -3, 2, 3, dtype=F64)])
for order in (0, 1, 2, 3, 7):
    call = precise(lambda a: polygamma(order, a))
    for d in (F32, F64, F16, BF16):
        Case(
            "polygamma/%d-%s" % (order, NAMES[d]),
            "polygamma",
            call,
            [within(1, 9, 2, 3, dtype=d)],
            n=order,
        )
    Case(
        "polygamma/%d-sizes" % order,
        "polygamma",
        call,
        [x(data=[0.5, 0.75, 1.5, 8.0, 12.25, 40.5, 1e3], dtype=F64)],
        n=order,
    )
    Case(
        "polygamma/%d-negative" % order,
        "polygamma",
        call,
        [x(data=[-0.25, -1.25, -4.75], dtype=F64)],
        n=order,
    )
    Case("polygamma/%d-empty" % order, "polygamma", call, [x(0, 2)], n=order)
Case(
    "polygamma/ints",
    "polygamma",
    lambda a: torch.polygamma(1, a),
    [n(4, dtype=I64, low=1, high=6)],
    n=1,
)
Case(
    "polygamma/transposed",
    "polygamma",
    precise(lambda a: polygamma(1, a)),
    [within(1, 4, 3, 2, order=(1, 0))],
    n=1,
)
Case("polygamma/scalar", "polygamma", precise(lambda a: polygamma(2, a)), [within(1, 4)], n=2)
for op, call in (("i0", precise(torch.special.i0)), ("i1", precise(torch.special.i1))):
    function(op, call, bools=True, edges=False)
    for d in (F32, F64):
        Case(
            "%s/sizes-%s" % (op, NAMES[d]),
            op,
            call,
            [n(data=[1e-6, -0.5, 7.5, 8.5, -19.5, 20.5, 35.0, -60.0], dtype=d)],
        )  # a sum of these has no finite differences
        Case("%s/edges-%s" % (op, NAMES[d]), op, call, [n(data=[0.0, -0.0, NAN, 89.5], dtype=d)])
Case("i1/zero", "i1", torch.special.i1, [x(data=[0.0, 1e-3], dtype=F64)])
Case("i0/zero", "i0", torch.special.i0, [x(data=[0.0, 1e-3], dtype=F64)])
function("logit", torch.logit, low=0, high=1, ints=False, bools=True)
Case("logit/ints", "logit", torch.logit, [n(data=[0, 1, 2, -1], dtype=I64)])
for d in (F32, F64, F16, BF16):
    Case(
        "logit/eps-" + NAMES[d],
        "logit",
        lambda a: torch.logit(a, 0.125),
        [x(data=[0.0, 1.0, 0.0625, 0.5, 0.75, 0.9375, -1.0, 2.0], dtype=d)],
        eps=0.125,
    )
    Case(
        "logit/limits-" + NAMES[d],
        "logit",
        torch.logit,
        [n(data=[0.0, 1.0, -0.5, 1.5, NAN], dtype=d)],
    )
Case("logit/zero-eps", "logit", lambda a: torch.logit(a, 0.0), [x(data=[0.25, 0.5])], eps=0.0)
Case("logit/eps-empty", "logit", lambda a: torch.logit(a, 0.1), [x(0)], eps=0.1)
function("sinc", torch.sinc, bools=True, edges=False)
Case("sinc/zero", "sinc", torch.sinc, [x(data=[0.0, -0.0, 0.5, 1.0], dtype=F64)])
for d in (F32, F64):
    Case(
        "sinc/edges-" + NAMES[d],
        "sinc",
        torch.sinc,
        [n(data=[0.0, -0.0, INF, NAN, 1e-30, 0.125], dtype=d)],
    )
turned("sinc", torch.sinc)

# ---- steps, powers of 2, integers ----
for d in (F32, F64, F16, BF16, I64, I32, torch.int8):
    Case(
        "heaviside/" + NAMES[d],
        "heaviside",
        torch.heaviside,
        [n(data=[1, 0, -2, 0], dtype=d), n(data=[5, 6, 7, 3], dtype=d)],
    )
Case("heaviside/bools", "heaviside", torch.heaviside, list(BOOLS))
Case(
    "heaviside/edges",
    "heaviside",
    torch.heaviside,
    [n(data=[NAN, INF, -INF, -0.0, 0.0]), n(data=[1.0, 2.0, 3.0, NAN, INF])],
)
Case("heaviside/broadcast", "heaviside", torch.heaviside, [n(3, 2, order=(1, 0)), n(1)])
Case("heaviside/empty", "heaviside", torch.heaviside, [n(0, 2), n(2)])
for d in (F32, F64, F16, BF16):
    Case("ldexp/" + NAMES[d], "ldexp", torch.ldexp, [x(2, 3, dtype=d), n(2, 3, dtype=I64)])
    Case("ldexp/floats-" + NAMES[d], "ldexp", torch.ldexp, [x(2, 3, dtype=d), x(3, dtype=d)])
Case("ldexp/ints", "ldexp", torch.ldexp, [n(2, 3, dtype=I64), n(3, dtype=I32)])
Case(
    "ldexp/far",
    "ldexp",
    lambda a, b: torch.ldexp(a.to(F64), b).to(a.dtype),
    [x(data=[1e-30, 1e30]), n(data=[140, -140], dtype=I64)],
)
Case("ldexp/scalar", "ldexp", torch.ldexp, [x(), n(dtype=I64)])
Case("ldexp/empty", "ldexp", torch.ldexp, [x(0, 2), n(2, dtype=I64)])
Case("ldexp/transposed", "ldexp", torch.ldexp, [x(3, 2, order=(1, 0)), n(2, 3, dtype=I64)])
for op in ("gcd", "lcm"):
    call = getattr(torch, op)
    for d in (I64, I32, torch.int16, torch.int8, torch.uint8):
        Case(
            "%s/%s" % (op, NAMES[d]),
            op,
            call,
            [
                n(3, 5, dtype=d, low=0 if d == torch.uint8 else -11, high=12),
                n(5, dtype=d, low=0 if d == torch.uint8 else -9, high=10),
            ],
        )
    Case(
        op + "/zeros", op, call, [n(data=[0, 0, 5, -7], dtype=I64), n(data=[0, 3, 0, 0], dtype=I64)]
    )
    Case(op + "/mixed", op, call, [n(3, 2, order=(1, 0), dtype=I32), n(1, dtype=I64)])
    Case(op + "/empty", op, call, [n(0, 2, dtype=I64), n(2, dtype=I64)])
    Case(op + "/scalars", op, call, [n(data=12, dtype=I64), n(data=-18, dtype=I64)])
Case(
    "gcd/large",
    "gcd",
    torch.gcd,
    [
        n(data=[6557470319842, 2**62, -(2**63)], dtype=I64),
        n(data=[4052739537881, 3 * 2**60, 2**40], dtype=I64),
    ],
)
for op in ("bitwise_left_shift", "bitwise_right_shift"):
    call = getattr(torch, op)
    for d, bits in ((I64, 64), (I32, 32), (torch.int16, 16), (torch.int8, 8), (torch.uint8, 8)):
        first = [1, 5, 127, 100, 3, 9, 77] + ([] if d == torch.uint8 else [-1, -5, -100, -7, -128])
        by = [0, 1, bits - 2, bits - 1, bits, bits + 1, 2]
        Case(
            "%s/%s" % (op, NAMES[d]),
            op,
            call,
            [n(data=[[v] for v in first], dtype=d), n(data=by, dtype=d)],
        )
        if d != torch.uint8:
            Case(
                "%s/negative-%s" % (op, NAMES[d]),
                op,
                call,
                [n(data=[3, -3], dtype=d), n(data=[-1, -2], dtype=d)],
            )
    Case(op + "/mixed", op, call, [n(3, 2, order=(1, 0), dtype=I32), n(data=[3], dtype=I64)])
    Case(op + "/empty", op, call, [n(0, 2, dtype=I64), n(2, dtype=I64)])
    Case(op + "/scalars", op, call, [n(data=-12, dtype=I64), n(data=2, dtype=I64)])

# ---- closeness, tensor values, bool ----
A, B = [1.0, 1.0, 0.0, INF, -INF, INF, NAN, 100.0, 1e-9], [
    1.0,
    1.00001,
    1e-9,
    INF,
    INF,
    1.0,
    NAN,
    100.1,
    0.0,
]
for d in (F32, F64, F16, BF16):
    Case("isclose/" + NAMES[d], "isclose", torch.isclose, [n(data=A, dtype=d), n(data=B, dtype=d)])
    Case(
        "isclose/options-" + NAMES[d],
        "isclose",
        lambda a, b: torch.isclose(a, b, rtol=0.01, atol=0.25, equal_nan=True),
        [n(data=A, dtype=d), n(data=B, dtype=d)],
        rtol=0.01,
        atol=0.25,
        equal_nan=True,
    )
Case(
    "isclose/exact",
    "isclose",
    lambda a, b: torch.isclose(a, b, rtol=0.0, atol=0.0),
    [n(data=A), n(data=B)],
    rtol=0.0,
    atol=0.0,
)
Case(
    "isclose/ints",
    "isclose",
    lambda a, b: torch.isclose(a, b, rtol=0.0, atol=1.5),
    [n(3, 4, dtype=I64), n(4, dtype=I64)],
    rtol=0.0,
    atol=1.5,
)
Case("isclose/bools", "isclose", torch.isclose, list(BOOLS))
Case(
    "isclose/c64",
    "isclose",
    torch.isclose,
    [n(data=[1 + 1j, 2 - 1j], dtype=C64), n(data=[1 + 1.000001j, 2 + 1j], dtype=C64)],
)
Case("isclose/broadcast", "isclose", torch.isclose, [n(3, 2, order=(1, 0)), n(1)])
Case("isclose/empty", "isclose", torch.isclose, [n(0, 2), n(2)])


def mask(*shape):
    return n(*shape, dtype=BOOL)


fill = lambda a, m, v: a.masked_fill(m, v)
for d in (F32, F64, F16, BF16, C64):
    Case(
        "masked_fill_tensor/" + NAMES[d],
        "masked_fill_tensor",
        fill,
        [x(2, 3, dtype=d), mask(2, 3), x(dtype=d)],
    )
Case("masked_fill_tensor/broadcast", "masked_fill_tensor", fill, [x(2, 3), mask(3), x()])
Case("masked_fill_tensor/cast", "masked_fill_tensor", fill, [x(2, 3), mask(2, 1), x(dtype=F64)])
Case(
    "masked_fill_tensor/ints",
    "masked_fill_tensor",
    fill,
    [n(2, 3, dtype=I64), mask(3), n(data=2.5)],
)
Case(
    "masked_fill_tensor/transposed",
    "masked_fill_tensor",
    fill,
    [x(3, 2, order=(1, 0)), mask(2, 3), x()],
)
Case("masked_fill_tensor/empty", "masked_fill_tensor", fill, [x(0, 3), mask(3), x()])
Case("sign/bools", "sign", torch.sign, [n(2, 3, dtype=BOOL)])
for op in ("remainder", "fmod"):
    Case(op + "/int-bool", op, getattr(torch, op), [n(5, dtype=I64), n(data=[True], dtype=BOOL)])
    Case(
        op + "/bool-float", op, getattr(torch, op), [n(4, dtype=BOOL), within(0, 3, 4, grad=False)]
    )

# ---- incomplete gamma functions ----
SMALL_A = [1e-6, 0.001, 0.25, 0.5, 1.0, 1.0, 2.5, 7.0, 7.0, 19.75, 19.75, 3.0]
SMALL_X = [0.25, 1.0001, 0.001, 3.0, 1.0, 1e-9, 30.0, 8.25, 2.0, 21.0, 18.5, 700.0]
LARGE_A = [20.25, 20.25, 25.0, 30.0, 30.0, 100.0, 1000.0, 1000.0, 1e5, 1e5, 3e4]
LARGE_X = [20.5, 3.0, 24.0, 33.0, 200.0, 100.5, 930.0, 1100.0, 1e5, 100700.5, 1e4]
for op in ("igamma", "igammac"):
    call = getattr(torch, op)
    exact = lambda a, b: Incomplete.apply(a, b, op == "igammac")
    for d in (F32, F64):
        for name, a, b in (("small", SMALL_A, SMALL_X), ("large", LARGE_A, LARGE_X)):
            Case(
                "%s/%s-%s" % (op, name, NAMES[d]),
                op,
                exact,
                [n(data=a, dtype=d), x(data=b, dtype=d)],
            )
        Case(
            "%s/edges-%s" % (op, NAMES[d]),
            op,
            call,
            [
                n(data=[0.0, 0.0, 2.0, INF, 2.0, INF, -1.0, 2.0, NAN, 2.0, 0.0, INF], dtype=d),
                n(data=[0.0, 2.0, 0.0, 2.0, INF, INF, 2.0, -1.0, 2.0, NAN, INF, 0.0], dtype=d),
            ],
        )
    for d in (F16, BF16):
        Case(
            "%s/%s" % (op, NAMES[d]),
            op,
            lambda a, b: call(a.float(), b.float()).to(a.dtype),
            [n(data=[0.5, 3.0, 18.0, 40.0], dtype=d), x(data=[0.25, 4.0, 15.0, 44.0], dtype=d)],
        )
    Case(op + "/broadcast", op, call, [n(data=[0.5, 3.0, 9.0]), within(1, 12, 2, 1)])
    Case(op + "/f32-f64", op, call, [n(data=[0.5, 3.0]), n(data=[1.25, 3.5], dtype=F64)])
    Case(op + "/empty", op, call, [n(0, 2), x(2)])
    Case(op + "/scalar", op, call, [n(data=1.5), within(1, 2)])

# ---- mantissas and neighbours; tests/op/test_exponent compares all bits ----
PARTS = [1.0, -1.0, 0.5, 0.75, 3.0, -1e-3, 1e30, -1e-30, 6.0, 0.0, INF, NAN]
for d in (F32, F64, BF16):
    Case("frexp/" + NAMES[d], "frexp", lambda a: both(torch.frexp(a)), [n(data=PARTS, dtype=d)])
    Case("frexp/grad-" + NAMES[d], "frexp", lambda a: both(torch.frexp(a)), [x(2, 3, dtype=d)])
Case(
    "frexp/f16", "frexp", lambda a: both(torch.frexp(a)), [n(data=[6e-5, -3.0, 60000.0], dtype=F16)]
)
Case("frexp/transposed", "frexp", lambda a: both(torch.frexp(a)), [x(3, 2, order=(1, 0))])
Case("frexp/empty", "frexp", lambda a: both(torch.frexp(a)), [n(0, 2)])
for d in (F32, F64, BF16):
    Case(
        "nextafter/" + NAMES[d],
        "nextafter",
        torch.nextafter,
        [
            n(data=[1.0, 1.0, -1.0, 2.0, 3.0, 3.0, INF, -INF, NAN, 1.0, 5.0], dtype=d),
            n(data=[2.0, 0.0, 0.0, 1.0, 3.0, INF, 0.0, 0.0, 1.0, NAN, -INF], dtype=d),
        ],
    )
Case("nextafter/broadcast", "nextafter", torch.nextafter, [n(3, 1), n(2, low=6, high=9)])
Case("nextafter/empty", "nextafter", torch.nextafter, [n(0, 2), n(2)])
# a has a gradient where a != b, NaN included; b has none
for d in (F32, F64, BF16, F16):
    Case(
        "nextafter/grad-" + NAMES[d],
        "nextafter",
        torch.nextafter,
        [
            x(data=[1.0, 3.0, -2.0, 0.0, INF, INF, NAN, 1.0, NAN], dtype=d),
            x(data=[2.0, 3.0, -5.0, -0.0, INF, 1.0, 1.0, NAN, NAN], dtype=d),
        ],
    )
Case("nextafter/grad-broadcast", "nextafter", torch.nextafter, [x(3, 1), x(2, low=6, high=9)])
print("end")
