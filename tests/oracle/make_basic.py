#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Basic operators: arithmetic, exp and log, reduction, shape, softmax, linear, cross entropy:
#   PYTHON-WITH-TORCH make_basic.py > basic.txt
from cases import *

binary("add", lambda a, b: torch.add(a, b))
Case("add/alpha", "add", lambda a, b: torch.add(a, b, alpha=2.5), [x(2, 3), x(3)], alpha=2.5)
Case("add/bools", "add", torch.add, [n(4, dtype=BOOL), n(4, dtype=BOOL)])
for v in (0, 2, -1):
    Case(
        "add/bools-%d" % v,
        "add",
        lambda a, b: torch.add(a, b, alpha=v),
        [
            n(data=[False, False, True, True], dtype=BOOL),
            n(data=[False, True, False, True], dtype=BOOL),
        ],
        alpha=v,
    )
Case("add/bool-float", "add", torch.add, [n(4, dtype=BOOL), x(4)])
binary("sub", lambda a, b: torch.sub(a, b))
Case("sub/alpha", "sub", lambda a, b: torch.sub(a, b, alpha=-0.5), [x(2, 3), x(3)], alpha=-0.5)
binary("mul", torch.mul)
binary("div", torch.div, second=dict(positive=True))
binary("maximum", torch.maximum)
Case(
    "maximum/ties",
    "maximum",
    torch.maximum,
    [x(data=[1.0, 2.0, 3.0, -0.0]), x(data=[1.0, 3.0, 2.0, 0.0])],
)
Case(
    "maximum/nan",
    "maximum",
    torch.maximum,
    [n(data=[1.0, float("nan"), 3.0]), n(data=[float("nan"), 2.0, float("inf")])],
)

unary("neg", torch.neg)
unary("exp", torch.exp)
unary("log", torch.log, positive=True)
unary("sqrt", torch.sqrt, positive=True)
unary("sigmoid", torch.sigmoid)
unary("relu", torch.relu)
Case("relu/edges", "relu", torch.relu, [x(data=[-0.0, 0.0, 1e-30, -1e-30, float("inf")])])
Case("sigmoid/edges", "sigmoid", torch.sigmoid, [x(data=[-100.0, 100.0, -20.0, 20.0, 0.0])])
unary("copy", torch.clone)
for v in (2.0, 0.5, -3.0):
    Case("add_scalar/%g" % v, "add_scalar", lambda a: torch.add(a, v), [x(2, 3)], value=v)
    Case(
        "mul_scalar/%g" % v,
        "mul_scalar",
        lambda a: torch.mul(a, v),
        [x(2, 3, order=(1, 0))],
        value=v,
    )
Case("add_scalar/ints", "add_scalar", lambda a: a + 2, [n(4, dtype=I64)], value=2)
Case("add_scalar/ints-to-float", "add_scalar", lambda a: a + 0.5, [n(4, dtype=I64)], value=0.5)
Case("mul_scalar/ints", "mul_scalar", lambda a: a * 3, [n(4, dtype=I32)], value=3)
Case("mul_scalar/ints-to-float", "mul_scalar", lambda a: a * 0.25, [n(4, dtype=I32)], value=0.25)
Case(
    "relu_grad/plain",
    "relu_grad",
    lambda g, y: torch.where(y > 0, g, torch.zeros_like(g)),
    [x(2, 3), n(2, 3)],
)

for dtype in (F64, F16, I64, I32, BOOL):
    Case(
        "cast/f32-" + NAMES[dtype], "cast", lambda a: a.to(dtype), [x(2, 3, dtype=F32)], dtype=dtype
    )
Case("cast/i64-f32", "cast", lambda a: a.to(F32), [n(2, 3, dtype=I64)], dtype=F32)
Case("cast/f64-bf16", "cast", lambda a: a.to(BF16), [x(2, 3, dtype=F64)], dtype=BF16)
Case("cast/transposed", "cast", lambda a: a.to(F64), [x(2, 3, order=(1, 0))], dtype=F64)
Case("cast/same", "cast", lambda a: a.to(F32), [x(2, 3)], dtype=F32)
Case("fill/f32", "fill", lambda a: torch.full_like(a, 1.5), [n(2, 3)], value=1.5)
Case("fill/i64", "fill", lambda a: torch.full_like(a, -2), [n(3, dtype=I64)], value=-2)
Case("fill/empty", "fill", lambda a: torch.full_like(a, 1), [n(0, 2)], value=1)

for op, function in (("sum", torch.sum), ("mean", torch.mean), ("amax", torch.amax)):

    def reduce(name, t, dims, keepdim=False):
        Case(
            "%s/%s" % (op, name),
            op,
            lambda a: function(a, dim=dims if dims else tuple(range(a.dim())), keepdim=keepdim),
            [t],
            dims=dims,
            keepdim=keepdim,
        )

    for d in (F32, F64, F16, BF16):
        reduce("all-" + NAMES[d], x(3, 4, dtype=d), ())
    reduce("last", x(2, 3, 4), (-1,))
    reduce("first-kept", x(2, 3, 4), (0,), True)
    reduce("two", x(2, 3, 4), (0, 2))
    reduce("two-kept", x(2, 3, 4), (-1, 0), True)
    reduce("scalar", x(), ())
    reduce("scalar-dim", x(), (-1,))
    reduce("transposed", x(4, 3, order=(1, 0)), (1,))
    reduce("expanded", x(1, 3, expand=(4, 3)), (0,))
    reduce("long", x(3, 70), (1,))
    reduce("tall", x(70, 3), (0,))
    reduce("no-rows", x(0, 3), (1,))
Case("sum/empty", "sum", torch.sum, [x(0, 3)])
Case("sum/empty-dim", "sum", lambda a: a.sum(0), [x(0, 3)], dims=(0,))
Case("mean/empty", "mean", torch.mean, [n(0)])
Case("sum/ints", "sum", lambda a: a.sum(1), [n(2, 3, dtype=I32)], dims=(1,))
Case("sum/bools", "sum", torch.sum, [n(7, dtype=BOOL)])
Case("amax/ints", "amax", lambda a: a.amax(1), [n(2, 3, dtype=I64)], dims=(1,))
Case(
    "amax/ties",
    "amax",
    lambda a: a.amax(1),
    [x(data=[[1.0, 2.0, 2.0], [3.0, 3.0, 3.0]])],
    dims=(1,),
)
Case(
    "amax/nan",
    "amax",
    lambda a: a.amax(1),
    [n(data=[[1.0, float("nan"), 2.0], [3.0, 1.0, float("-inf")]])],
    dims=(1,),
)
Case("argmax/all", "argmax", torch.argmax, [n(3, 5)])
Case("argmax/dim", "argmax", lambda a: a.argmax(1), [n(3, 5)], dim=1)
Case("argmax/kept", "argmax", lambda a: a.argmax(0, keepdim=True), [n(3, 5)], dim=0, keepdim=True)
Case(
    "argmax/ties",
    "argmax",
    lambda a: a.argmax(-1),
    [n(data=[[1.0, 2.0, 2.0], [3.0, 3.0, 3.0]])],
    dim=-1,
)
Case("argmax/nan", "argmax", lambda a: a.argmax(-1), [n(data=[[1.0, float("nan"), 2.0]])], dim=-1)
Case("argmax/ints", "argmax", lambda a: a.argmax(0), [n(4, 2, dtype=I64)], dim=0)
Case("argmax/transposed", "argmax", lambda a: a.argmax(1), [n(4, 6, order=(1, 0))], dim=1)
for shape in ((), (3,), (1, 3), (2, 1), (1, 1)):
    Case(
        "sum_to/%s" % (row(shape)),
        "sum_to",
        lambda a: a.sum_to_size(shape) if shape else a.sum(),
        [x(2, 3)],
        shape=shape,
    )

for op, function in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
    for d in (F32, F64, F16, BF16):
        Case("%s/%s" % (op, NAMES[d]), op, lambda a: function(a, -1), [x(3, 5, dtype=d)], dim=-1)
    Case(op + "/first", op, lambda a: function(a, 0), [x(3, 5)], dim=0)
    Case(op + "/middle", op, lambda a: function(a, 1), [x(2, 3, 4)], dim=1)
    Case(op + "/transposed", op, lambda a: function(a, 1), [x(4, 3, order=(1, 0))], dim=1)
    Case(op + "/vector", op, lambda a: function(a, 0), [x(6)], dim=0)
    Case(op + "/empty", op, lambda a: function(a, 1), [x(0, 3)], dim=1)
    Case(op + "/scalar", op, lambda a: function(a, 0), [x()], dim=0)
    Case(
        op + "/large",
        op,
        lambda a: function(a, 1),
        [x(data=[[1000.0, 1001.0], [-1000.0, 0.0]])],
        dim=1,
    )
    Case(op + "/wide", op, lambda a: function(a, 1), [x(2, 70)], dim=1)
Case(
    "log_softmax_grad/plain",
    "log_softmax_grad",
    lambda g, y: g - torch.exp(y) * g.sum(1, keepdim=True),
    [x(3, 4), x(3, 4)],
    dim=1,
)

Case("bmm/plain", "bmm", torch.bmm, [x(2, 3, 4), x(2, 4, 5)])
Case("bmm/transposed", "bmm", torch.bmm, [x(2, 4, 3, order=(0, 2, 1)), x(2, 5, 4, order=(0, 2, 1))])
Case("bmm/empty", "bmm", torch.bmm, [x(2, 3, 0), x(2, 0, 5)])
Case("bmm/no-batch", "bmm", torch.bmm, [x(0, 3, 2), x(0, 2, 5)])
Case("bmm/f64", "bmm", torch.bmm, [x(2, 3, 4, dtype=F64), x(2, 4, 5, dtype=F64)])
Case("bmm/expanded", "bmm", torch.bmm, [x(1, 3, 4, expand=(2, 3, 4)), x(2, 4, 5)])
for a, b in (
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((2, 5, 3), (3,)),
    ((2, 5, 3), (3, 4)),
    ((3,), (2, 3, 4)),
    ((5, 3), (2, 3, 4)),
    ((2, 5, 3), (2, 3, 4)),
    ((4, 1, 5, 3), (2, 3, 2)),
    ((2, 1, 3), (1, 3, 2)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
    ((3, 2, 0, 4), (4, 2)),
    ((1, 1), (1, 1)),
):
    Case(
        "matmul/%s-%s" % ("x".join(map(str, a)), "x".join(map(str, b))),
        "matmul",
        torch.matmul,
        [x(*a), x(*b)],
    )
Case("matmul/f64", "matmul", torch.matmul, [x(3, 4, dtype=F64), x(4, 2, dtype=F64)])
Case("matmul/f16", "matmul", torch.matmul, [x(3, 4, dtype=F16), x(4, 2, dtype=F16)])
Case("matmul/bf16", "matmul", torch.matmul, [x(3, 4, dtype=BF16), x(4, 2, dtype=BF16)])
Case("matmul/transposed", "matmul", torch.matmul, [x(4, 3, order=(1, 0)), x(2, 4, order=(1, 0))])
Case(
    "matmul/narrowed",
    "matmul",
    torch.matmul,
    [x(3, 6, narrow=(1, 1, 4)), x(4, 5, narrow=(1, 2, 2))],
)
for s in ((4,), (3, 4), (2, 3, 4), (0, 4), (2, 0, 4)):
    Case("linear/%s" % "x".join(map(str, s)), "linear", F.linear, [x(*s), x(5, 4), x(5)])
    Case("linear/no-bias-%s" % "x".join(map(str, s)), "linear", F.linear, [x(*s), x(5, 4), None])
Case("linear/f64", "linear", F.linear, [x(3, 4, dtype=F64), x(2, 4, dtype=F64), x(2, dtype=F64)])
Case("linear/f16", "linear", F.linear, [x(3, 4, dtype=F16), x(2, 4, dtype=F16), x(2, dtype=F16)])
Case("linear/transposed", "linear", F.linear, [x(4, 3, order=(1, 0)), x(4, 2, order=(1, 0)), x(2)])
Case("linear/larger", "linear", F.linear, [x(9, 17), x(11, 17), x(11)])

Case("view/plain", "view", lambda a: a.view(3, 2), [x(2, 3)], shape=(3, 2))
Case("view/inferred", "view", lambda a: a.view(-1), [x(2, 3)], shape=(-1,))
Case("view/scalar", "view", lambda a: a.view(()), [x(1, 1)], shape=())
Case(
    "view/split", "view", lambda a: a.view(2, 2, 3, 1), [x(3, 4, order=(1, 0))], shape=(2, 2, 3, 1)
)
Case("reshape/transposed", "reshape", lambda a: a.reshape(-1), [x(3, 2, order=(1, 0))], shape=(-1,))
Case("reshape/expanded", "reshape", lambda a: a.reshape(6), [x(1, 3, expand=(2, 3))], shape=(6,))
Case("reshape/empty", "reshape", lambda a: a.reshape(3, 0), [x(0, 2)], shape=(3, 0))
Case("reshape/plain", "reshape", lambda a: a.reshape(3, -1), [x(2, 3, 2)], shape=(3, -1))
Case("flatten/all", "flatten", torch.flatten, [x(2, 3, 2)])
Case("flatten/from-1", "flatten", lambda a: a.flatten(1), [x(2, 3, 2)], start_dim=1)
Case("flatten/scalar", "flatten", torch.flatten, [x()])
Case(
    "flatten/permuted",
    "flatten",
    lambda a: a.flatten(0, 1),
    [x(2, 3, 2, order=(1, 0, 2))],
    start_dim=0,
    end_dim=1,
)
Case("permute/plain", "permute", lambda a: a.permute(2, 0, 1), [x(2, 3, 4)], dims=(2, 0, 1))
Case("permute/negative", "permute", lambda a: a.permute(-1, 0), [x(2, 3)], dims=(-1, 0))
Case("transpose/plain", "transpose", lambda a: a.transpose(0, -1), [x(2, 3, 2)], dim0=0, dim1=-1)
Case("transpose/scalar", "transpose", lambda a: a.transpose(0, -1), [x()], dim0=0, dim1=-1)
Case("expand/plain", "expand", lambda a: a.expand(4, 2, 3), [x(2, 1)], shape=(4, 2, 3))
Case("expand/minus-one", "expand", lambda a: a.expand(3, -1), [x(1, 2)], shape=(3, -1))
Case("expand/scalar", "expand", lambda a: a.expand(2, 2), [x()], shape=(2, 2))
Case("expand/to-none", "expand", lambda a: a.expand(0, 2), [x(1, 2)], shape=(0, 2))
for d in (0, 1, 2, -1, -3):
    Case("unsqueeze/%d" % d, "unsqueeze", lambda a: a.unsqueeze(d), [x(2, 3)], dim=d)
Case("unsqueeze/scalar", "unsqueeze", lambda a: a.unsqueeze(0), [x()], dim=0)
Case("squeeze/all", "squeeze", torch.squeeze, [x(1, 2, 1, 3)])
Case("squeeze/some", "squeeze", lambda a: a.squeeze((0, 1)), [x(1, 2, 1, 3)], dims=(0, 1))
Case("squeeze/transposed", "squeeze", lambda a: a.squeeze(-1), [x(1, 3, order=(1, 0))], dims=(-1,))
Case("narrow/plain", "narrow", lambda a: a.narrow(1, 1, 2), [x(2, 4)], dim=1, start=1, length=2)
Case(
    "narrow/negative",
    "narrow",
    lambda a: a.narrow(-2, -2, 1),
    [x(3, 4)],
    dim=-2,
    start=-2,
    length=1,
)
Case("narrow/empty", "narrow", lambda a: a.narrow(0, 3, 0), [x(3, 2)], dim=0, start=3, length=0)
Case(
    "narrow/transposed",
    "narrow",
    lambda a: a.narrow(0, 1, 2),
    [x(2, 4, order=(1, 0))],
    dim=0,
    start=1,
    length=2,
)
Case(
    "narrow_grad/plain",
    "narrow_grad",
    lambda g: F.pad(g, (1, 2)),
    [x(2, 3)],
    shape=(2, 6),
    dim=1,
    start=1,
)
Case(
    "narrow_grad/first",
    "narrow_grad",
    lambda g: F.pad(g, (0, 0, 0, 2)),
    [x(3, 2, order=(1, 0))],
    shape=(4, 3),
    dim=0,
    start=0,
)
Case("select/plain", "select", lambda a: a.select(1, 2), [x(2, 4)], dim=1, index=2)
Case("select/negative", "select", lambda a: a.select(0, -1), [x(3, 2)], dim=0, index=-1)
Case("select/vector", "select", lambda a: a.select(0, 1), [x(3)], dim=0, index=1)


def target(*shape, classes=5, data=None):
    return x(*shape, dtype=I64, low=0, high=classes, grad=False, data=data)


for reduction in ("none", "mean", "sum"):

    def nll(a, t, **kw):
        total = (t != kw.get("ignore_index", -100)).sum().to(a.dtype)
        return F.nll_loss(a, t, reduction=reduction, **kw), total

    Case("nll_loss/" + reduction, "nll_loss", nll, [x(4, 5), target(4)], reduction=reduction)
    Case(
        "nll_loss/ignore-" + reduction,
        "nll_loss",
        lambda a, t: nll(a, t, ignore_index=1),
        [x(4, 5), target(data=[1, 0, 4, 1])],
        reduction=reduction,
        ignore_index=1,
    )
    Case(
        "nll_loss/f64-" + reduction,
        "nll_loss",
        nll,
        [x(4, 5, dtype=F64, order=(0, 1)), target(4)],
        reduction=reduction,
    )
    for name, a, t in (
        ("plain", x(4, 5), target(4)),
        ("vector", x(5), target()),
        ("images", x(2, 5, 3), target(2, 3)),
        ("more", x(2, 5, 2, 2), target(2, 2, 2)),
        ("f64", x(3, 5, dtype=F64), target(3)),
        ("f16", x(3, 5, dtype=F16), target(3)),
    ):
        Case(
            "cross_entropy/%s-%s" % (name, reduction),
            "cross_entropy",
            lambda a, t: F.cross_entropy(a, t, reduction=reduction),
            [a, t],
            reduction=reduction,
        )
    Case(
        "cross_entropy/ignore-" + reduction,
        "cross_entropy",
        lambda a, t: F.cross_entropy(a, t, reduction=reduction, ignore_index=2),
        [x(4, 5), target(data=[2, 0, 4, 2])],
        reduction=reduction,
        ignore_index=2,
    )
    Case(
        "cross_entropy/smooth-" + reduction,
        "cross_entropy",
        lambda a, t: F.cross_entropy(a, t, reduction=reduction, label_smoothing=0.2),
        [x(4, 5), target(4)],
        reduction=reduction,
        label_smoothing=0.2,
    )
    Case(
        "cross_entropy/smooth-ignore-" + reduction,
        "cross_entropy",
        lambda a, t: F.cross_entropy(
            a, t, reduction=reduction, label_smoothing=0.1, ignore_index=0
        ),
        [x(4, 5), target(data=[0, 0, 4, 3])],
        reduction=reduction,
        label_smoothing=0.1,
        ignore_index=0,
    )
Case(
    "cross_entropy/all-ignored",
    "cross_entropy",
    F.cross_entropy,
    [n(2, 5), target(data=[-100, -100])],
)
print("end")

Case(
    "maximum/odd",
    "maximum",
    torch.maximum,
    [
        x(
            data=[float("inf"), float("nan"), 1.0, -float("inf"), float("inf"), float("nan")],
            dtype=F64,
        ),
        x(data=[float("inf"), 2.0, float("nan"), -float("inf"), 1.0, float("nan")], dtype=F64),
    ],
)


def grouped(a, b, offs=None):
    """torch.nn.functional.grouped_mm, which takes only some strides on the cpu, by its parts."""
    if offs is None:
        return torch.bmm(a, b)
    ends = [0] + [int(end) for end in offs]
    parts = list(zip(ends, ends[1:]))
    if a.dim() == 2 and b.dim() == 2:
        return torch.stack([a[:, i:j] @ b[i:j] for i, j in parts])
    if a.dim() == 2:
        y = [a[i:j] @ b[g] for g, (i, j) in enumerate(parts)]
        return torch.cat(y + [a.new_zeros(len(a) - ends[-1], b.shape[2])])
    y = [a[g] @ b[:, i:j] for g, (i, j) in enumerate(parts)]
    return torch.cat(y + [a.new_zeros(a.shape[1], b.shape[1] - ends[-1])], 1)


for name, a, b, offs in [
    ("rows", x(6, 4), x(3, 4, 5), [2, 2, 6]),
    ("rows-int32", x(6, 4, dtype=F64), x(3, 4, 5, dtype=F64), [1, 3, 6]),
    ("rows-less", x(6, 4), x(2, 4, 3), [1, 4]),
    ("rows-f16", x(5, 4, dtype=F16), x(2, 4, 3, dtype=F16), [2, 5]),
    ("rows-bf16", x(5, 4, dtype=BF16), x(2, 4, 3, dtype=BF16), [2, 5]),
    ("rows-transposed", x(4, 5, order=(1, 0)), x(2, 3, 4, order=(0, 2, 1)), [2, 5]),
    ("columns", x(3, 2, 4), x(4, 6), [1, 4, 6]),
    ("columns-less", x(2, 2, 4, dtype=F64), x(4, 6, dtype=F64), [0, 4]),
    ("both", x(3, 6), x(6, 4), [2, 2, 6]),
    ("both-less", x(3, 6, dtype=F64), x(6, 4, dtype=F64), [2, 5]),
    ("none", x(2, 3, 4), x(2, 4, 5), None),
    ("empty", x(0, 4), x(2, 4, 3), [0, 0]),
]:
    ends = None if offs is None else n(data=offs, dtype=I32 if "int32" in name else I64)
    Case("grouped_mm/" + name, "grouped_mm", grouped, [a, b, ends])

for name, shape, dtype, bias in [
    ("f32", (2, 3, 4), F32, False),
    ("f64-bias", (2, 3, 4), F64, True),
    ("one-row", (4,), F32, False),
    ("bf16", (3, 4), BF16, False),
    ("empty", (3, 0), F32, False),
]:
    inputs = [x(*shape, dtype=dtype), x(shape[-1], dtype=dtype)]
    inputs.append(x(data=0.75, dtype=dtype) if bias else None)
    Case("linear/row-" + name, "linear", F.linear, inputs)
for name, condition in [
    ("same", n(data=[[1, 0, 2], [0, 255, 0]], dtype=torch.uint8)),
    ("broadcast", n(data=[0, 3, 1], dtype=torch.uint8)),
]:
    Case("where/u8-" + name, "where", torch.where, [condition, x(2, 3), x(2, 3)])
