#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Indices, searches:  PYTHON-WITH-TORCH make_index.py > index.txt
from cases import *


def far(*shape, dtype=F32, grad=True, step=0.25, **more):
    """Numbers of which no two are equal, and none is 0."""
    count = math.prod(shape)
    data = ((torch.randperm(count).to(F64) - count // 2) * step + step / 2).reshape(shape).tolist()
    return x(dtype=dtype, grad=grad, data=data, **more)


def elsewhere(*shape, **more):
    """Like far(), and none is equal to a number of far().

    Without include_self PyTorch's gradient of amax and amin counts an element of x that equals
    the result.
    """
    return far(*shape, step=0.5, **more)


# ---- int32 indices: the same results as with int64 ----
for name, op, call, tensors, options in [
    (
        "gather",
        "gather",
        lambda t, at: torch.gather(t, 1, at),
        [x(3, 4), places(3, 2, high=4, dtype=I32)],
        {"dim": 1},
    ),
    (
        "gather-f64",
        "gather",
        lambda t, at: torch.gather(t, 0, at),
        [x64(3, 4), places(2, 4, high=3, dtype=I32)],
        {"dim": 0},
    ),
    (
        "index_select",
        "index_select",
        lambda t, at: torch.index_select(t, 0, at),
        [x(3, 4), places(5, high=3, dtype=I32)],
        {"dim": 0},
    ),
    (
        "scatter_add",
        "scatter_add",
        lambda t, at, s: torch.scatter_add(t, 0, at, s),
        [x(3, 4), places(2, 4, high=3, dtype=I32), x(2, 4)],
        {"dim": 0},
    ),
    (
        "index_add",
        "index_add",
        lambda t, at, s: torch.index_add(t, 0, at, s),
        [x(3, 4), places(2, high=3, dtype=I32), x(2, 4)],
        {"dim": 0},
    ),
    (
        "index_put",
        "index_put",
        lambda t, v, at: torch.index_put(t, (at,), v, True),
        [x(3, 4), x(4), places(2, high=3, dtype=I32)],
        {"accumulate": True},
    ),
    (
        "embedding",
        "embedding",
        lambda w, at: torch.nn.functional.embedding(at, w),
        [x(5, 3), places(2, 4, high=5, dtype=I32)],
        {},
    ),
]:
    Case(name + "/int32", op, call, tensors, **options)
case(
    "nll_loss",
    "uint8",
    lambda t, at: torch.nn.functional.nll_loss(t, at),
    [x(4, 3), places(4, high=3, dtype=U8)],
)


# ---- scatter_reduce, index_reduce ----
def reduced(op, name, dim, inputs, reduce, own):
    name = "%s-%s%s" % (reduce, name, "" if own else "-without")
    along(op, name, dim, inputs, reduce=reduce, include_self=own)


for reduce in ("sum", "prod", "mean", "amax", "amin"):
    for own in (True, False):
        for name, a, i, s, dim in [
            (NAMES[d], elsewhere(3, 4, dtype=d), places(5, 4, high=3), far(5, 4, dtype=d), 0)
            for d in (F32, F64)
        ] + [
            ("last", elsewhere(3, 4, dtype=F64), places(3, 6, high=4), far(3, 6, dtype=F64), -1),
            (
                "transposed",
                elsewhere(4, 3, order=(1, 0)),
                places(3, 2, high=4),
                far(2, 3, order=(1, 0)),
                1,
            ),
            (
                "larger-src",
                elsewhere(4, 3, grad=False),
                places(2, 3, high=4),
                far(3, 4, grad=False),
                0,
            ),
            ("row", elsewhere(3), places(9, high=3), far(9), 0),
            ("int32-index", elsewhere(3), places(9, high=3, dtype=I32), far(9), 0),
            ("expanded", elsewhere(3, 1, expand=(3, 4)), places(2, 4, high=3), far(2, 4), 0),
            ("middle", elsewhere(2, 3, 2), places(2, 5, 2, high=3), far(2, 5, 2), 1),
            ("scalar", elsewhere(), places(high=1), far(), 0),
            ("empty", elsewhere(4, 3), places(0, 3, high=1), n(0, 3), 0),
            (
                "zeros",
                x64(data=[0.0, 0.0, 2.0, 3.0]),
                n(data=[0, 1, 1, 2, 2, 3, 3], dtype=I64),
                x64(data=[2.0, 0.0, 3.0, 0.0, 5.0, 0.0, 0.0]),
                0,
            ),
            (
                "ties",
                x(data=[1.0, 2.0, 3.0]),
                n(data=[0, 0, 1, 1, 1], dtype=I64),
                x(data=[1.0, 1.0, 2.5, 2.5, 0.0]),
                0,
            ),
            (
                "nan",
                n(data=[1.0, NAN, -INF, INF]),
                n(data=[0, 0, 1, 2, 3, 3], dtype=I64),
                n(data=[NAN, 2.0, 3.0, 4.0, INF, -1.0]),
                0,
            ),
        ]:
            if own or reduce[:2] != "am" or name not in ("ties", "zeros"):
                reduced("scatter_reduce", name, dim, [a, i, s], reduce, own)
        for d in (F16, BF16, I64, I32, I8, U8) + ((BOOL,) if reduce != "mean" else ()):
            ins = [n(4, 3, dtype=d, low=0), places(4, 3, high=4), n(4, 3, dtype=d, low=0)]
            reduced("scatter_reduce", NAMES[d], 0, ins, reduce, own)
        if reduce != "sum":
            for name, a, i, s, dim in [
                (NAMES[d], elsewhere(3, 4, dtype=d), places(5, high=3), far(5, 4, dtype=d), 0)
                for d in (F32, F64)
            ] + [
                ("last", elsewhere(3, 4, dtype=F64), places(6, high=4), far(3, 6, dtype=F64), -1),
                ("ints", n(3, 2, dtype=I64), places(4, high=3), n(4, 2, dtype=I64), 0),
                ("none", elsewhere(3, 2), places(0, high=1), n(0, 2), 0),
            ]:
                reduced("index_reduce", name, dim, [a, i, s], reduce, own)

# ---- index_copy, index_fill, masked_scatter, take, put ----
for name, a, i, s, dim in [
    (NAMES[d], x(4, 3, dtype=d), n(data=[2, 0], dtype=I64), x(2, 3, dtype=d), 0)
    for d in FLOATS + (I64, I8, BOOL, C64)
] + [
    ("last", x64(2, 3), n(data=[2, 0], dtype=I64), x64(2, 2), -1),
    ("transposed", x(3, 4, order=(1, 0)), n(data=[1], dtype=I64), x(1, 3), 0),
    ("none", x(3, 2), places(0, high=1), n(0, 2), 0),
]:
    along("index_copy", name, dim, [a, i, s])
for name, a, i, dim, value in [
    (NAMES[d], x(4, 3, dtype=d), n(data=[2, 0, 2], dtype=I64), 0, 1)
    for d in FLOATS + (I64, I8, BOOL, C64)
] + [
    ("negative", x64(2, 3), n(data=[-1, 0], dtype=I64), -1, 0.5),
    ("transposed", x(3, 4, order=(1, 0)), n(data=[1], dtype=I64), 0, NAN),
    ("none", x(3, 2), places(0, high=1), 0, 7),
    ("scalar", x(), n(data=[0], dtype=I64), 0, 3),
]:
    along("index_fill", name, dim, [a, i], value=value)
for name, a, m, s in [
    (NAMES[d], x(2, 3, dtype=d), n(2, 3, dtype=BOOL), x(7, dtype=d))
    for d in FLOATS + (I64, I8, BOOL, C64)
] + [
    ("broadcast", x64(2, 3), n(3, dtype=BOOL), x64(3, 3)),
    ("transposed", x(3, 2, order=(1, 0)), n(2, 3, dtype=BOOL), x(3, 2, order=(1, 0))),
    ("none", x(3), n(data=[False, False, False], dtype=BOOL), n(0)),
    ("nan", n(data=[1.0, NAN]), n(data=[True, False], dtype=BOOL), n(data=[NAN])),
]:
    case("masked_scatter", name, torch.masked_scatter, [a, m, s])
for name, a, i in [
    (NAMES[d], x(3, 4, dtype=d), n(data=[[11, 0], [-1, 5], [5, -12]], dtype=I64))
    for d in FLOATS + (I64, I8, BOOL, C64)
] + [
    ("transposed", x(3, 4, order=(1, 0)), places(2, 3, high=12, order=(1, 0))),
    ("scalar", x(3), places(high=3)),
    ("none", x(3, 4), places(0, 2, high=1)),
]:
    case("take", name, torch.take, [a, i])
for add in (False, True):
    for name, a, i, s in [
        (NAMES[d], x(3, 4, dtype=d), n(data=[[11, 0], [-2, 5]], dtype=I64), x(2, 2, dtype=d))
        for d in FLOATS + (I64, I8, C64)
    ] + [
        ("transposed", x(3, 4, order=(1, 0)), n(data=[1, 7], dtype=I64), x(2)),
        ("none", x(3, 4), places(0, high=1), n(0)),
    ]:
        case(
            "put",
            "%s%s" % (name, "-add" * add),
            lambda t, at, src: torch.Tensor.put(t, at, src, accumulate=add),
            [a, i, s],
            accumulate=add,
        )
case(
    "put",
    "repeated-add",
    lambda t, at, src: torch.Tensor.put(t, at, src, accumulate=True),
    [x(3), places(7, high=3), x(7)],
    accumulate=True,
)

# ---- repeat_interleave, diag_embed ----
for name, a, r, dim in [
    (NAMES[d], x(3, 2, dtype=d), n(data=[2, 0, 3], dtype=I64), 0)
    for d in FLOATS + (I64, I8, BOOL, C64)
] + [
    ("int32", x(3, 2), n(data=[1, 2, 1], dtype=I32), 0),
    ("last", x64(2, 3), n(data=[1, 2, 0], dtype=I64), -1),
    ("flat", x(2, 2), n(data=[1, 2, 0, 1], dtype=I64), None),
    ("one", x(3, 2), n(data=[2], dtype=I64), 0),
    ("one-scalar", x(3, 2), n(data=2, dtype=I64), 1),
    ("transposed", x(3, 2, order=(1, 0)), n(data=[2, 1], dtype=I64), 0),
    ("nothing", x(2, 2), n(data=[0, 0], dtype=I64), 0),
    ("empty", x(0, 2), n(0, dtype=I64), 0),
    ("scalar", x(), n(data=[3], dtype=I64), None),
]:
    case(
        "repeat_interleave",
        name,
        lambda t, k: torch.repeat_interleave(t, k, dim),
        [a, r],
        **({} if dim is None else {"dim": dim})
    )
case(
    "repeat_interleave",
    "size",
    lambda t, k: torch.repeat_interleave(t, k, 0, output_size=4),
    [x(3, 2), n(data=[1, 2, 1], dtype=I64)],
    dim=0,
    output_size=4,
)
for name, a, r, dim in [
    (NAMES[d], x(3, 2, dtype=d), 2, 0) for d in FLOATS + (I64, I8, BOOL, C64)
] + [
    ("last", x64(2, 3), 3, -1),
    ("flat", x(2, 2), 2, None),
    ("transposed", x(3, 2, order=(1, 0)), 2, 1),
    ("nothing", x(2, 2), 0, 0),
    ("empty", x(0, 2), 3, 0),
    ("scalar", x(), 3, None),
]:
    case(
        "repeat_interleave_scalar",
        name,
        lambda t: torch.repeat_interleave(t, r, dim),
        [a],
        repeats=r,
        **({} if dim is None else {"dim": dim})
    )
for name, a, offset, p, q in [
    (NAMES[d], x(2, 3, dtype=d), 0, -2, -1) for d in FLOATS + (I64, I8, BOOL, C64)
] + [
    ("above", x64(2, 3), 2, -2, -1),
    ("below", x(3), -1, 0, 1),
    ("dims", x(2, 3), 1, 0, 2),
    ("turned", x(2, 3), -2, -1, 0),
    ("transposed", x(3, 2, order=(1, 0)), 0, 1, 2),
    ("one", x(1), 0, 0, 1),
    ("nan", n(data=[NAN, 1.0]), 0, 0, 1),
    ("empty", x(2, 0), 1, -2, -1),
]:
    case(
        "diag_embed",
        name,
        lambda t: torch.diag_embed(t, offset, p, q),
        [a],
        offset=offset,
        dim1=p,
        dim2=q,
    )

# ---- searches ----
for right in (False, True):
    for name, a, v in [
        (NAMES[d], n(data=[-1, 0, 0, 1, 3], dtype=d), n(data=[[-2, 0, 3], [1, 4, 2]], dtype=d))
        for d in FLOATS + (I64, I32, I8)
    ] + [
        ("u8", n(data=[1, 3, 200], dtype=U8), n(data=[0, 3, 255, 4], dtype=U8)),
        ("rows", n(data=[[1.0, 3.0, 5.0], [0.0, 0.0, 9.0]]), n(data=[[3.0, 6.0], [0.0, -1.0]])),
        ("nan", n(data=[-INF, 1.0, INF]), n(data=[NAN, INF, -INF, 0.0])),
        ("transposed", n(data=[1.0, 2.0, 3.0]), n(3, 2, order=(1, 0))),
        ("expanded", n(data=[1.0, 2.0, 3.0]), n(2, 1, expand=(2, 3))),
        ("no-boundaries", n(0), n(3)),
        ("no-values", n(data=[1.0, 2.0]), n(0, 2)),
        ("scalar", n(data=[1.0, 2.0], dtype=F64), n(data=1.0, dtype=F64)),
        ("three", n(data=[[[1.0, 2.0]], [[0.0, 5.0]]]), n(2, 1, 3)),
    ]:
        case(
            "searchsorted",
            "%s%s" % (name, "-right" * right),
            lambda s, t, o: torch.searchsorted(s, t, right=right),
            [a, v, None],
            right=right,
        )
        if name not in ("rows", "three"):
            case(
                "bucketize",
                "%s%s" % (name, "-right" * right),
                lambda t, s: torch.bucketize(t, s, right=right),
                [v, a],
                right=right,
            )
    case(
        "searchsorted",
        "sorter" + "-right" * right,
        lambda s, t, o: torch.searchsorted(s, t, sorter=o, right=right),
        [n(data=[3.0, 1.0, 2.0]), n(data=[0.0, 2.0, 9.0]), n(data=[1, 2, 0], dtype=I64)],
        right=right,
    )
    case(
        "searchsorted",
        "narrow" + "-right" * right,
        lambda s, t, o: torch.searchsorted(s, t, out_int32=True, right=right),
        [n(data=[1.0, 2.0]), n(3, 2), None],
        right=right,
        out_int32=True,
    )
    case(
        "bucketize",
        "narrow" + "-right" * right,
        lambda t, s: torch.bucketize(t, s, out_int32=True, right=right),
        [n(3, 2), n(data=[1.0, 2.0])],
        right=right,
        out_int32=True,
    )
case(
    "searchsorted",
    "side",
    lambda s, t, o: torch.searchsorted(s, t, side="right"),
    [n(data=[1.0, 1.0, 2.0]), n(data=[1.0, 2.0]), None],
    side="right",
)
for invert in (False, True):
    for name, a, t in [
        (NAMES[d], n(3, 4, dtype=d), n(5, dtype=d)) for d in (F32, F64, I64, I32, I8)
    ] + [
        ("nan", n(data=[NAN, 1.0, INF]), n(data=[NAN, INF])),
        ("mixed", n(3, 4, dtype=I64), n(data=[1.0, 2.5])),
        ("none", n(3), n(0)),
        ("empty", n(0, 2), n(3)),
        ("transposed", n(3, 2, dtype=I64, order=(1, 0)), n(2, 2, dtype=I64)),
        ("scalar", n(data=2, dtype=I64), n(data=[1, 2], dtype=I64)),
    ]:
        case(
            "isin",
            "%s%s" % (name, "-invert" * invert),
            lambda e, t: torch.isin(e, t, invert=invert),
            [a, t],
            invert=invert,
        )


# ---- what is refused, by PyTorch as well ----
def t(*data, dtype=F32):
    return torch.tensor(data, dtype=dtype)


def refused_along(op, name, dim, *tensors, **options):
    call = getattr(torch, op)

    def function(t, *rest):
        return call(t, dim, *rest, **options)

    refused("%s-%s" % (op, name), op, function, *tensors, dim=dim, **options)


one, two, at = torch.ones(3), torch.ones(2, 3), t(0, 2, dtype=I64)
for name, index, src, dim, reduce in (
    ("reduce", at, one, 0, "median"),
    ("high", t(3, dtype=I64), one, 0, "prod"),
    ("low", t(-1, dtype=I64), one, 0, "amax"),
    ("dim", at, one, 1, "amin"),
    ("small-src", at, one[:1], 0, "prod"),
    ("rank", at[None], one, 0, "amax"),
    ("dtype", at, one.double(), 0, "amax"),
    ("float-index", at.float(), one, 0, "sum"),
):
    refused_along("scatter_reduce", name, dim, one, index, src, reduce=reduce)
for name, index, src, dim, reduce in (
    ("reduce", at, one[:2], 0, "sum"),
    ("high", t(3, dtype=I64), one[:1], 0, "prod"),
    ("length", at, one, 0, "amax"),
    ("rank", at[None], one[:2], 0, "mean"),
):
    refused_along("index_reduce", name, dim, one, index, src, reduce=reduce)
for name, index, src, dim in (
    ("high", t(3, dtype=I64), one[:1], 0),
    ("low", t(-1, dtype=I64), one[:1], 0),
    ("length", at, one, 0),
    ("dim", at, one[:2], 2),
    ("dtype", at, one[:2].double(), 0),
):
    refused_along("index_copy", name, dim, one, index, src)
for name, index, dim in (
    ("high", t(3, dtype=I64), 0),
    ("low", t(-4, dtype=I64), 0),
    ("dim", at, 1),
    ("rank", at[None], 0),
    ("float-index", at.float(), 0),
):
    refused_along("index_fill", name, dim, one, index, value=1)
for name, mask, src in (
    ("few", one > 0, one[:2]),
    ("shape", t(1, 0) > 0, one),
    ("dtype", one > 0, one.double()),
    ("mask", one, one),
    ("none", one > 0, one[:0]),
):
    refused("masked_scatter-" + name, "masked_scatter", torch.masked_scatter, one, mask, src)
for name, x0, index in (
    ("high", one, t(3, dtype=I64)),
    ("low", one, t(-4, dtype=I64)),
    ("nothing", one[:0], t(0, dtype=I64)),
    ("float-index", one, at.float()),
):
    refused("take-" + name, "take", torch.take, x0, index)
for name, index, src in (
    ("high", t(3, dtype=I64), one[:1]),
    ("low", t(-4, dtype=I64), one[:1]),
    ("count", at, one),
    ("dtype", at, one[:2].double()),
):
    refused("put-" + name, "put", torch.Tensor.put, one, index, src)
for name, repeats, options in (
    ("negative", t(1, -1, 2, dtype=I64), {"dim": 0}),
    ("length", at, {"dim": 0}),
    ("rank", at[None], {"dim": 0}),
    ("dim", at, {"dim": 1}),
    ("float", one, {"dim": 0}),
):
    refused(
        "repeat_interleave-" + name,
        "repeat_interleave",
        lambda x, r: torch.repeat_interleave(x, r, **options),
        one,
        repeats,
        **options
    )
refused(
    "repeat_interleave_scalar-negative",
    "repeat_interleave_scalar",
    lambda x: torch.repeat_interleave(x, -1),
    one,
    repeats=-1,
)
for name, p, q in (("equal", 0, 0), ("equal-dims", 0, -2), ("dim", 0, 2)):
    refused(
        "diag_embed-" + name,
        "diag_embed",
        lambda x: torch.diag_embed(x, 0, p, q),
        one,
        dim1=p,
        dim2=q,
    )
for name, rows, v, options in (
    ("shape", two, torch.ones(3, 3), {}),
    ("rank", two, one, {}),
    ("scalar", torch.tensor(1.0), one, {}),
    ("side", one, one, {"side": "middle"}),
    ("opposite", one, one, {"side": "left", "right": True}),
):
    refused(
        "searchsorted-" + name,
        "searchsorted",
        lambda a, b, c: torch.searchsorted(a, b, **options),
        rows,
        v,
        None,
        **options
    )
refused(
    "searchsorted-sorter",
    "searchsorted",
    lambda a, b, c: torch.searchsorted(a, b, sorter=c),
    one,
    one,
    at,
)
refused(
    "searchsorted-sorter-high",
    "searchsorted",
    lambda a, b, c: torch.searchsorted(a, b, sorter=c),
    one,
    one,
    t(0, 1, 3, dtype=I64),
)
refused("bucketize-rank", "bucketize", torch.bucketize, one, two)
refused("isin-complex", "isin", torch.isin, one.to(C64), one.to(C64))
refused("unique-dim", "unique", lambda x: torch.unique(x, dim=1), one, dim=1)
refused("unique-nothing", "unique", lambda x: torch.unique(x, dim=0), torch.ones(2, 0), dim=0)
refused(
    "unique_consecutive-dim",
    "unique_consecutive",
    lambda x: torch.unique_consecutive(x, dim=1),
    one,
    dim=1,
)
refused("bincount-negative", "bincount", torch.bincount, t(1, -1, dtype=I64), None)
refused("bincount-rank", "bincount", torch.bincount, t([1], [2], dtype=I64), None)
refused("bincount-float", "bincount", torch.bincount, one, None)
refused("bincount-weights", "bincount", torch.bincount, at, one)
refused(
    "bincount-least", "bincount", lambda x, w: torch.bincount(x, None, -1), at, None, minlength=-1
)
for name, bins, low, high in (
    ("bins", 0, 0.0, 1.0),
    ("order", 2, 1.0, 0.0),
    ("infinite", 2, 0.0, float("inf")),
):
    refused(
        "histc-" + name,
        "histc",
        lambda x: torch.histc(x, bins, low, high),
        one,
        bins=bins,
        min=low,
        max=high,
    )
refused("histc-values", "histc", lambda x: torch.histc(x, 2), t(1.0, float("inf")), bins=2)


# ---- tables of integers, bool and complex numbers ----
for d in (I64, I32, I8, U8, BOOL, C64, C128):
    case(
        "embedding",
        "table-" + NAMES[d],
        lambda w, at: torch.nn.functional.embedding(at, w),
        [n(5, 3, dtype=d), places(2, 4, high=5)],
    )
