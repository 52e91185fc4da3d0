#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# How the scripts in this folder write what PyTorch computes for operators, forward and backward, as text that
# tests/op/test_oracle.c replays on every device.
#
#   case NAME / op NAME / opt NAME VALUE
#   in DTYPE SHAPE STRIDES OFFSET g|- : the values of the memory beneath, in order
#   out DTYPE SHAPE : values          cot : values for output 0          grad INPUT : values
import torch

torch.manual_seed(2)
torch.set_num_threads(1)

NAMES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16",
         torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8",
         torch.bool: "bool", torch.complex64: "c64", torch.complex128: "c128"}
C64, C128 = torch.complex64, torch.complex128
F32, F64, F16, BF16, I64, I32, BOOL = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64,
                                       torch.int32, torch.bool)


def number(v, dtype):
    if dtype == torch.bool:
        return str(int(v))
    if not dtype.is_floating_point:
        return str(int(v))
    return {F64: "%.15g", F32: "%.9g"}.get(dtype, "%.6g") % float(v)


def row(values):
    return ",".join(repr(v) if isinstance(v, float) else str(int(v)) for v in values) if len(values) else "-"


def values(t):
    flat = t.detach().resolve_conj().contiguous().flatten()
    if flat.dtype.is_complex:   # both parts, one after the other
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
            lines.append("in %s %s %s %d %s : %s" % (NAMES[leaf.dtype], row(leaf.shape), row(leaf.stride()),
                                                     leaf.storage_offset(), "g" if grad else "-", values(memory)))
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


def rounded(t):
    return (t * 16).round() / 16


def x(*shape, dtype=F32, grad=True, positive=False, low=None, high=None, order=None, expand=None, narrow=None, data=None):
    """An input: random, or `data`; `order` permutes it, `expand` and `narrow` make further views of its memory."""

    def make():
        if data is not None:
            memory = torch.tensor(data, dtype=dtype)
        elif dtype == BOOL:
            memory = torch.rand(shape) > 0.5
        elif dtype.is_complex:
            memory = torch.complex(rounded(torch.randn(shape, dtype=F64) * 1.5),
                                   rounded(torch.randn(shape, dtype=F64) * 1.5)).to(dtype)
        elif not dtype.is_floating_point:
            memory = torch.randint(-4 if low is None else low, 5 if high is None else high, shape).to(dtype)
        else:
            memory = rounded(torch.randn(shape, dtype=F64) * 1.5)
            if positive:
                memory = memory.abs() + 0.25
            memory = memory.to(dtype)
        view = memory
        if order is not None:
            view = view.permute(order)
        if narrow is not None:
            view = view.narrow(*narrow)
        if expand is not None:
            view = view.expand(expand)
        return memory, view

    return grad, make


def n(*shape, **more):
    return x(*shape, grad=False, **more)


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
