#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Operators on integers with scales. Each reference is written step by step in float32 and int64;
# where PyTorch, onnxruntime or gguf define the same numbers, the script compares with them first:
#   PYTHON-WITH-TORCH-AND-ONNXRUNTIME make_quantize.py > quantize.txt
import numpy as np

from cases import *

I16 = torch.int16
RANGE = {U8: (0, 255), I8: (-128, 127), I16: (-32768, 32767), I32: (-(2**31), 2**31 - 1)}


def one(value):
    return torch.tensor(value, dtype=F32)


def spread(s, a, dim=0, block=None):
    """A scale or zero point that broadcasts to a."""
    if block is not None:
        return s.repeat_interleave(block, dim)
    if s.numel() == 1 and s.dim() == 1:
        return s.reshape(())
    if s.dim() == 1 and a.dim() > 1:
        return s.reshape([-1 if d == dim % a.dim() else 1 for d in range(a.dim())])
    return s


def to_integers(a, s, z, low, high, dtype):
    r = torch.round(a.to(F32) / s.to(F32))
    r = torch.where(torch.isnan(r), torch.zeros(()), r).clamp(-(2.0**40), 2.0**40)
    return (r.to(I64) + (0 if z is None else z.to(I64))).clamp(low, high).to(dtype)


def quantize(a, s, z=None, dim=0, block=None, dtype=None, qmin=None, qmax=None):
    dtype = dtype or (U8 if z is None else z.dtype)
    low, high = RANGE[dtype]
    low, high = low if qmin is None else qmin, high if qmax is None else qmax
    z = None if z is None else spread(z, a, dim, block)
    return to_integers(a, spread(s, a, dim, block), z, low, high, dtype)


def dequantize(q, s, z=None, dim=0, block=None, dtype=F32):
    v = q.to(I64) - (0 if z is None else spread(z, q, dim, block).to(I64))
    return (v.to(F32) * spread(s, q, dim, block).to(F32)).to(dtype)


def choose(low, high, qmin, qmax, symmetric, dtype, eps):
    low, high = torch.minimum(low, one(0)), torch.maximum(high, one(0))
    if symmetric:
        s = torch.maximum(-low, high) / one((qmax - qmin) / 2)
        z = 0 if dtype == I8 else 128 if (qmin, qmax) == (0, 255) else (qmin + qmax) // 2
        z = torch.full(s.shape, z, dtype=dtype)
    else:
        s = (high - low) / one(float(qmax - qmin))
    s = torch.maximum(s, one(eps)) if eps else torch.where(s == 0, one(1), s)
    if not symmetric:
        z = (qmin - torch.round(low / s).nan_to_num()).clamp(qmin, qmax).to(dtype)
    return s, z


def choose_qparams(
    a, dims=(), keepdim=False, block=None, dtype=U8, symmetric=False, qmin=None, qmax=None, eps=None
):
    eps = 1.1920929e-07 if eps is None else eps
    low, high = RANGE[dtype]
    a = a.to(F32)
    a = torch.where(torch.isnan(a), one(0), a)
    dims = list(dims) or list(range(a.dim()))
    if block is not None:
        d = dims[0] % a.dim()
        a = a.unflatten(d, (-1, block))
        dims = [d + 1]
    if dims:
        ends = a.amin(dims, keepdim), a.amax(dims, keepdim)
    else:
        ends = a, a
    return choose(
        *ends, low if qmin is None else qmin, high if qmax is None else qmax, symmetric, dtype, eps
    )


def quantize_rows(a, dtype=U8, symmetric=False):
    low, high = (-127, 127) if symmetric else RANGE[dtype]
    v = a.to(F32)
    v = torch.where(torch.isnan(v), one(0), v)
    s, z = choose(v.amin(-1, True), v.amax(-1, True), low, high, symmetric, dtype, 0)
    return to_integers(a, s, z, low, high, dtype), s, z


def centred(q, z):
    return q.to(I64) - (0 if z is None else z.to(I64))


def ending(sums, factor, channels, b, ys, yz, r, rs, rz, x_dtype, min=None, max=None, dtype=None):
    y = sums.to(F32) * factor
    y = y if b is None else y + b.reshape(channels)
    if r is not None:
        y = y + (r if rs is None else dequantize(r, rs, rz))
    if min is not None or max is not None:
        y = y.clamp(min, max)
    return y if ys is None else quantize(y, ys, yz, dtype=dtype or x_dtype)


def linear_int8(
    a, s, w, ws, z=None, wz=None, b=None, ys=None, yz=None, r=None, rs=None, rz=None, **o
):
    if wz is not None and wz.numel() > 1:
        wz = wz[:, None]
    sums = torch.matmul(centred(a, z), centred(w, wz).t())
    return ending(sums, s * ws, [-1], b, ys, yz, r, rs, rz, a.dtype, **o)


def convolution_int8(
    a,
    s,
    w,
    ws,
    z=None,
    wz=None,
    b=None,
    ys=None,
    yz=None,
    r=None,
    rs=None,
    rz=None,
    stride=(1,),
    padding=(0,),
    dilation=(1,),
    groups=1,
    **o
):
    channels = [1, -1] + [1] * (a.dim() - 2)
    if wz is not None and wz.numel() > 1:
        wz = wz.reshape([-1] + [1] * (a.dim() - 1))
    call = getattr(F, "conv%dd" % (a.dim() - 2))
    many = lambda v: list(v) * (a.dim() - 2 if len(v) == 1 else 1)
    sums = call(
        centred(a, z).to(F64),
        centred(w, wz).to(F64),
        None,
        many(stride),
        many(padding),
        many(dilation),
        groups,
    ).to(I64)
    ws = ws.reshape(channels) if ws.numel() > 1 else ws.reshape(())
    s = s.reshape(()) if s.numel() == 1 else s
    return ending(sums, s * ws, channels, b, ys, yz, r, rs, rz, a.dtype, **o)


def matmul_int8(a, b, az=None, bz=None):
    az = az[:, None] if az is not None and az.dim() == 1 and az.numel() > 1 else az
    return torch.matmul(centred(a, az), centred(b, bz)).to(I32)


def pack_int4(q):
    v = q.to(I32) & 15
    return (v[..., 0::2] + 16 * v[..., 1::2]).to(U8)


def unpack_int4(p, dtype=I8):
    v = torch.stack([p.to(I32) & 15, p.to(I32) >> 4], -1).flatten(-2)
    return ((v ^ 8) - 8 if dtype == I8 else v).to(dtype)


def block_parts(p, format):
    n = 34 if format == "q8_0" else 18
    blocks = p.reshape(p.shape[0], -1, n)
    d = torch.from_numpy(blocks[..., :2].contiguous().numpy().view(np.float16)[..., 0].copy())
    q = blocks[..., 2:].to(I32)
    if format == "q8_0":
        return (q ^ 128) - 128, d.to(F32)
    return torch.cat([q & 15, q >> 4], -1) - 8, d.to(F32)


def packed_parts(w, s, z, format):
    """Integers [out, groups, size] and scales [out, groups]."""
    if format in ("q8_0", "q4_0"):
        return block_parts(w, format)
    q = w.to(I32) if format == "int8" else unpack_int4(w, I8 if format == "int4" else U8).to(I32)
    groups = 1 if s.dim() == 1 else s.shape[1]
    q = q.reshape(q.shape[0], groups, -1)
    if z is not None:
        q = q - z.reshape(q.shape[0], groups, 1).to(I32)
    return q, s.reshape(q.shape[0], groups).to(F32)


def dequantize_packed(w, s=None, z=None, format="int8", dtype=F32):
    q, s = packed_parts(w, s, z, format)
    return (q.to(F32) * s[..., None]).flatten(1).to(dtype)


def quantize_packed(a, format):
    blocks = a.to(F32).reshape(-1, 32)
    blocks = torch.where(torch.isnan(blocks), one(0), blocks)
    if format == "q8_0":
        d = blocks.abs().amax(-1, True) / one(127)
    else:
        most = blocks.abs().argmax(-1, True)
        d = blocks.gather(-1, most) / one(-8)
    v = blocks * torch.where(d == 0, one(0), 1 / d)
    if format == "q8_0":
        q = (torch.floor(v.abs() + 0.5) * v.sign()).to(torch.int8).view(U8)
    else:
        q = torch.floor(v + one(8.5)).clamp(0, 15).to(U8)
        q = q[:, :16] + 16 * q[:, 16:]
    bytes_of_d = torch.from_numpy(d.to(F16).numpy().view(np.uint8))
    return torch.cat([bytes_of_d, q], -1).reshape(*a.shape[:-1], -1)


class LinearPacked(torch.autograd.Function):
    """Straight through: the gradient of x is that of the product with the dequantized weight."""

    @staticmethod
    def forward(ctx, a, w, s, z, b, format):
        ctx.weight = dequantize_packed(w, s, z, format)
        q, s = packed_parts(w, s, z, format)
        group = q.shape[2]
        size = group if q.shape[1] > 1 and group % 32 else 32
        v, q = a.to(F32), q.flatten(1)
        y = torch.zeros(a.shape[:-1] + (q.shape[0],))
        for at in range(0, q.shape[1], size):
            part, sx, _ = quantize_rows(v[..., at : at + size], I8, True)
            sums = torch.matmul(part.to(I64), q[:, at : at + size].to(I64).t())
            y = y + sums.to(F32) * (sx * s[:, at // group])
        y = y if b is None else y + b.to(F32)
        return y.to(a.dtype)

    @staticmethod
    def backward(ctx, g):
        w = ctx.weight.to(g.dtype)
        sums = None if not ctx.needs_input_grad[4] else g.reshape(-1, g.shape[-1]).sum(0)
        return torch.matmul(g, w), None, None, None, sums, None


def linear_packed(a, w, s=None, z=None, b=None, format="int8", quantize_x=True):
    if quantize_x:
        return LinearPacked.apply(a, w, s, z, b, format)
    return F.linear(a, dequantize_packed(w, s, z, format, a.dtype), b)


class FakeQuantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, s, z, qmin, qmax, dim, block):
        wide = F64 if a.dtype == F64 else F32
        sb = spread(s, a, dim, block).to(wide)
        zb = None if z is None else spread(z, a, dim, block).to(wide)
        t = a.to(wide) / sb
        n = torch.round(t) + (0 if zb is None else zb)
        ctx.save_for_backward(t, n, zb, s)
        ctx.rest = qmin, qmax, dim, block
        y = (n.clamp(qmin, qmax) - (0 if zb is None else zb)) * sb
        return y.nan_to_num(0, INF, -INF).to(a.dtype)

    @staticmethod
    def backward(ctx, g):
        t, n, zb, s = ctx.saved_tensors
        qmin, qmax, dim, block = ctx.rest
        inside = (n >= qmin) & (n <= qmax)
        ga = torch.where(inside, g, torch.zeros((), dtype=g.dtype))
        bound = n.clamp(qmin, qmax) - (0 if zb is None else zb)
        slope = torch.where((n < qmin) | (n > qmax), bound, torch.round(t) - t).nan_to_num(0)
        gs = g.to(slope.dtype) * slope
        with torch.enable_grad():
            leaf = s.detach().to(slope.dtype).requires_grad_()
            spread(leaf, gs, dim, block).expand(gs.shape).backward(gs)
        return ga, leaf.grad.to(s.dtype), None, None, None, None, None


def fake_quantize(a, s, z=None, qmin=0, qmax=255, dim=0, block=None):
    return FakeQuantize.apply(a, s, z, qmin, qmax, dim, block)


# ---- the same numbers from others ---------------------------------------------------------------


def same(what, a, b):
    if not torch.equal(torch.as_tensor(a), torch.as_tensor(b)):
        raise SystemExit("%s: the reference is wrong" % what)


def session(op, inputs, outputs, **attributes):
    """A model of one ONNX operator: a function of arrays."""
    import onnxruntime as ort
    from onnx import helper

    of = lambda v: helper.np_dtype_to_tensor_dtype(v)
    graph = helper.make_graph(
        [helper.make_node(op, [n for n, _ in inputs], [n for n, _ in outputs], **attributes)],
        "g",
        [helper.make_tensor_value_info(n, of(np.dtype(d)), None) for n, d in inputs],
        [helper.make_tensor_value_info(n, of(np.dtype(d)), None) for n, d in outputs],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    run = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda *a: [
        torch.from_numpy(np.atleast_1d(v))
        for v in run.run(None, {n: v.numpy() for (n, _), v in zip(inputs, a)})
    ]


def compare_with_onnxruntime():
    torch.manual_seed(5)
    for dtype, name in ((U8, "uint8"), (I8, "int8")):
        run = session("QuantizeLinear", [("x", "f4"), ("s", "f4"), ("z", name)], [("y", name)])
        back = session("DequantizeLinear", [("q", name), ("s", "f4"), ("z", name)], [("y", "f4")])
        for _ in range(200):
            a, s = torch.randn(4000) * 40, torch.rand(()) + 0.01
            z = torch.randint(*RANGE[dtype], ()).to(dtype)
            same("QuantizeLinear", run(a, s, z)[0], quantize(a, s, z))
            q = quantize(a, s, z)
            same("DequantizeLinear", back(q, s, z)[0], dequantize(q, s, z))
    run = session("DynamicQuantizeLinear", [("x", "f4")], [("y", "u1"), ("s", "f4"), ("z", "u1")])
    for _ in range(200):
        a = torch.randn(1000) * torch.rand(()) * 50
        for got, mine in zip(run(a), quantize_rows(a)):
            same("DynamicQuantizeLinear", got.flatten(), mine.flatten())
    for a_type, b_type in ((U8, I8), (U8, U8), (I8, I8)):
        names = {U8: "u1", I8: "i1"}
        kinds = [("a", a_type), ("b", b_type), ("az", a_type), ("bz", b_type)]
        run = session("MatMulInteger", [(n, names[d]) for n, d in kinds], [("y", "i4")])
        for k in (1, 7, 200):
            a, b = torch.randint(*RANGE[a_type], (5, k)), torch.randint(*RANGE[b_type], (k, 9))
            az, bz = torch.randint(*RANGE[a_type], ()), torch.randint(*RANGE[b_type], (9,))
            given = a.to(a_type), b.to(b_type), az.to(a_type), bz.to(b_type)
            same("MatMulInteger", run(*given)[0], matmul_int8(*given))


def compare_with_pytorch():
    from torch.ao.quantization import MinMaxObserver, PerChannelMinMaxObserver

    torch.manual_seed(6)
    kinds = [
        (torch.quint8, U8, torch.per_tensor_affine, False),
        (torch.qint8, I8, torch.per_tensor_affine, False),
        (torch.quint8, U8, torch.per_tensor_symmetric, True),
        (torch.qint8, I8, torch.per_tensor_symmetric, True),
    ]
    for shift in (-3, 0, 3):
        a = torch.randn(6, 50) + shift
        for of, dtype, scheme, symmetric in kinds:
            observer = MinMaxObserver(dtype=of, qscheme=scheme)
            observer(a)
            s, z = observer.calculate_qparams()
            mine = choose_qparams(a, dtype=dtype, symmetric=symmetric)
            same("scale", s.reshape(()), mine[0])
            same("zero_point", z.reshape(()).to(dtype), mine[1])
        observer = PerChannelMinMaxObserver(dtype=torch.qint8, qscheme=torch.per_channel_symmetric)
        observer(a)
        same(
            "scale",
            observer.calculate_qparams()[0],
            choose_qparams(a, (1,), dtype=I8, symmetric=True)[0],
        )
    # PyTorch multiplies by 1 / scale: a power of two has the same quotients.
    for z in (0, 7, 128):
        a = (torch.randn(500) * 30).requires_grad_()
        b = a.detach().clone().requires_grad_()
        theirs = torch.fake_quantize_per_tensor_affine(a, 0.25, z, 0, 255)
        mine = fake_quantize(b, one(0.25), torch.tensor(z))
        same("fake_quantize", theirs, mine)
        g = torch.randn(500)
        theirs.backward(g)
        mine.backward(g)
        same("fake_quantize's gradient", a.grad, b.grad)
    s, s2 = one([0.25, 0.5]).requires_grad_(), one([0.25, 0.5]).requires_grad_()
    a, z = torch.randn(2, 300) * 30, torch.tensor([0.0, 100.0])
    theirs = torch._fake_quantize_learnable_per_channel_affine(a, s, z, 0, 0, 255, 1.0)
    mine = fake_quantize(a, s2, z.to(I64))
    same("fake_quantize by channel", theirs, mine)
    theirs.sum().backward()
    mine.sum().backward()
    if not torch.allclose(s.grad, s2.grad, rtol=1e-4):
        raise SystemExit("gradient of the scale: %s and %s" % (s.grad, s2.grad))


def compare_with_gguf():
    try:
        from gguf import GGMLQuantizationType as T, quants
    except ImportError:
        return
    torch.manual_seed(7)
    for kind, name in ((T.Q8_0, "q8_0"), (T.Q4_0, "q4_0")):
        a = torch.randn(50, 256)
        packed = torch.from_numpy(quants.quantize(a.numpy(), kind))
        if name == "q8_0":
            same(name, packed, quantize_packed(a, name))
        same(
            name,
            torch.from_numpy(quants.dequantize(packed.numpy(), kind)),
            dequantize_packed(packed, format=name),
        )


compare_with_onnxruntime()
compare_with_pytorch()
compare_with_gguf()

# ---- cases ---------------------------------------------------------------------------------------


def f(*shape, size=4, dtype=F32, grad=False, **more):
    """Numbers that are no multiples of the scales."""
    if 0 in shape:
        return x(*shape, dtype=dtype, grad=grad, **more)
    return x(dtype=dtype, grad=grad, data=(torch.randn(shape, dtype=F64) * size).tolist(), **more)


def q(*shape, dtype=U8, **more):
    low, high = RANGE[dtype]
    return n(*shape, dtype=dtype, low=low, high=high + 1, **more)


def scales(*shape, dtype=F32, grad=False):
    if 0 in shape:
        return x(*shape, dtype=dtype, grad=grad)
    return x(dtype=dtype, grad=grad, data=(torch.rand(shape, dtype=F64) * 0.2 + 0.01).tolist())


def run(op, name, function, inputs, **options):
    Case("%s/%s" % (op, name), op, lambda *t: function(*t, **options), inputs, **options)


TIES = [
    0.5,
    1.5,
    2.5,
    -0.5,
    -1.5,
    254.5,
    255.5,
    1e30,
    -1e30,
    INF,
    -INF,
    NAN,
    0.0,
    -0.0,
    127.5,
    -128.5,
]

for dtype in (U8, I8, I16, I32):
    run("quantize", "ties-" + NAMES[dtype], quantize, [n(data=TIES), n(data=[1.0])], dtype=dtype)
    run("quantize", NAMES[dtype], quantize, [f(3, 5), scales(), q(dtype=dtype)], dtype=dtype)
for dtype in (F32, F16, BF16, F64):
    run("quantize", "of-" + NAMES[dtype], quantize, [f(2, 5, dtype=dtype), scales(2), q(2)])
run("quantize", "channels", quantize, [f(2, 3, 4), scales(3), q(3, dtype=I8)], dim=1)
run("quantize", "last-channels", quantize, [f(2, 3, 4), scales(4)], dim=-1, dtype=I8)
run("quantize", "blocks", quantize, [f(2, 12), scales(2, 3), q(2, 3)], dim=1, block=4)
run("quantize", "blocks-first", quantize, [f(6, 2), scales(3, 2)], dim=0, block=2, dtype=I8)
run("quantize", "rows", quantize, [f(2, 3, 4), scales(2, 3, 1), q(2, 3, 1)])
run("quantize", "four-bits", quantize, [f(3, 4), scales(3)], dtype=I8, qmin=-8, qmax=7)
run("quantize", "scalar", quantize, [f(), scales(), q()])
run("quantize", "empty", quantize, [f(0, 3), scales()])
run("quantize", "transposed", quantize, [f(4, 3, order=(1, 0)), scales(3), q(3)])
run("quantize", "narrowed", quantize, [f(4, 9, narrow=(1, 2, 5)), scales(1)])
run("quantize", "many", quantize, [f(7, 41), scales(41)], dim=1)

for dtype in (U8, I8, I16, I32):
    run("dequantize", NAMES[dtype], dequantize, [q(3, 5, dtype=dtype), scales(), q(dtype=dtype)])
for dtype in (F16, BF16, F64):
    run("dequantize", "to-" + NAMES[dtype], dequantize, [q(2, 5), scales(2), q(2)], dtype=dtype)
run("dequantize", "channels", dequantize, [q(2, 3, 4), scales(3, grad=True), q(3)], dim=1)
run(
    "dequantize",
    "blocks",
    dequantize,
    [q(2, 12, dtype=I8), scales(2, 3, grad=True)],
    dim=-1,
    block=4,
)
run("dequantize", "rows", dequantize, [q(2, 3, 4), scales(2, 3, 1), q(2, 3, 1)])
run("dequantize", "half-scale", dequantize, [q(2, 3), scales(2, dtype=F16)])
run("dequantize", "empty", dequantize, [q(0, 3), scales()])
run("dequantize", "turned", dequantize, [q(4, 3, order=(1, 0)), scales()])

for dtype, symmetric in ((U8, False), (I8, False), (U8, True), (I8, True)):
    name = "%s-%s" % (NAMES[dtype], "symmetric" if symmetric else "affine")
    o = dict(dtype=dtype, symmetric=symmetric)
    run("choose_qparams", name, choose_qparams, [f(3, 5)], **o)
    run("choose_qparams", name + "-channels", choose_qparams, [f(3, 5)], dims=[1], **o)
    run("choose_qparams", name + "-above", choose_qparams, [n(data=[1.0, 3.0])], **o)
    run("choose_qparams", name + "-below", choose_qparams, [n(data=[-1.0, -3.0, NAN])], **o)
    run("choose_qparams", name + "-zeros", choose_qparams, [n(data=[0.0, 0.0])], **o)
run("choose_qparams", "blocks", choose_qparams, [f(3, 8)], dims=[1], block=4, dtype=I8)
run("choose_qparams", "blocks-first", choose_qparams, [f(8, 3)], dims=[-2], block=2)
run("choose_qparams", "keepdim", choose_qparams, [f(2, 3, 4)], dims=[0, 2], keepdim=True)
run(
    "choose_qparams",
    "four-bits",
    choose_qparams,
    [f(3, 8)],
    dims=[1],
    dtype=I8,
    symmetric=True,
    qmin=-8,
    qmax=7,
)
run("choose_qparams", "quarter", choose_qparams, [f(3, 8)], qmin=0, qmax=127)
run("choose_qparams", "scalar", choose_qparams, [f()], eps=0.5)
run("choose_qparams", "half", choose_qparams, [f(3, 8, dtype=F16)])

for dtype, symmetric in ((U8, False), (I8, False), (I8, True)):
    name = "%s-%s" % (NAMES[dtype], "symmetric" if symmetric else "affine")
    o = dict(dtype=dtype, symmetric=symmetric)
    run("quantize_rows", name, quantize_rows, [f(3, 37)], **o)
    run("quantize_rows", name + "-vector", quantize_rows, [f(5)], **o)
    run(
        "quantize_rows",
        name + "-edges",
        quantize_rows,
        [n(data=[[0.0, 0.0, 0.0], [NAN, 1.0, -2.0], [3.0, 2.0, 1.0], [1e-45, 0.0, 0.0]])],
        **o
    )
run("quantize_rows", "half", quantize_rows, [f(2, 3, 4, dtype=F16)])
run("quantize_rows", "wide", quantize_rows, [f(2, 3, dtype=BF16)])
run("quantize_rows", "turned", quantize_rows, [f(7, 3, order=(1, 0))])

BYTES = dict(qmin=0, qmax=255)
for dtype in (F32, F64, F16, BF16):
    g = dict(dtype=dtype, grad=True)
    run(
        "fake_quantize",
        "one-" + NAMES[dtype],
        fake_quantize,
        [f(3, 4, **g), scales(), q(dtype=I32)],
        **BYTES
    )
for dtype in (F32, F64):
    g = dict(dtype=dtype, grad=True)
    run(
        "fake_quantize",
        "scale-" + NAMES[dtype],
        fake_quantize,
        [f(3, 4, **g), scales(**g)],
        qmin=-8,
        qmax=7,
    )
    run(
        "fake_quantize",
        "channels-" + NAMES[dtype],
        fake_quantize,
        [f(3, 4, 2, **g), scales(4, **g), q(4, dtype=I32)],
        qmin=-8,
        qmax=7,
        dim=1,
    )
    run(
        "fake_quantize",
        "blocks-" + NAMES[dtype],
        fake_quantize,
        [f(3, 6, **g), scales(3, 2, **g)],
        qmin=-8,
        qmax=7,
        dim=-1,
        block=3,
    )
    run(
        "fake_quantize",
        "rows-" + NAMES[dtype],
        fake_quantize,
        [f(3, 6, **g), scales(3, 1, **g)],
        qmin=-100,
        qmax=7,
    )
run("fake_quantize", "edges", fake_quantize, [n(data=TIES), n(data=[1.0])], **BYTES)
run("fake_quantize", "empty", fake_quantize, [f(0, 2, grad=True), scales()], **BYTES)

for a in (U8, I8):
    for b in (U8, I8):
        name = NAMES[a] + "-" + NAMES[b]
        run("matmul_int8", name, matmul_int8, [q(3, 5, dtype=a), q(5, 4, dtype=b)])
        run(
            "matmul_int8",
            name + "-zero",
            matmul_int8,
            [q(3, 5, dtype=a), q(5, 4, dtype=b), q(dtype=a), q(dtype=b)],
        )
        run(
            "matmul_int8",
            name + "-zeros",
            matmul_int8,
            [q(3, 5, dtype=a), q(5, 4, dtype=b), q(3, dtype=a), q(4, dtype=b)],
        )
run(
    "matmul_int8",
    "batch",
    matmul_int8,
    [q(2, 1, 3, 5), q(4, 5, 2, dtype=I8), q(2, 1, 3, 1), q(4, 1, 2, dtype=I8)],
)
run("matmul_int8", "turned", matmul_int8, [q(5, 3, order=(1, 0)), q(4, 5, dtype=I8, order=(1, 0))])
run("matmul_int8", "long", matmul_int8, [q(2, 130), q(130, 19, dtype=I8), q()])
run("matmul_int8", "none", matmul_int8, [q(2, 0), q(0, 3)])
run("matmul_int8", "row", matmul_int8, [q(1, 67, dtype=I8), q(67, 50, dtype=I8)])

W = dict(dtype=I8)
for dtype in (U8, I8):
    d = dict(dtype=dtype)
    name = NAMES[dtype]
    run(
        "linear_int8",
        name + "-plain",
        linear_int8,
        [q(3, 5, **d), scales(), q(4, 5, **W), scales(4)],
    )
    run(
        "linear_int8",
        name + "-rows",
        linear_int8,
        [
            q(2, 3, 70, **d),
            scales(2, 3, 1),
            q(20, 70, **W),
            scales(20),
            q(2, 3, 1, **d),
            None,
            f(20),
        ],
    )
    run(
        "linear_int8",
        name + "-affine",
        linear_int8,
        [q(3, 37, **d), scales(), q(17, 37), scales(17), q(**d), q(17), f(17)],
    )
    run(
        "linear_int8",
        name + "-integers",
        linear_int8,
        [
            q(3, 9, **d),
            scales(1),
            q(4, 9, **W),
            scales(4),
            q(1, **d),
            None,
            f(4),
            n(data=2.5),
            q(**d),
        ],
    )
    run(
        "linear_int8",
        name + "-sum",
        linear_int8,
        [
            q(3, 9, **d),
            scales(),
            q(4, 9, **W),
            scales(),
            None,
            None,
            None,
            n(data=1.5),
            None,
            q(3, 4, **W),
            scales(),
            q(**W),
        ],
        min=0.0,
        max=6.0,
        dtype=I8,
    )
run(
    "linear_int8",
    "floats",
    linear_int8,
    [q(3, 9), scales(3, 1), q(4, 9, **W), scales(4), q(3, 1), None, None, None, None, f(3, 4)],
    min=0.0,
)
run("linear_int8", "vector", linear_int8, [q(40), scales(1), q(33, 40, **W), scales(33), q(1)])
run("linear_int8", "no-rows", linear_int8, [q(0, 4), scales(), q(3, 4, **W), scales(3)])
run(
    "linear_int8",
    "none",
    linear_int8,
    [q(2, 0), scales(), q(3, 0, **W), scales(3), None, None, f(3)],
)
run(
    "linear_int8",
    "turned",
    linear_int8,
    [q(9, 3, order=(1, 0)), scales(), q(9, 4, order=(1, 0), **W), scales(4)],
)

for name, shape, weight, o in (
    ("1d", (2, 3, 9), (4, 3, 3), dict(stride=[2], padding=[1])),
    ("2d", (2, 3, 6, 5), (4, 3, 3, 3), dict(padding=[1])),
    (
        "2d-strides",
        (1, 4, 7, 8),
        (6, 2, 3, 2),
        dict(stride=[2, 1], padding=[1, 0], dilation=[1, 2], groups=2),
    ),
    ("2d-depthwise", (1, 4, 5, 5), (4, 1, 3, 3), dict(padding=[1], groups=4)),
    ("2d-points", (2, 5, 4, 3), (7, 5, 1, 1), {}),
    ("3d", (1, 2, 4, 3, 3), (3, 2, 2, 2, 2), dict(padding=[1])),
):
    images, outs = shape[0], weight[0]
    run(
        "convolution_int8",
        name,
        convolution_int8,
        [q(*shape), scales(), q(*weight, **W), scales(outs), q()],
        **o
    )
    run(
        "convolution_int8",
        name + "-integers",
        convolution_int8,
        [
            q(*shape, **W),
            scales(),
            q(*weight),
            scales(outs),
            q(**W),
            q(outs),
            f(outs),
            n(data=3.5),
            q(**W),
        ],
        min=0.0,
        **o
    )
run(
    "convolution_int8",
    "images",
    convolution_int8,
    [
        q(2, 3, 4, 4),
        scales(2, 1, 1, 1),
        q(5, 3, 2, 2, **W),
        scales(),
        q(2, 1, 1, 1),
        None,
        f(5),
        None,
        None,
        f(2, 5, 3, 3),
    ],
)
run(
    "convolution_int8",
    "channels-last",
    convolution_int8,
    [q(2, 4, 4, 3, order=(0, 3, 1, 2)), scales(), q(5, 3, 2, 2, **W), scales(5), q()],
)
run(
    "convolution_int8",
    "no-images",
    convolution_int8,
    [q(0, 3, 4, 4), scales(), q(5, 3, 2, 2, **W), scales(5)],
)

for dtype in (I8, U8):
    run("pack_int4", NAMES[dtype], pack_int4, [q(3, 6, dtype=dtype)])
    run("unpack_int4", NAMES[dtype], unpack_int4, [q(3, 4)], dtype=dtype)
run("pack_int4", "turned", pack_int4, [q(6, 3, order=(1, 0))])
run("pack_int4", "empty", pack_int4, [q(0, 2)])
run("unpack_int4", "vector", unpack_int4, [q(3)])

HALVES = [0.0, -0.0, 1.0, -2.5, 6e-8, 6e-5, 65504.0, INF, -INF, NAN]


def blocks(outs, ins, format):
    """A packed weight; those of the first rows have the scales above."""
    p = quantize_packed(torch.randn(outs, ins), format)
    return n(dtype=U8, data=p.tolist())


def edge_blocks(format):
    size = 34 if format == "q8_0" else 18
    p = torch.randint(0, 256, (len(HALVES), size)).to(U8)
    p[:, :2] = torch.tensor(HALVES, dtype=F16).reshape(-1, 1).view(U8)
    return n(dtype=U8, data=p.tolist())


for format in ("q8_0", "q4_0"):
    run("quantize_packed", format, quantize_packed, [f(3, 64)], format=format)
    run(
        "quantize_packed",
        format + "-edges",
        quantize_packed,
        [
            n(
                data=[
                    [0.0] * 32,
                    [NAN, 1.0] * 16,
                    [1e-7] * 32,
                    [-70000.0] + [3.0] * 31,
                    [-4.0, 4.0] * 16,
                ]
            )
        ],
        format=format,
    )
    run(
        "quantize_packed",
        format + "-half",
        quantize_packed,
        [f(2, 2, 32, dtype=F16)],
        format=format,
    )
    run("dequantize_packed", format, dequantize_packed, [blocks(3, 64, format)], format=format)
    run(
        "dequantize_packed",
        format + "-scales",
        dequantize_packed,
        [edge_blocks(format)],
        format=format,
    )
    run(
        "linear_packed",
        format,
        linear_packed,
        [f(2, 64, grad=True), blocks(5, 64, format), None, None, f(5, grad=True)],
        format=format,
    )


def weight(outs, ins, format):
    return q(outs, ins, dtype=I8) if format == "int8" else q(outs, ins // 2)


for format in ("int8", "int4", "uint4"):
    zero = U8 if format == "uint4" else I8
    z = lambda *shape: n(*shape, dtype=zero, low=0, high=8)
    run(
        "dequantize_packed",
        format,
        dequantize_packed,
        [weight(3, 8, format), scales(3)],
        format=format,
    )
    run(
        "dequantize_packed",
        format + "-groups",
        dequantize_packed,
        [weight(3, 8, format), scales(3, 2, dtype=F16), z(3, 2)],
        format=format,
        dtype=BF16,
    )
    run(
        "linear_packed",
        format,
        linear_packed,
        [f(3, 40, grad=True), weight(5, 40, format), scales(5)],
        format=format,
    )
    run(
        "linear_packed",
        format + "-groups",
        linear_packed,
        [
            f(2, 2, 96, grad=True),
            weight(19, 96, format),
            scales(19, 3, dtype=F16),
            z(19, 3),
            f(19, grad=True),
        ],
        format=format,
    )
    run(
        "linear_packed",
        format + "-few",
        linear_packed,
        [f(2, 24), weight(5, 24, format), scales(5, 3), None, f(5)],
        format=format,
    )
    run(
        "linear_packed",
        format + "-float",
        linear_packed,
        [f(2, 24, grad=True), weight(5, 24, format), scales(5, 3), z(5, 3), f(5, grad=True)],
        format=format,
        quantize_x=False,
    )
for dtype in (F16, BF16):
    run(
        "linear_packed",
        NAMES[dtype],
        linear_packed,
        [f(2, 64, dtype=dtype), q(6, 64, dtype=I8), scales(6, 2), None, f(6, dtype=dtype)],
    )
run("linear_packed", "vector", linear_packed, [f(33), q(6, 33, dtype=I8), scales(6)])
run(
    "linear_packed",
    "edges",
    linear_packed,
    [n(data=[[0.0] * 32 + [NAN, 2.0] * 16, [1e-45] * 64]), q(3, 64, dtype=I8), scales(3, 1)],
)
run("linear_packed", "no-rows", linear_packed, [f(0, 32), q(3, 32, dtype=I8), scales(3)])
run("linear_packed", "none", linear_packed, [f(2, 0), q(3, 0, dtype=I8), scales(3), None, f(3)])
