#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Reductions, shapes, indices, creation, products:
#   PYTHON-WITH-TORCH make_reduction_shape_index.py > reduction_shape_index.txt
from functools import partial

from cases import *


# ---- reductions ----
def reduction(op, call, make=x, ints=True, grad=True, empty=True, **options):
    """call(tensor, dims, keepdim)"""
    for name, a, dims, keep in [
        (NAMES[d], make(2, 3, dtype=d, grad=grad), [1], False) for d in FLOATS
    ] + [
        ("all", make(2, 3, grad=grad), [], False),
        ("scalar", make(grad=grad), [], False),
        ("kept", make(2, 3, 2, dtype=F64, grad=grad), [0, 2], True),
        ("first", make(4, 3, dtype=F64, grad=grad), [0], False),
        ("transposed", make(3, 4, order=(1, 0), grad=grad), [-1], False),
        ("expanded", make(2, 1, expand=(2, 3), grad=grad), [0], False),
        ("narrowed", make(3, 5, narrow=(1, 1, 3), grad=grad), [1], True),
        ("larger", make(3, 21, grad=grad), [-1], False),
    ]:
        case(
            op,
            name,
            lambda t: call(t, dims or list(range(t.dim())), keep),
            [a],
            dims=dims,
            keepdim=keep,
            **options
        )
    case(op, "no-results", lambda t: call(t, [1], False), [x(0, 3, grad=grad)], dims=[1], **options)
    if empty:
        case(
            op,
            "no-elements",
            lambda t: call(t, [1], False),
            [x(2, 0, grad=grad)],
            dims=[1],
            **options
        )
    if ints:
        for d in (I64, I32, torch.int8):
            case(
                op, NAMES[d], lambda t: call(t, [0], False), [n(3, 2, dtype=d)], dims=[0], **options
            )


reduction(
    "prod",
    lambda t, d, k: (
        t.prod(d[0], keepdim=k)
        if len(d) == 1
        else (
            t.prod()
            if len(d) == t.dim() and not k
            else t.prod(d[-1], keepdim=True).prod(d[0], keepdim=True)
        )
    ),
)
case("prod", "bools", torch.prod, [n(4, dtype=BOOL)])
for name, data in (
    ("one-zero", [[1.5, 0.0, 2.0], [1.0, 2.0, 3.0]]),
    ("two-zeros", [[0.0, 0.0, 2.0], [1.0, -2.0, 3.0]]),
    ("edges", [[INF, 1.0, -2.0], [NAN, 1.0, 2.0]]),
):
    for d in (F32, F64):
        case(
            "prod",
            "%s-%s" % (name, NAMES[d]),
            lambda t: t.prod(1),
            [x(data=data, dtype=d)],
            dims=[1],
        )
reduction("amin", lambda t, d, k: t.amin(d, k), empty=False)
case("amin", "bools", lambda t: t.amin(0), [n(4, 3, dtype=BOOL)], dims=[0])
case(
    "amin",
    "edges",
    lambda t: t.amin(1),
    [n(data=[[INF, 1.0, -INF], [NAN, 1.0, 2.0], [1.0, -2.0, NAN]])],
    dims=[1],
)
case("amin", "ties", lambda t: t.amin(1), [x(data=[[1.0, 1.0, 2.0], [3.0, 3.0, 3.0]])], dims=[1])
for op in ("argmin",):
    for d in FLOATS + (I64, torch.int8):
        case(
            op,
            NAMES[d],
            lambda t: getattr(torch, op)(t, 1),
            (
                [distinct(3, 4, dtype=d, grad=False)]
                if d.is_floating_point
                else [n(data=[[3, 1, 2], [1, 4, -2]], dtype=d)]
            ),
            dim=1,
        )
    case(op, "all", getattr(torch, op), [distinct(3, 4, grad=False)])
    case(
        op,
        "kept",
        lambda t: getattr(torch, op)(t, 0, True),
        [distinct(3, 4, order=(1, 0), grad=False)],
        dim=0,
        keepdim=True,
    )
    case(
        op,
        "ties",
        lambda t: getattr(torch, op)(t, 1),
        [n(data=[[1.0, 0.0, 0.0], [NAN, -1.0, NAN]])],
        dim=1,
    )
    case(op, "scalar", getattr(torch, op), [n()])
    case(op, "no-results", lambda t: getattr(torch, op)(t, 1), [n(0, 2)], dim=1)
for op in ("max_dim", "min_dim"):
    call = getattr(torch, op[:3])
    for name, a, dim, keep in [(NAMES[d], distinct(3, 4, dtype=d), 1, False) for d in FLOATS] + [
        ("kept", distinct(3, 4), 0, True),
        ("transposed", distinct(3, 4, order=(1, 0)), -1, False),
        ("scalar", x(), 0, False),
        ("no-results", x(0, 2), 1, False),
        ("larger", distinct(2, 30, dtype=F64), 1, False),
        ("middle", distinct(2, 3, 2), 1, False),
        ("ints", n(data=[[3, 1, 2], [1, 4, -2]], dtype=I64), 1, False),
        ("nan", n(data=[[1.0, NAN, 2.0], [INF, -INF, 1.0]]), 1, False),
        ("expanded", distinct(3, 1, expand=(3, 2)), 0, False),
    ]:
        case(op, name, lambda t: both(call(t, dim, keep)), [a], dim=dim, keepdim=keep)
for c in (1, 0, 2):
    reduction(
        "var", lambda t, d, k: torch.var(t, d, correction=c, keepdim=k), ints=False, correction=c
    )
    reduction(
        "std",
        lambda t, d, k: torch.std(t, d, correction=c, keepdim=k),
        make=distinct,
        ints=False,
        correction=c,
    )
case("std", "zero", lambda t: t.std(1), [x(data=[[1.0, 1.0, 1.0], [1.0, 2.0, 4.0]])], dims=[1])
case("var", "far", lambda t: t.var(), [x64(data=[1e6, 1e6 + 1, 1e6 + 2])])
for p in (2.0, 1.0, 3.0, 0.5, 1.5, 0.0, INF, -INF):
    reduction(
        "norm",
        lambda t, d, k: torch.linalg.vector_norm(t, p, d, k),
        ints=False,
        p=p,
        empty=p not in (INF, -INF),
        make=lambda *s, **m: (
            (x if s else distinct)(*s, positive=p < 2, **m)
            if p < 2 and s
            else x(*s, **m) if s else x(data=1.5, **m)
        ),
    )
    if p >= 1:
        case(
            "norm",
            "zero-%g" % p,
            lambda t: torch.linalg.vector_norm(t, p, 1),
            [x(data=[[0.0, 0.0], [0.0, 3.0]])],
            dims=[1],
            p=p,
        )
for op in ("all", "any"):
    call = getattr(torch, op)
    for d in FLOATS + (I64, torch.int8, BOOL):
        case(
            op,
            NAMES[d],
            lambda t: call(t, 1),
            [n(data=[[0, 1, 0], [1, 1, 1], [0, 0, 0]], dtype=d)],
            dims=[1],
        )
    case(op, "all", call, [n(2, 3, dtype=BOOL)])
    case(
        op,
        "kept",
        lambda t: call(t, 0, True),
        [n(3, 2, dtype=BOOL, order=(1, 0))],
        dims=[0],
        keepdim=True,
    )
    case(op, "nan", call, [n(data=[NAN])])
    case(op, "no-elements", lambda t: call(t, 1), [n(2, 0)], dims=[1])
    case(op, "scalar", call, [n()])
reduction("logsumexp", lambda t, d, k: torch.logsumexp(t, d, k), ints=False)
case(
    "logsumexp",
    "edges",
    lambda t: t.logsumexp(1),
    [n(data=[[INF, 1.0], [-INF, -INF], [NAN, 1.0], [1000.0, 1000.0], [-INF, 2.0]])],
    dims=[1],
)
for op in ("cumsum", "cumprod"):
    call = getattr(torch, op)
    for name, a, dim in (
        [(NAMES[d], x(2, 4, dtype=d), 1) for d in FLOATS]
        + [(NAMES[d], n(2, 3, dtype=d), 1) for d in (I64, I32, torch.int8, BOOL)]
        + [
            ("first", x64(3, 2), 0),
            ("transposed", x(3, 4, order=(1, 0)), 1),
            ("scalar", x(), 0),
            ("empty", x(2, 0), 1),
            ("middle", x(2, 3, 2), -2),
            ("expanded", x(3, 1, expand=(3, 4)), 1),
            ("larger", x64(2, 25), 1),
            ("narrowed", x(3, 5, narrow=(1, 1, 3)), 1),
            ("zeros", x64(data=[[2.0, 0.0, 3.0, 0.0, 1.5], [0.0, 2.0, 3.0, 4.0, 5.0]]), 1),
        ]
    ):
        case(op, name, lambda t: call(t, dim), [a], dim=dim)
for d in (F32, F64, I64):
    case(
        "cumsum",
        "reverse-" + NAMES[d],
        lambda t: t.flip(1).cumsum(1).flip(1),
        [x(2, 4, dtype=d)],
        dim=1,
        reverse=True,
    )
for down in (False, True):
    for name, a, dim in (
        [(NAMES[d], distinct(3, 5, dtype=d), 1) for d in FLOATS]
        + [
            (NAMES[d], n(data=[[3, 1, 2, 1], [1, 4, -2, 4]], dtype=d), 1)
            for d in (I64, I32, torch.int8)
        ]
        + [
            ("bools", n(2, 5, dtype=BOOL), 1),
            ("first", distinct(5, 2, dtype=F64), 0),
            ("transposed", distinct(3, 4, order=(1, 0)), -1),
            ("scalar", x(), 0),
            ("empty", x(2, 0), 1),
            ("larger", distinct(2, 37), 1),
            ("ties", x(data=[1.0, 2.0, 1.0, 2.0, 0.0, -0.0]), 0),
            ("edges", n(data=[NAN, 1.0, INF, -INF, NAN, 0.0]), 0),
            ("expanded", distinct(3, 1, expand=(3, 2)), 0),
        ]
    ):
        case(
            "sort",
            "%s%s" % (name, "-down" * down),
            lambda t: both(torch.sort(t, dim=dim, descending=down, stable=True)),
            [a],
            dim=dim,
            descending=down,
        )
    for name, a, k, dim in [(NAMES[d], distinct(3, 5, dtype=d), 2, 1) for d in FLOATS] + [
        ("ints", n(data=[[3, 1, 2, 7], [1, 4, -2, 9]], dtype=I64), 3, 1),
        ("first", distinct(5, 2, dtype=F64), 2, 0),
        ("whole", distinct(4), 4, 0),
        ("none", distinct(2, 4), 0, 1),
        ("transposed", distinct(3, 4, order=(1, 0)), 1, -1),
        ("scalar", x(), 1, 0),
        ("nan", n(data=[1.0, NAN, INF]), 2, 0),
    ]:
        case(
            "topk",
            "%s%s" % (name, "-small" * down),
            lambda t: both(torch.topk(t, k, dim, not down)),
            [a],
            k=k,
            dim=dim,
            largest=not down,
        )


# ---- indices ----
for name, a, i, dim in [
    (NAMES[d], x(3, 4, dtype=d), places(2, 4, high=3), 0)
    for d in FLOATS + (I64, I32, torch.int8, BOOL)
] + [
    ("last", x64(3, 4), places(3, 6, high=4), -1),
    ("smaller", x(3, 4), places(2, 2, high=4), 1),
    ("transposed", x(4, 3, order=(1, 0)), places(2, 3, high=4, order=(1, 0)), 1),
    ("scalar", x(), places(high=1), 0),
    ("scalar-index", x(3), places(2, high=3), 0),
    ("empty", x(3, 4), places(0, 4, high=1), 0),
    ("three", x(2, 3, 4), places(2, 2, 4, high=3), 1),
    ("expanded", x(1, 3, expand=(4, 3)), places(2, 3, high=4), 0),
    ("larger", x(5, 20), places(4, 20, high=5), 0),
]:
    along("gather", name, dim, [a, i])


def once(rows, columns, of):
    """No place twice along dim 0."""
    return n(
        data=torch.stack([torch.randperm(of)[:rows] for _ in range(columns)], 1).tolist(), dtype=I64
    )


for name, a, i, s, dim in [
    (NAMES[d], x(4, 3, dtype=d), once(2, 3, 4), x(2, 3, dtype=d), 0)
    for d in FLOATS + (I64, torch.int8, BOOL)
] + [
    ("transposed", x(3, 4, order=(1, 0)), once(2, 3, 4), x(3, 2, order=(1, 0)), 0),
    ("larger-src", x(4, 3), once(2, 3, 4), n(3, 4), 0),
    ("scalar", x(), places(high=1), x(), 0),
    ("empty", x(4, 3), places(0, 3, high=1), n(0, 3), 0),
]:
    along("scatter", name, dim, [a, i, s])
for name, a, i, s, dim in [
    (NAMES[d], x(3, 4, dtype=d), places(2, 4, high=3), x(2, 4, dtype=d), 0)
    for d in FLOATS + (I64, I32, torch.int8)
] + [
    ("last", x64(3, 4), places(3, 6, high=4), x64(3, 6), -1),
    ("transposed", x(4, 3, order=(1, 0)), places(3, 2, high=4), x(2, 3, order=(1, 0)), 1),
    ("larger-src", x(4, 3), places(2, 3, high=4), n(3, 4), 0),
    ("scalar", x(), places(high=1), x(), 0),
    ("empty", x(4, 3), places(0, 3, high=1), n(0, 3), 0),
    ("repeated", x(2), places(6, high=2), x(6), 0),
]:
    along("scatter_add", name, dim, [a, i, s])


for name, a, i, dim in [
    (NAMES[d], x(3, 4, dtype=d), places(5, high=3), 0)
    for d in FLOATS + (I64, I32, torch.int8, BOOL)
] + [
    ("last", x64(2, 3), places(4, high=3), -1),
    ("transposed", x(4, 3, order=(1, 0)), places(2, high=4), 1),
    ("single", x(3, 2), places(high=3), 0),
    ("scalar", x(), places(1, high=1), 0),
    ("none", x(3, 2), places(0, high=1), 0),
    ("middle", x(2, 3, 2), places(5, high=3), 1),
    ("expanded", x(1, 3, expand=(4, 3)), places(2, high=4), 0),
]:
    along("index_select", name, dim, [a, i])
for name, a, i, s, dim, alpha in [
    (NAMES[d], x(3, 4, dtype=d), places(2, high=3), x(2, 4, dtype=d), 0, 1)
    for d in FLOATS + (I64, I32)
] + [
    ("last", x64(2, 3), places(4, high=3), x64(2, 4), -1, 2.5),
    ("transposed", x(4, 3, order=(1, 0)), places(2, high=4), x(3, 2), 1, -1),
    ("none", x(3, 2), places(0, high=1), x(0, 2), 0, 1),
]:
    along("index_add", name, dim, [a, i, s], alpha=alpha)
for name, a, i, pad in [
    (NAMES[d], x(5, 3, dtype=d), places(2, 4, high=5), None) for d in FLOATS
] + [
    ("row", x(5, 3), places(4, high=5), None),
    ("single", x(5, 3), places(high=5), None),
    ("none", x(5, 3), places(0, high=1), None),
    ("padding", x64(3, 2), places(2, 4, high=3), 1),
    ("padding-end", x(3, 2), places(7, high=3), -1),
    ("transposed", x(3, 5, order=(1, 0)), places(2, 2, high=5, order=(1, 0)), 0),
]:
    case(
        "embedding",
        name,
        lambda w, at: F.embedding(at, w, padding_idx=pad),
        [a, i],
        **({} if pad is None else {"padding_idx": pad})
    )
for name, a in [
    (NAMES[d], n(data=[[0, 1, 2], [3, 0, 0]], dtype=d))
    for d in FLOATS + (I64, I32, torch.int8, torch.uint8, BOOL)
] + [
    ("nan", n(data=[NAN, 0.0, -0.0, INF])),
    ("transposed", n(3, 2, dtype=BOOL, order=(1, 0))),
    ("none", n(data=[0.0, 0.0])),
    ("empty", n(0, 3)),
    ("three", n(2, 3, 2, dtype=BOOL)),
]:
    case("nonzero", name, torch.nonzero, [a])
for name, a, m in [
    (NAMES[d], x(2, 3, dtype=d), n(2, 3, dtype=BOOL)) for d in FLOATS + (I64, torch.int8, BOOL)
] + [
    ("broadcast", x64(2, 1, 3), n(2, 1, dtype=BOOL)),
    ("row", x(4, 3), n(3, dtype=BOOL)),
    ("transposed", x(3, 2, order=(1, 0)), n(2, 3, dtype=BOOL)),
    ("none", x(3), n(data=[False, False, False], dtype=BOOL)),
    ("scalar", x(), n(data=True, dtype=BOOL)),
]:
    case("masked_select", name, torch.masked_select, [a, m])


# ---- shapes ----
def same(op, call, args, shape, **options):
    """An operator that moves elements: call(tensor)"""
    for d in FLOATS + (I64, BOOL):
        case(op, "%s-%s" % (args, NAMES[d]), call, [x(*shape, dtype=d)], **options)
    if len(shape) > 1:
        order = tuple(reversed(range(len(shape))))
        case(op, "%s-transposed" % args, call, [x64(*reversed(shape), order=order)], **options)


def sliced(dim, a, b, c):
    return lambda t: t[(slice(None),) * dim + (slice(a, b, c),)]


for dim, a, b, c in (
    (0, 1, 3, 1),
    (1, None, None, 2),
    (1, 1, None, 3),
    (1, -3, -1, 1),
    (0, -9, 9, 2),
    (1, 3, 1, 1),
    (0, 9, 12, 1),
    (1, 0, 5, 4),
):
    same(
        "slice",
        sliced(dim, a, b, c),
        "%s" % [dim, a, b, c].__str__().replace(" ", ""),
        (4, 5),
        dim=dim,
        step=c,
        **{k: v for k, v in (("start", a), ("end", b)) if v is not None}
    )
for o, p, q in ((0, 0, 1), (1, 0, 1), (-1, 0, 1), (2, 0, 1), (0, 1, 0), (5, 0, 1)):
    same(
        "diagonal",
        lambda t: torch.diagonal(t, o, p, q),
        "%d,%d,%d" % (o, p, q),
        (3, 4),
        offset=o,
        dim1=p,
        dim2=q,
    )
same(
    "diagonal", lambda t: torch.diagonal(t, 1, -1, 0), "three", (3, 2, 4), offset=1, dim1=-1, dim2=0
)
for dim, size, step in ((0, 2, 1), (1, 3, 2), (-1, 1, 1), (1, 5, 1), (1, 2, 3)):
    same(
        "unfold",
        lambda t: t.unfold(dim, size, step),
        "%d,%d,%d" % (dim, size, step),
        (3, 5),
        dim=dim,
        window=size,
        step=step,
    )
case("unfold", "scalar", lambda t: t.unfold(0, 1, 1), [x()], dim=0, window=1, step=1)
for name, ts, dim in [
    (NAMES[d], [x(2, 3, dtype=d), x(1, 3, dtype=d), x(2, 3, dtype=d)], 0)
    for d in FLOATS + (I64, torch.int8, BOOL)
] + [
    ("last", [x64(2, 3), x64(2, 1)], -1),
    ("one", [x(2, 3)], 0),
    ("transposed", [x(3, 2, order=(1, 0)), x(2, 2)], 1),
    ("mixed", [x(2), x64(3)], 0),
    ("int-float", [x(2, dtype=I64), x(3)], 0),
    ("empty", [x(0, 3), x(2, 3)], 0),
    ("left-out", [x(0), x(2, 3)], 0),
    ("expanded", [x(1, 3, expand=(2, 3)), x(2, 3)], 0),
    ("middle", [x(2, 1, 3), x(2, 2, 3)], 1),
]:
    case("cat", name, lambda *t: torch.cat(t, dim), ts, dim=dim)
for name, ts, dim in [
    (NAMES[d], [x(2, 3, dtype=d), x(2, 3, dtype=d)], 0) for d in FLOATS + (I64, BOOL)
] + [
    ("last", [x64(2, 3), x64(2, 3)], -1),
    ("scalars", [x(), x(), x()], 0),
    ("transposed", [x(3, 2, order=(1, 0)), x(2, 3)], 1),
    ("empty", [x(0), x(0)], 0),
]:
    case("stack", name, lambda *t: torch.stack(t, dim), ts, dim=dim)
for times in ([2, 1], [1, 3], [2, 1, 2], [1, 1], [0, 2], [3, 2, 1, 2]):
    same("repeat", lambda t: t.repeat(times), row(times), (2, 3), times=times)
case("repeat", "scalar", lambda t: t.repeat(3), [x()], times=[3])
for dims in ([0], [1], [0, 1], [-1]):
    same("flip", lambda t: t.flip(dims), row(dims), (2, 3), dims=dims)
case("flip", "empty", lambda t: t.flip(0), [x(0, 3)], dims=[0])
for shifts, dims in (([1], [0]), ([-2], [1]), ([1, 2], [0, 1]), ([7], [-1]), ([0], [0]), ([2], [])):
    same(
        "roll",
        lambda t: torch.roll(t, shifts, dims),
        row(shifts) + ":" + row(dims),
        (2, 4),
        shifts=shifts,
        dims=dims,
    )
case("roll", "empty", lambda t: torch.roll(t, 1, 0), [x(0, 3)], shifts=[1], dims=[0])
for sizes in ([1, 2], [1, 0, 0, 2], [-1, 2], [0, -1, -1, 0], [0, 0]):
    same("pad", lambda t: F.pad(t, sizes), row(sizes), (3, 4), sizes=sizes)
    case(
        "pad",
        "value-" + row(sizes),
        lambda t: F.pad(t, sizes, value=2.5),
        [x(3, 4)],
        sizes=sizes,
        value=2.5,
    )
for mode in ("reflect", "replicate", "circular"):
    for sizes, shape in (([1, 2], (1, 2, 4)), ([2, 0, 1, 1], (1, 1, 3, 4)), ([1, 1], (2, 3))):
        for d in (F32, F64):
            case(
                "pad",
                "%s-%s-%s" % (mode, row(sizes), NAMES[d]),
                lambda t: F.pad(t, sizes, mode),
                [x(*shape, dtype=d)],
                sizes=sizes,
                mode=mode,
            )
for name, a, k, more in [(NAMES[d], x(1, 2, 3, 4, dtype=d), [2, 2], {}) for d in FLOATS] + [
    ("stride", x(2, 1, 5, 5), [2, 3], dict(stride=[2, 1])),
    ("padding", x64(1, 2, 3, 3), [2, 2], dict(padding=[1, 0])),
    ("dilation", x64(1, 1, 5, 6), [2, 2], dict(dilation=[2, 3])),
    ("all", x(2, 2, 5, 4), [3, 2], dict(stride=[2, 2], padding=[1, 1], dilation=[1, 2])),
    ("unbatched", x(2, 3, 3), [2, 2], {}),
    ("transposed", x(1, 4, 3, 2, order=(0, 3, 2, 1)), [2, 2], {}),
]:
    case(
        "im2col",
        name,
        lambda t: F.unfold(t, tuple(k), **{q: tuple(v) for q, v in more.items()}),
        [a],
        kernel=k,
        **more
    )
for name, a, size, k, more in [
    (NAMES[d], x(1, 8, 6, dtype=d), [3, 4], [2, 2], {}) for d in FLOATS
] + [
    ("stride", x(2, 6, 6), [5, 5], [2, 3], dict(stride=[2, 1])),
    ("padding", x64(1, 8, 8), [3, 3], [2, 2], dict(padding=[1, 0])),
    ("dilation", x64(1, 4, 9), [5, 6], [2, 2], dict(dilation=[2, 3])),
    ("unbatched", x(8, 4), [3, 3], [2, 2], {}),
    ("all", x(2, 12, 6), [5, 4], [3, 2], dict(stride=[2, 2], padding=[1, 1], dilation=[1, 2])),
]:
    case(
        "fold",
        name,
        lambda t: F.fold(t, tuple(size), tuple(k), **{q: tuple(v) for q, v in more.items()}),
        [a],
        output_size=size,
        kernel=k,
        **more
    )


# ---- creation ----
def created(op, name, call, dtype, **options):
    """A tensor of a dtype or of the usual one: call(dtype=...)"""
    given = options if dtype is None else {**options, "dtype": dtype}
    name = "%s-%s" % (name, dtype and NAMES[dtype])
    case(op, name, lambda like: call(dtype=dtype), [None], **given)


for a, b, c in (
    (0, 5, 1),
    (2, 9, 3),
    (5, 0, -2),
    (0, 1, 0.25),
    (1.5, 4, 1),
    (3, 3, 1),
    (-2, 2, 1),
    (0, -3, -0.5),
):
    for d in (None, F32, F64, F16, I64, I32):
        if d is None or d.is_floating_point or (a == int(a) and c == int(c)):
            name, call = "%g,%g,%g" % (a, b, c), partial(torch.arange, a, b, c)
            created("arange", name, call, d, start=a, end=b, step=c)
case("arange", "like", lambda like: torch.arange(3), [n(2)], start=0, end=3)
for a, b, c in ((0, 1, 5), (-3, 3, 7), (2, 2, 1), (5, -1, 4), (0, 1, 0), (1, 2, 2), (0.1, 0.7, 13)):
    for d in (None, F32, F64, F16):
        name, call = "%g,%g,%d" % (a, b, c), partial(torch.linspace, a, b, c)
        created("linspace", name, call, d, start=a, end=b, steps=c)
for a, b in ((3, None), (2, 4), (4, 2), (0, 3), (1, 1)):
    for d in (None, F64, I64, BOOL):
        sizes = {"n": a} if b is None else {"n": a, "m": b}
        created("eye", "%s,%s" % (a, b), partial(torch.eye, *sizes.values()), d, **sizes)
for name, a, c in (
    ("inferred", places(2, 3, high=4), -1),
    ("given", places(5, high=3), 6),
    ("single", places(high=3), 4),
    ("empty", places(0, 2, high=1), 3),
):
    case("one_hot", name, lambda t: F.one_hot(t, c), [a], classes=c)
for op in ("tril", "triu"):
    for k in (0, 1, -1, 3, -4):
        same(op, lambda t: getattr(torch, op)(t, k), str(k), (3, 4), diagonal=k)
    case(op, "batch", getattr(torch, op), [x(2, 3, 3)])
    case(op, "nan", getattr(torch, op), [x(data=[[NAN, NAN], [INF, NAN]])])


# ---- products ----
for d in FLOATS + (I64,):
    m = NAMES[d]
    case("outer", m, torch.outer, [x(3, dtype=d), x(4, dtype=d)])
    case("dot", m, torch.dot, [x(4, dtype=d), x(4, dtype=d)])
    case("mv", m, torch.mv, [x(3, 4, dtype=d), x(4, dtype=d)])
    case("addmm", m, torch.addmm, [x(2, 3, dtype=d), x(2, 4, dtype=d), x(4, 3, dtype=d)])
    case(
        "baddbmm", m, torch.baddbmm, [x(2, 2, 3, dtype=d), x(2, 2, 4, dtype=d), x(2, 4, 3, dtype=d)]
    )
case("outer", "mixed", torch.outer, [x(3), x64(4)])
case("outer", "empty", torch.outer, [x(0), x(4)])
case("dot", "empty", torch.dot, [x(0), x(0)])
case("dot", "expanded", torch.dot, [x(1, expand=(3,)), x(3)])
case("mv", "transposed", torch.mv, [x(3, 4, order=(1, 0)), x(3)])
case("mv", "empty", torch.mv, [x(2, 0), x(0)])
for b, a in ((0.5, 2.0), (0, 1.5), (1, 0)):
    case(
        "addmm",
        "%g-%g" % (b, a),
        lambda t, p, q: torch.addmm(t, p, q, beta=b, alpha=a),
        [x(3) if b else n(3), x(4, 2, order=(1, 0)), x(4, 3)],
        beta=b,
        alpha=a,
    )
    case(
        "baddbmm",
        "%g-%g" % (b, a),
        lambda t, p, q: torch.baddbmm(t, p, q, beta=b, alpha=a),
        [x64(2, 1) if b else n(2, 1, dtype=F64), x64(2, 2, 4), x64(2, 4, 3)],
        beta=b,
        alpha=a,
    )
case(
    "addmm",
    "nan",
    lambda t, p, q: torch.addmm(t, p, q, beta=0),
    [n(data=[NAN, 1.0, INF]), x(2, 4), x(4, 3)],
    beta=0,
)
for name, shape, bias, d in (
    ("f32", (2,), True, F32),
    ("f64", (2, 3), True, F64),
    ("f16", (2,), False, F16),
    ("none", (3,), False, F64),
    ("vectors", (), True, F32),
    ("empty", (0,), True, F32),
):
    case(
        "bilinear",
        name,
        F.bilinear,
        [
            x(*shape, 3, dtype=d),
            x(*shape, 2, dtype=d),
            x(4, 3, 2, dtype=d),
            x(4, dtype=d) if bias else None,
        ],
    )
for eq, shapes in (
    ("ij,jk->ik", ((2, 3), (3, 4))),
    ("bij,bjk->bik", ((2, 2, 3), (2, 3, 2))),
    ("ii->", ((3, 3),)),
    ("ii->i", ((3, 3),)),
    ("ij->ji", ((2, 3),)),
    ("ij->", ((2, 3),)),
    ("i,j->ij", ((2,), (3,))),
    ("i,i->", ((3,), (3,))),
    ("i,i->i", ((3,), (3,))),
    ("bn,anm,bm->ba", ((2, 3), (4, 3, 2), (2, 2))),
    ("ij,jk,kl->il", ((2, 3), (3, 2), (2, 4))),
    ("ij,jk", ((2, 3), (3, 4))),
    ("ba", ((2, 3),)),
    ("ijk,k->ji", ((2, 3, 4), (4,))),
    ("ij,kl->", ((2, 3), (2, 2))),
    ("bqhd,bkhd->bhqk", ((1, 2, 2, 3), (1, 3, 2, 3))),
    ("ij,ij->j", ((0, 3), (0, 3))),
    (",i->i", ((), (3,))),
    ("iij,j->i", ((2, 2, 3), (3,))),
    ("ij,i->ij", ((2, 3), (2,))),
    ("aB,Bc", ((2, 3), (3, 2))),
):
    for d in (F32, F64):
        case(
            "einsum",
            "%s-%s" % (eq, NAMES[d]),
            lambda *t: torch.einsum(eq, *t),
            [x(*s, dtype=d) for s in shapes],
            equation=eq,
        )
case(
    "einsum",
    "ints",
    lambda *t: torch.einsum("ij,jk->k", *t),
    [n(2, 3, dtype=I64), n(3, 2, dtype=I64)],
    equation="ij,jk->k",
)
case(
    "einsum",
    "transposed",
    lambda *t: torch.einsum("ij,jk->ki", *t),
    [x(3, 2, order=(1, 0)), x(2, 3, order=(1, 0))],
    equation="ij,jk->ki",
)


# ---- whole tensors; new cases come at the end, so that the random values above do not change ----
unary("clone", torch.clone)
case("clone", "bool", torch.clone, [n(3, dtype=BOOL)])
case("clone", "c64", torch.clone, [x(2, 3, dtype=C64)])


def filled(shape, value, dtype):  # of integers PyTorch would make integers
    return torch.full(shape, value, dtype=dtype or F32)


for shape, v in (((2, 3), 1.5), ((), -2.0), ((0, 2), 1.0), ((4,), INF)):
    for d in (
        (None, F32, F64, F16, BF16) + ((I64, I32, BOOL) if v != 1.5 else ())
        if v != INF
        else (None, F64)
    ):
        created("full", row(shape), partial(filled, shape, v), d, shape=shape, value=v)
case("full", "like", lambda like: torch.full((2,), 0.25), [n(3)], shape=(2,), value=0.25)


def put(name, a, values, indices, add):
    case(
        "index_put",
        name,
        lambda t, v, *at: torch.index_put(t, at, v, accumulate=add),
        [a, values] + indices,
        **({"accumulate": True} if add else {})
    )


def at(data, **more):
    return n(data=data, dtype=I64, **more)


for add in (False, True):
    name = "add-" if add else ""
    for d in FLOATS + (I64, I32) + (() if add else (BOOL, torch.int8)):
        put(name + NAMES[d], x(3, 4, dtype=d), x(3, dtype=d), [at([0, -1, 1]), at([3, 0, -4])], add)
    put(name + "rows", x64(4, 3), x64(2, 3), [at([2, -4])], add)
    put(name + "row-broadcast", x(4, 3, 2), x(2), [at([1, 3])], add)
    put(name + "number", x(4, 3), x(), [at([1, 3]), at([0, 2])], add)
    put(name + "together", x64(4, 3, 2), x64(2, 3, 2), [at([[1], [3]]), at([0, -1, 1])], add)
    put(name + "transposed", x(3, 4, order=(1, 0)), x(3, 2, order=(1, 0)), [at([3, 0])], add)
    put(name + "expanded", x(1, 3, expand=(4, 3)), x(1, 3, expand=(2, 3)), [at([1, 2])], add)
    put(name + "single", x(3, 2), x(2), [at(-1)], add)
    put(name + "none", x(3, 2), n(0, 2), [n(0, dtype=I64)], add)
    put(name + "no-elements", x(0, 2), n(0, 2), [n(0, dtype=I64)], add)
    put(name + "no-rest", n(3, 0), n(2, 0), [at([0, -1])], add)
    put(name + "three", x(2, 3, 2), x(2), [at([0, 1]), at(2), at([-1, 0])], add)
put("add-repeated", x64(3, 2), x64(4, 2), [at([0, 2, 0, -3])], True)

print("end")

# Dimensions under "...", and sizes of 1 that broadcast.
for eq, shapes in (
    ("...i->i", ((2, 3, 4),)),
    ("...ij,jk", ((2, 3, 4), (4, 2))),
    ("...i,...i->...", ((2, 1, 4), (3, 4))),
    ("...ij,...jk->...ik", ((2, 1, 2, 3), (3, 3, 2))),
    ("i...i->...", ((3, 2, 3),)),
    ("...,...", ((), (2, 3))),
    ("b...,...b", ((2, 3), (3, 2))),
    ("Zi...,k...i", ((2, 3, 4), (2, 4, 3))),
    ("ij->...ij", ((2, 3),)),
    ("...,...,i...->i", ((3,), (2, 1), (2, 2, 3))),
    ("...->", ((2, 3),)),
    ("i...->...", ((2, 0),)),
    ("ij...->...ji", ((2, 3, 2, 2),)),
    ("i,i", ((1,), (3,))),
    ("ij,j->i", ((2, 1), (3,))),
    ("ij,jk->k", ((2, 1), (3, 4))),
    ("ii,i->i", ((1, 1), (3,))),
):
    for d in (F32, F64):
        case(
            "einsum",
            "%s-%s" % (eq, NAMES[d]),
            lambda *t: torch.einsum(eq, *t),
            [x(*s, dtype=d) for s in shapes],
            equation=eq,
        )
# topk of a tensor without dimensions returns its element, even with k = 0
for down in (False, True):
    case(
        "topk",
        "none-of-a-number" + "-small" * down,
        lambda t: both(torch.topk(t, 0, -1, not down)),
        [x64(data=2.5)],
        k=0,
        dim=-1,
        largest=not down,
    )
case("topk", "none-of-an-int", lambda t: both(torch.topk(t, 0)), [n(data=7, dtype=I64)], k=0)
