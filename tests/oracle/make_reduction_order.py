#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Reductions that skip NaN, running extremes, elements by rank:
#   PYTHON-WITH-TORCH make_reduction_order.py > reduction_order.txt
from cases import *

INTS = (I64, I32, I8, U8)


def first(t):
    """The values alone: of equal elements, PyTorch does not say whose index it gives."""
    return t[0]


def holes(dtype=F32, only=True, **more):
    """Rows with no, some and, with `only`, nothing but NaN, and infinities."""
    rows = [[1.0, -2.5, 3.0, 0.5], [NAN, 2.0, NAN, -1.0], [INF, 1.0, NAN, -3.0]] + [
        [NAN] * 4
    ] * only
    return x(data=rows, dtype=dtype, **more)


LAYOUTS = [
    ("kept", distinct(2, 3, 2, dtype=F64), 1, True),
    ("first", distinct(4, 3, dtype=F64), 0, False),
    ("transposed", distinct(3, 4, order=(1, 0)), -1, False),
    ("expanded", x(3, 1, expand=(3, 4)), 0, False),
    ("narrowed", distinct(3, 5, narrow=(1, 1, 3)), -1, True),
    ("scalar", x(), 0, False),
    ("scalar-kept", x(), -1, True),
    ("no-results", x(0, 3), 1, False),
    ("larger", distinct(2, 41), -1, False),
    ("long", distinct(1500), 0, False),
    ("middle", distinct(2, 5, 3), 1, False),
    ("single", distinct(3, 1), 1, False),
]

# ---- one element of a line, and its index ----
for op, call in (
    ("median_dim", torch.median),
    ("nanmedian_dim", torch.nanmedian),
    ("mode", torch.mode),
):
    for name, a, dim, keep in (
        [(NAMES[d], distinct(3, 5, dtype=d), 1, False) for d in FLOATS]
        + [(NAMES[d], n(data=[[3, 1, 2, 9], [1, 4, 2, 8]], dtype=d), 1, False) for d in INTS]
        + LAYOUTS
        + [("even", distinct(3, 6), 1, False), ("two", distinct(3, 2), 1, False)]
    ):
        Case(
            "%s/%s" % (op, name), op, lambda t: both(call(t, dim, keep)), [a], dim=dim, keepdim=keep
        )
    Case(
        op + "/ties",
        op,
        lambda t: first(call(t, 1)),
        [n(data=[[2.0, 1.0, 2.0, 1.0, 1.0], [-0.0, 0.0, 1.0, 1.0, 3.0]])],
        dim=1,
    )
    Case(
        op + "/int-ties",
        op,
        lambda t: first(call(t, 0)),
        [n(data=[5, -1, 5, -1, 7, -1, 5], dtype=I64)],
        dim=0,
    )
for op in ("median_dim", "nanmedian_dim"):  # PyTorch's mode of a row with NaN depends on its order
    for d in FLOATS:
        Case(
            "%s/nan-%s" % (op, NAMES[d]),
            op,
            lambda t: first(getattr(torch, op[:-4])(t, 1)),
            [holes(d, grad=False)],
            dim=1,
        )
    Case(
        op + "/nan-first",
        op,
        lambda t: first(getattr(torch, op[:-4])(t, 0)),
        [holes(grad=False)],
        dim=0,
    )
    Case(
        op + "/nan-grad",
        op,
        lambda t: both(getattr(torch, op[:-4])(t, 1)),
        [x(data=[[1.0, NAN, 3.0], [2.0, 5.0, 4.0]])],
        dim=1,
    )
for d in FLOATS + (I64, BOOL):
    Case(
        "mode/often-" + NAMES[d],
        "mode",
        lambda t: first(t.mode()),
        [n(data=[[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]], dtype=d)],
    )
for op in ("median", "nanmedian"):
    call = getattr(torch, op)
    for name, a in (
        [(NAMES[d], distinct(3, 5, dtype=d)) for d in FLOATS]
        + [(NAMES[d], n(data=[[3, 1], [1, 4]], dtype=d)) for d in INTS]
        + [
            ("even", distinct(2, 3, dtype=F64)),
            ("transposed", distinct(3, 4, order=(1, 0))),
            ("expanded", x(3, 1, expand=(3, 4))),
            ("scalar", x()),
            ("empty", n(0, 3)),
            ("empty-f64", n(0, dtype=F64)),
            ("nan", holes()),
            ("all-nan", x(data=[NAN, NAN])),
            ("larger", distinct(7, 19)),
            ("ties", x(data=[2.0, 1.0, 2.0, 2.0, 3.0], dtype=F64)),
            ("narrowed", distinct(3, 5, narrow=(1, 1, 3))),
        ]
    ):
        Case("%s/%s" % (op, name), op, call, [a])
for k in (1, 2, 4):
    for name, a, dim, keep in (
        [(NAMES[d], distinct(3, 4, dtype=d), -1, False) for d in FLOATS]
        + [(NAMES[d], n(data=[[3, 1, 2, 9], [1, 4, 2, 8]], dtype=d), 1, False) for d in INTS]
        + [r for r in LAYOUTS if r[0] in ("first", "middle", "larger", "long")]
        + ([r for r in LAYOUTS] if k == 1 else [])
    ):
        Case(
            "kthvalue/%s-%d" % (name, k),
            "kthvalue",
            lambda t: both(torch.kthvalue(t, k, dim, keep)),
            [a],
            k=k,
            dim=dim,
            keepdim=keep,
        )
    Case(
        "kthvalue/nan-%d" % k, "kthvalue", lambda t: first(t.kthvalue(k)), [holes(grad=False)], k=k
    )

# ---- running extremes ----
for op in ("cummax", "cummin", "logcumsumexp"):
    call = getattr(torch, op)
    for name, a, dim in [(NAMES[d], x(2, 6, dtype=d), 1) for d in FLOATS] + [
        ("first", x(5, 2, dtype=F64), 0),
        ("transposed", x(3, 4, order=(1, 0)), 1),
        ("scalar", x(), 0),
        ("empty", x(2, 0), 1),
        ("no-lines", x(0, 2), 1),
        ("middle", x(2, 3, 2), -2),
        ("expanded", x(3, 1, expand=(3, 4)), 1),
        ("larger", x(2, 45, dtype=F64), 1),
        ("narrowed", x(3, 5, narrow=(1, 1, 3)), 1),
        ("wide", x(3, 300, dtype=F64), 0),
        ("long", x(1, 1100, dtype=F64), 1),
        ("single", x(4, 1), 1),
    ]:
        Case("%s/%s" % (op, name), op, lambda t: both(call(t, dim)), [a], dim=dim)
    Case(op + "/nan", op, lambda t: both(call(t, 1)), [holes(grad=False)], dim=1)
    Case(op + "/nan-first", op, lambda t: both(call(t, 0)), [holes(F64, grad=False)], dim=0)
for op in ("cummax", "cummin"):
    call = getattr(torch, op)
    for d in INTS + (BOOL,):
        Case(
            "%s/%s" % (op, NAMES[d]),
            op,
            lambda t: both(call(t, 1)),
            [n(data=[[3, 1, 3, 9, 0, 9], [1, 4, 2, 8, 8, 1]], dtype=d)],
            dim=1,
        )
        Case(
            "%s/%s-first" % (op, NAMES[d]),
            op,
            lambda t: both(call(t, 0)),
            [n(data=[[3, 1, 0, 9, 5], [1, 4, 2, 8, 1], [1, 5, 2, 0, 8]], dtype=d)],
            dim=0,
        )
    Case(
        op + "/ties",
        op,
        lambda t: both(call(t, 0)),
        [x(data=[1.0, 2.0, 2.0, -0.0, 0.0, 2.0, -1.0, -1.0])],
        dim=0,
    )
Case(
    "logcumsumexp/edges",
    "logcumsumexp",
    lambda t: t.logcumsumexp(1),
    [n(data=[[1.0, -INF, INF, 2.0], [-INF, -INF, 0.0, -INF], [1000.0, 1000.0, -1000.0, 1001.0]])],
    dim=1,
)
Case(
    "logcumsumexp/far",
    "logcumsumexp",
    lambda t: t.logcumsumexp(0),
    [x(data=[1000.0, -1000.0, 999.0, 1003.0, 5.0], dtype=F64)],
    dim=0,
)

# ---- quantiles ----
for op in ("quantile", "nanquantile"):
    call = getattr(torch, op)
    for how in ("linear", "lower", "higher", "midpoint", "nearest"):
        for name, a, q, dim, keep in [
            ("f32", distinct(3, 6), n(data=[0.0, 0.125, 0.5, 1.0]), 1, False),
            ("f64", distinct(3, 6, dtype=F64), n(data=[0.25, 0.9], dtype=F64), 0, True),
            ("number", distinct(4, 5), n(data=0.375), -1, False),
            ("all", distinct(3, 4), n(data=[0.5, 0.1]), None, False),
            ("all-kept", distinct(3, 4), n(data=0.75), None, True),
            ("scalar", x(), n(data=0.3), None, False),
            ("scalar-dim", x(), n(data=[0.3, 1.0]), 0, True),
            ("middle", distinct(2, 5, 3, dtype=F64), n(data=[0.3, 0.6], dtype=F64), 1, False),
            ("transposed", distinct(3, 4, order=(1, 0)), n(data=[0.3]), 0, False),
            ("nan", holes(grad=False), n(data=[0.0, 0.4, 1.0]), 1, False),
            ("no-fractions", distinct(3, 4), n(0), 1, False),
            ("single", distinct(3, 1), n(data=0.7), 1, False),
        ]:
            Case(
                "%s/%s-%s" % (op, how, name),
                op,
                lambda t, f: call(t, f, dim, keep, interpolation=how),
                [a, q],
                interpolation=how,
                keepdim=keep,
                **({} if dim is None else {"dim": dim})
            )
    Case(
        op + "/number-f64",
        op,
        lambda t, f: call(t, f.float(), 1),
        [distinct(3, 6), x(data=0.3, dtype=F64)],
        dim=1,
    )
    Case(
        op + "/both-gradients",
        op,
        lambda t, f: call(t, f, 1),
        [distinct(3, 6, dtype=F64), x(data=[0.3, 0.45, 0.85], dtype=F64)],
        dim=1,
    )

# ---- sums and means without NaN, counts, both extremes ----
for op in ("nansum", "nanmean"):
    call = getattr(torch, op)
    for name, a, dims, keep in [(NAMES[d], holes(d, False), [1], False) for d in FLOATS] + [
        (
            "only",
            holes(grad=False),
            [1],
            False,
        ),  # PyTorch's gradient of a row of NaN is NaN for nanmean, ours is 0
        ("all", holes(), [], False),
        ("scalar", x(), [], False),
        ("kept", x(2, 3, 2, dtype=F64), [0, 2], True),
        ("first", holes(F64), [0], False),
        ("transposed", x(3, 4, order=(1, 0)), [-1], False),
        ("expanded", x(2, 1, expand=(2, 3)), [0], False),
        ("narrowed", x(3, 5, narrow=(1, 1, 3)), [1], True),
        ("no-results", x(0, 3), [1], False),
        ("no-elements", x(2, 0), [1], False),
    ]:
        Case(
            "%s/%s" % (op, name),
            op,
            lambda t: call(t, dims or None, keep),
            [a],
            dims=dims,
            keepdim=keep,
        )
    Case(
        op + "/asked", op, lambda t: call(t, 1, dtype=F64), [holes(only=False)], dims=[1], dtype=F64
    )
    Case(op + "/asked-narrow", op, lambda t: call(t, 1, dtype=F16), [x(2, 3)], dims=[1], dtype=F16)
for d in INTS + (BOOL,):
    Case(
        "nansum/" + NAMES[d],
        "nansum",
        lambda t: t.nansum(0),
        [n(data=[[3, 1], [0, 4]], dtype=d)],
        dims=[0],
    )
Case(
    "nansum/asked-whole",
    "nansum",
    lambda t: t.nansum(1, dtype=F32),
    [n(data=[[3, 1], [0, 4]], dtype=I64)],
    dims=[1],
    dtype=F32,
)
for name, a, dims in [
    (NAMES[d], n(data=[[0, 1, 0], [1, 1, 1], [0, 0, 0]], dtype=d), [1])
    for d in FLOATS + INTS + (BOOL, C64)
] + [
    ("all", n(3, 4, dtype=I64), []),
    ("two", n(2, 3, 4, dtype=I32), [0, -1]),
    ("nan", n(data=[NAN, 0.0, -0.0, INF]), [0]),
    ("scalar", n(data=2.0), []),
    ("no-elements", n(2, 0), [1]),
    ("transposed", n(3, 4, dtype=I64, order=(1, 0)), [0]),
    ("expanded", n(3, 1, dtype=I64, expand=(3, 4)), [1]),
]:
    Case(
        "count_nonzero/" + name,
        "count_nonzero",
        lambda t: torch.count_nonzero(t, tuple(dims) if dims else None),
        [a],
        dims=dims,
    )
for name, a, dim, keep in (
    [(NAMES[d], distinct(3, 4, dtype=d), 1, False) for d in FLOATS]
    + [(NAMES[d], n(data=[[3, 1, 2], [1, 4, 2]], dtype=d), 0, False) for d in INTS + (BOOL,)]
    + LAYOUTS
    + [
        ("all", distinct(3, 4, dtype=F64), None, False),
        ("all-kept", distinct(3, 4), None, True),
        ("nan", holes(grad=False), 1, False),
        ("ties", x(data=[2.0, 1.0, 2.0, 1.0, 1.0]), 0, False),
    ]
):
    Case(
        "aminmax/" + name,
        "aminmax",
        lambda t: both(torch.aminmax(t, dim=dim, keepdim=keep)),
        [a],
        keepdim=keep,
        **({} if dim is None else {"dim": dim})
    )

print("end")
