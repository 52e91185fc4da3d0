# SPDX-License-Identifier: MIT
#
# How opinfo.py writes a sample: inputs, options, results, gradients.
import torch

from opinfo_samples import WIDE, Outside
from pytorch_operators import ANY_INDEX, SINGLE

NAMES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.complex64: "c64",
    torch.complex128: "c128",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
}


def row(values):
    texts = [repr(v) if isinstance(v, float) else str(int(v)) for v in values]
    return ",".join(texts) or "-"


def clean(t):
    return t.detach().resolve_conj().resolve_neg()


def digits(v, dtype):
    if not dtype.is_floating_point:
        return str(int(v))
    return {torch.float64: "%.15g", torch.float32: "%.8g"}.get(dtype, "%.5g") % float(v)


class Writer:
    """The file: as text or with raw values.

    Cases named in `without` and those with a tensor of more than `most` elements stay out.
    """

    def __init__(self, path, text, most, without):
        self.file = open(path, "wb")
        self.text, self.most, self.without = text, most, without
        self.lines = []

    def line(self, text):
        self.lines.append(text.encode() + b"\n")

    def start(self, title, ours):
        title = title.replace(" ", "")
        if title in self.without:
            raise Outside("does not pass")
        self.lines = [("case %s\nop %s\n" % (title, ours)).encode()]

    def tensor(self, head, t):
        flat = clean(t).contiguous().flatten()
        if flat.numel() > self.most:
            raise Outside("size")
        if self.text:
            if flat.dtype == torch.int64 and (flat.to(torch.float64).abs() > 2.0**53).any():
                raise Outside("numbers beyond those of float64")
            if flat.is_complex():
                flat = torch.view_as_real(flat).flatten()
            self.line("%s : %s" % (head, " ".join(digits(v, flat.dtype) for v in flat.tolist())))
        else:
            start, size = flat.storage_offset() * flat.element_size(), flat.nbytes
            raw = bytes(flat.untyped_storage())[start : start + size]
            self.lines.append(("%s = %d\n" % (head, len(raw))).encode() + raw + b"\n")

    def keep(self):
        self.file.write(b"".join(self.lines))


def memory(t):
    """The row of elements beneath a tensor, from its first one."""
    span = 1 + sum((s - 1) * k for s, k in zip(t.shape, t.stride())) if t.numel() else 0
    return torch.as_strided(t, (span,), (1,), t.storage_offset())


def leaf(t, dtype=None):
    if dtype is not None:
        return clean(t).to(dtype)
    if t.is_conj() or t.is_neg():
        return clean(t).clone(memory_format=torch.preserve_format)
    return clean(t)


def differentiated(function, tensors, wants, cotangent, second):
    """Outputs, gradients and the gradients of those."""
    results = function(*tensors)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    leaves = [t for t, w in zip(tensors, wants) if w]
    if cotangent is None or not leaves or not results[0].requires_grad:
        return results, None, None
    c = cotangent.to(results[0].dtype)
    zero = [torch.zeros_like(t) for t in leaves]
    first = torch.autograd.grad(results[0], leaves, c, create_graph=second, allow_unused=True)
    first = [z if g is None else g for g, z in zip(first, zero)]
    again = None
    if second and any(g.requires_grad for g in first):
        roots = [g for g in first if g.requires_grad]
        ones = [torch.ones_like(g) for g in roots]
        again = torch.autograd.grad(roots, leaves, ones, allow_unused=True)
        again = [z if g is None else g for g, z in zip(again, zero)]
    return results, first, again


STEP = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 1e-5, torch.complex64: 1e-5}


class Loose:
    """How far PyTorch's own results of a case lie from the wide ones.

    0 where that is within the tolerance.
    """

    far = 0.0


def agree(exact, wide):
    """The wide result as the narrow type has it, where both are finite; else PyTorch's own."""
    rounded = wide.detach().to(exact.dtype)
    if exact.dtype in STEP and exact.numel() > 0:
        fine = torch.isfinite(exact) & torch.isfinite(rounded)
        wider = WIDE[exact.dtype]
        a, b = exact.detach().to(wider)[fine], rounded.to(wider)[fine]
        if a.numel() > 0 and (a - b).abs().max() > STEP[exact.dtype] * (1 + b.abs().max()):
            Loose.far = max(Loose.far, 2 * float((a - b).abs().max() / (1 + b.abs().max())))
    if exact.dtype.is_floating_point or exact.dtype.is_complex:
        return torch.where(torch.isfinite(exact) & torch.isfinite(rounded), rounded, exact.detach())
    return exact


def grad_free(first):
    return first is None or first[0].dtype != torch.float64


def sixteenths(like):
    """Random multiples of 1/16 in the shape of `like`."""
    return (torch.randn(like.shape, dtype=torch.float64) * 16).round() / 16


def write_input(out, t, mark):
    head = "in %s %s %s 0 %s" % (NAMES[t.dtype], row(t.shape), row(t.stride()), mark)
    out.tensor(head, memory(t.detach()))


def write_case(out, title, made, grad, as_it_is, second):
    ours, inputs, options, function = made
    out.start(title, ours)
    for key, value in options.items():
        if isinstance(value, (list, tuple, torch.Size)):
            value = row(value)
        elif isinstance(value, torch.dtype):
            value = NAMES.get(value)
            if value is None:
                raise Outside("dtype")
        elif isinstance(value, bool):
            value = int(value) if key == "value" else str(value)
        out.line("opt %s %s" % (key, value))
    if any(t is not None and not isinstance(t, torch.Tensor) for t in inputs):
        raise Outside("a number in place of a tensor")
    tensors = [None if t is None else leaf(t) for t in inputs]
    wants = [grad and t is not None and (t.is_floating_point() or t.is_complex()) for t in tensors]
    given = [t for t in tensors if t is not None]
    if any(t.layout != torch.strided or t.dtype not in NAMES or t.dim() > 16 for t in given):
        raise Outside("dtype or layout")
    for t in [t for t, w in zip(tensors, wants) if w]:
        t.requires_grad_()
    if ours == "clamp_tensor":
        wants_given = [w for t, w in zip(tensors, wants) if t is not None]
    else:
        wants_given, given = wants, tensors
    exact = differentiated(function, given, wants_given, None, False)[0][0]
    cotangent = None
    if grad and exact.requires_grad:
        cotangent = sixteenths(exact).to(exact.dtype)
        if exact.is_complex():
            real = cotangent.real
            cotangent = torch.complex(real, sixteenths(exact).to(real.dtype))
    second = second and cotangent is not None and not out.text
    results, first, again = differentiated(function, given, wants_given, cotangent, second)
    Loose.far = 0.0
    widened = any(t is not None and t.dtype in WIDE for t in given)
    if widened and (not as_it_is or given[0].dtype in (torch.float16, torch.bfloat16)):
        wide = [t if t is None or t.dtype not in WIDE else leaf(t, WIDE[t.dtype]) for t in given]
        for t, w in zip(wide, wants_given):
            if w:
                t.requires_grad_()
        more, first64, _ = differentiated(function, wide, wants_given, cotangent, False)
        results = [agree(a, b) for a, b in zip(results, more)]
        first = first and [agree(a, b) for a, b in zip(first, first64)]
    for t, w in zip(tensors, wants):
        if t is None:
            out.line("in none")
            continue
        if any(k < 0 for k in t.stride()):
            raise Outside("strides")
        write_input(out, t, "g" if w and first else "-")
    if title.split("/")[0] in SINGLE and not grad_free(first):
        Loose.far = max(Loose.far, 1e-7)
    if Loose.far > 0:
        out.line("loose %g" % Loose.far)
    for t in results[:1] if ours in ANY_INDEX else results:
        if t.dtype not in NAMES:
            raise Outside("dtype")
        out.tensor("out %s %s" % (NAMES[t.dtype], row(t.shape)), t)
    if first:
        out.tensor("cot", cotangent)
        places = [i for i, w in enumerate(wants) if w]
        for at, g in zip(places, first):
            out.tensor("grad %d" % at, g)
        if again:
            for at, g in zip(places, again):
                out.tensor("second %d" % at, g)
    out.keep()


def write_refused(out, title, made):
    ours, inputs, options, function = made
    try:
        function(*inputs)
    except Exception:
        pass
    else:
        raise Outside("PyTorch refuses what our operator cannot be asked")
    out.start(title, ours)
    for key, value in options.items():
        if isinstance(value, (list, tuple, torch.Size)):
            value = row(value)
        elif isinstance(value, torch.dtype):
            value = NAMES.get(value, value)
        out.line("opt %s %s" % (key, value))
    for t in inputs:
        if t is None:
            out.line("in none")
            continue
        if t.device.type != "cpu" or t.dtype not in NAMES or t.dim() > 16:
            raise Outside("device or dtype")
        write_input(out, t, "-")
    out.line("refused")
    out.keep()
