#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# How the scripts in this folder write what PyTorch computes for operators, forward and backward, as
# text that tests/op/test_oracle.c replays on every device.
#
#   case NAME / op NAME / opt NAME VALUE
#   in DTYPE SHAPE STRIDES OFFSET g|- : the values of the memory beneath, in order
#   out DTYPE SHAPE : values          cot : values for output 0          grad INPUT : values
import math

import torch

torch.manual_seed(2)
torch.set_num_threads(1)

NAMES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
    torch.complex64: "c64",
    torch.complex128: "c128",
}
C64, C128 = torch.complex64, torch.complex128
F32, F64, F16, BF16, I64, I32, BOOL = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.bool,
)
I8, U8 = torch.int8, torch.uint8
FLOATS = (F32, F64, F16, BF16)
INF, NAN = float("inf"), float("nan")
F = torch.nn.functional


def number(v, dtype):
    if dtype == torch.bool:
        return str(int(v))
    if not dtype.is_floating_point:
        return str(int(v))
    return {F64: "%.15g", F32: "%.9g"}.get(dtype, "%.6g") % float(v)


def row(values):
    return (
        ",".join(repr(v) if isinstance(v, float) else str(int(v)) for v in values)
        if len(values)
        else "-"
    )


def values(t):
    flat = t.detach().resolve_conj().contiguous().flatten()
    if flat.dtype.is_complex:  # both parts, one after the other
        flat = torch.view_as_real(flat).flatten()
        return " ".join(number(v, flat.dtype) for v in flat.tolist())
    return " ".join(number(v, t.dtype) for v in flat.tolist())


class Case:
    """One call: inputs are pairs (memory, view of it)."""

    def __init__(self, name, op, function, inputs, cot=True, **options):
        lines = ["case " + name, "op " + op]
        for key, value in options.items():
            if isinstance(value, (list, tuple)):
                value = row(value)
            elif isinstance(value, torch.dtype):
                value = NAMES[value]
            lines.append("opt %s %s" % (key, value))
        tensors = []
        for given in inputs:
            if given is None:
                lines.append("in none")
                tensors.append(None)
                continue
            wants, make = given
            memory, view = make()
            leaf = view.detach()
            grad = wants and (leaf.dtype.is_floating_point or leaf.dtype.is_complex)
            lines.append(
                "in %s %s %s %d %s : %s"
                % (
                    NAMES[leaf.dtype],
                    row(leaf.shape),
                    row(leaf.stride()),
                    leaf.storage_offset(),
                    "g" if grad else "-",
                    values(memory),
                )
            )
            if grad:
                leaf.requires_grad_()
            tensors.append(leaf)
        results = function(*tensors)
        if not isinstance(results, tuple):
            results = (results,)
        for out in results:
            lines.append("out %s %s : %s" % (NAMES[out.dtype], row(out.shape), values(out)))
        leaves = [t for t in tensors if t is not None and t.requires_grad]
        if cot and leaves and results[0].requires_grad:
            c = rounded(torch.randn(results[0].shape, dtype=F64)).to(results[0].dtype)
            if c.is_complex():
                c = c + 1j * rounded(torch.randn(c.shape, dtype=F64)).to(c.dtype)
            lines.append("cot : " + values(c))
            results[0].backward(c)
            for i, t in enumerate(tensors):
                if t is not None and t.requires_grad:
                    g = t.grad if t.grad is not None else torch.zeros_like(t)
                    lines.append("grad %d : %s" % (i, values(g)))
        print("\n".join(lines))


def case(op, name, function, inputs, **options):
    """A Case with the usual name."""
    Case("%s/%s" % (op, name), op, function, inputs, **options)


def along(op, name, dim, inputs, **options):
    """A case of an operator with a dim after its first tensor; PyTorch has it by the same name."""
    call = getattr(torch, op)
    case(op, name, lambda t, *rest: call(t, dim, *rest, **options), inputs, dim=dim, **options)


def refused(name, op, function, *tensors, **options):
    """A call that PyTorch refuses; the case is in the form of refused.txt."""
    try:
        function(*tensors)
    except Exception:
        lines = ["case refused/" + name, "op " + op]
        for key, value in options.items():
            value = row(value) if isinstance(value, (list, tuple)) else value
            lines.append("opt %s %s" % (key, value))
        for t in tensors:
            if t is None:
                lines.append("in none")
                continue
            head = (NAMES[t.dtype], row(t.shape), row(t.stride()))
            lines.append("in %s %s %s 0 - : " % head + values(t))
        print("\n".join(lines + ["refused"]))
        return
    raise SystemExit("PyTorch takes " + name)


WINDOW = ("kernel", "stride", "padding", "dilation", "output_padding")


def lists(options):
    """Options of windows, with a list for a number that stands for all dimensions."""
    found = {}
    for key, value in options.items():
        one = type(value) is int and key in WINDOW
        found[key] = [value] if one else value
    return found


def rounded(t):
    return (t * 16).round() / 16


def further(view, order=None, narrow=None, expand=None):
    """A further view: permuted, then narrowed, then expanded."""
    view = view if order is None else view.permute(order)
    view = view if narrow is None else view.narrow(*narrow)
    return view if expand is None else view.expand(expand)


def x(*shape, dtype=F32, grad=True, positive=False, low=-4, high=5, data=None, **views):
    """An input: random, or `data`; `views` as further() takes them."""

    def make():
        if data is not None:
            memory = torch.tensor(data, dtype=dtype)
        elif dtype == BOOL:
            memory = torch.rand(shape) > 0.5
        elif dtype.is_complex:
            memory = torch.complex(
                rounded(torch.randn(shape, dtype=F64) * 1.5),
                rounded(torch.randn(shape, dtype=F64) * 1.5),
            ).to(dtype)
        elif not dtype.is_floating_point:
            memory = torch.randint(low, high, shape).to(dtype)
        else:
            memory = rounded(torch.randn(shape, dtype=F64) * 1.5)
            if positive:
                memory = memory.abs() + 0.25
            memory = memory.to(dtype)
        return memory, further(memory, **views)

    return grad, make


def x64(*shape, **more):
    return x(*shape, dtype=F64, **more)


def n(*shape, **more):
    return x(*shape, grad=False, **more)


def distinct(*shape, dtype=F32, grad=True, **more):
    """No two elements are equal."""
    count = math.prod(shape)
    data = (torch.randperm(count).to(F64) / 4 - count / 8).reshape(shape).tolist()
    return x(dtype=dtype, grad=grad, data=data, **more)


def places(*shape, high, dtype=I64, **more):
    """Indices from 0 to high - 1."""
    return n(*shape, dtype=dtype, low=0, high=high, **more)


def like_images(*shape, **more):
    """Channels-last in memory, [N, C, H, W] to look at."""
    count, channels, height, width = shape
    return x(count, height, width, channels, order=(0, 3, 1, 2), **more)


def both(results):
    """Results of PyTorch, of its own type of tuple if there are several, as Case expects them."""
    return results if isinstance(results, torch.Tensor) else tuple(results)


def binary(op, function, ints=True, mixed=True, second={}, **options):
    def call(name, a, b):
        Case("%s/%s" % (op, name), op, lambda a, b: function(a, b), [a, b], **options)

    for d in (F32, F64, F16, BF16):
        call("same-" + NAMES[d], x(2, 3, dtype=d), x(2, 3, dtype=d, **second))
    call("row", x(2, 3), x(3, **second))
    call("both", x(2, 1, 4), x(3, 1, **second))
    call("scalar", x(2, 3), x(**second))
    call("scalars", x(), x(**second))
    call("scalar-first", x(), x(2, 2, **second))
    call("empty", x(0, 3), x(3, **second))
    call("transposed", x(3, 2, order=(1, 0)), x(2, 3, **second))
    call("both-transposed", x(4, 3, 2, order=(2, 1, 0)), x(4, 3, 2, order=(2, 1, 0), **second))
    call("expanded", x(1, 3, expand=(4, 3)), x(4, 3, **second))
    call("narrowed", x(3, 5, narrow=(1, 1, 3)), x(3, 3, **second))
    call("larger", x(7, 19), x(7, 19, **second))
    if ints:
        call("ints", x(2, 3, dtype=I64), x(2, 3, dtype=I64, low=1))
        call("small-ints", x(2, 3, dtype=I32), x(3, dtype=I32, low=1))
        call("int-float", x(2, 3, dtype=I64), x(2, 3, **second))
        call("mixed-ints", x(2, 3, dtype=torch.int8), x(2, 3, dtype=I32, low=1))
    if mixed:
        call("f32-f64", x(2, 3), x(2, 3, dtype=F64, **second))
        call("f16-f32-scalar", x(2, 3, dtype=F16), x(**second))
        call("f16-bf16", x(2, 3, dtype=F16), x(2, 3, dtype=BF16, **second))


def unary(op, function, ints=True, **how):
    for d in (F32, F64, F16, BF16):
        Case("%s/%s" % (op, NAMES[d]), op, function, [x(2, 3, dtype=d, **how)])
    Case(op + "/scalar", op, function, [x(**how)])
    Case(op + "/empty", op, function, [x(2, 0, **how)])
    Case(op + "/transposed", op, function, [x(3, 4, order=(1, 0), **how)])
    Case(op + "/expanded", op, function, [x(3, 1, expand=(3, 2), **how)])
    Case(op + "/narrowed", op, function, [x(5, 2, narrow=(0, 2, 2), **how)])
    Case(op + "/larger", op, function, [x(5, 27, **how)])
    if ints:
        Case(op + "/ints", op, function, [n(2, 3, dtype=I64, low=1)])


EDGES = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 1e-30, -1e30, 0.5, -2.5, 3.5, 6.0, -3.0, 20.5, -20.5]


def within(low, high, *shape, dtype=F32, grad=True, **more):
    """Multiples of 1/16 strictly between the bounds."""
    data = (
        (torch.randint(int(low * 16) + 1, int(high * 16), (math.prod(shape),)).to(F64) / 16)
        .reshape(shape)
        .tolist()
    )
    return x(dtype=dtype, grad=grad, data=data, **more)


def function(
    op, call, low=-4, high=4, ints=True, bools=False, grad=True, edges=True, wide=True, **options
):
    """An operator of one tensor."""

    def case(name, a):
        Case("%s/%s" % (op, name), op, call, [a], **options)

    for d in (F32, F64, F16, BF16):
        case(NAMES[d], within(low, high, 2, 3, dtype=d, grad=grad and (wide or d != F64)))
    case("scalar", within(low, high, grad=grad))
    case("empty", x(2, 0, grad=grad))
    case("transposed", within(low, high, 3, 2, order=(1, 0), dtype=F64, grad=grad and wide))
    case("narrowed-expanded", within(low, high, 4, 1, narrow=(0, 1, 2), expand=(2, 2), grad=grad))
    case("larger", within(low, high, 3, 19, grad=grad))
    if edges:
        for d in (F32, F64):
            case("edges-" + NAMES[d], x(data=EDGES, dtype=d, grad=False))
    if ints:
        case(
            "ints",
            x(2, 3, dtype=I64, low=max(math.ceil(low), -4), high=math.ceil(high), grad=False),
        )
        case(
            "small-ints",
            x(
                2,
                3,
                dtype=torch.int8,
                low=max(math.ceil(low), -4),
                high=math.ceil(high),
                grad=False,
            ),
        )
    if bools:
        case("bools", x(4, dtype=BOOL, grad=False))


def two(
    op, call, low=-4, high=4, ints=True, mixed=True, grad=True, nonzero=True, first=None, **options
):
    """An operator of two tensors; the second one between the bounds."""

    def case(name, a, b):
        Case("%s/%s" % (op, name), op, call, [a, b], **options)

    def a(*shape, **more):
        return within(*(first or (-4, 4)), *shape, grad=grad, **more)

    def b(*shape, **more):
        return within(low, high, *shape, grad=grad, **more)

    for d in FLOATS:
        case("same-" + NAMES[d], a(2, 3, dtype=d), b(2, 3, dtype=d))
    case("both", a(2, 1, 3), b(2, 1))
    case("scalar", a(2, 3, dtype=F64), b(dtype=F64))
    case("scalar-first", a(), b(2, 2))
    case("empty", x(0, 3, grad=grad), b(3))
    case("transposed", a(3, 2, order=(1, 0)), b(2, 3))
    case("expanded", a(1, 3, expand=(2, 3), dtype=F64), b(2, 3, dtype=F64))
    case("larger", a(3, 13), b(3, 13))
    if ints:
        low = 1 if nonzero else -4
        case("ints", x(2, 3, dtype=I64, grad=False), x(2, 3, dtype=I64, low=low, grad=False))
        case("small-ints", x(2, 3, dtype=I32, grad=False), x(3, dtype=I32, low=low, grad=False))
        if nonzero:
            case(
                "negative-ints",
                x(2, 3, dtype=I64, grad=False),
                x(2, 3, dtype=I64, low=-4, high=0, grad=False),
            )
        case(
            "bytes",
            x(4, dtype=torch.uint8, low=0, high=200, grad=False),
            x(4, dtype=torch.uint8, low=1, high=4, grad=False),
        )
    if mixed:
        case("int-float", x(2, 3, dtype=I64), b(2, 3))
        case("f32-f64", a(2, 3), b(2, 3, dtype=F64))


EDGES_A = [0.0, -0.0, INF, -INF, NAN, 1.0, 0.0, -1.0, INF, 5.5, -5.5, 1e30, 2.0, 3.0, -3.0, 0.0]
EDGES_B = [1.0, 2.0, 2.0, 3.0, 1.0, NAN, 0.0, 0.0, INF, -2.0, 2.0, 1e-5, INF, -INF, INF, -0.0]


def edges_two(op, call, **options):
    for d in (F32, F64):
        Case(
            "%s/edges-%s" % (op, NAMES[d]),
            op,
            call,
            [n(data=EDGES_A, dtype=d), n(data=EDGES_B, dtype=d)],
            **options
        )
