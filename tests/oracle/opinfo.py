#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# PyTorch's own samples (OpInfo), and its own error samples, for every operator of our list, as tests/oracle/replay_opinfo.c
# reads them. pytorch_operators.py has the table of operators.
#
#   PYTHON-WITH-TORCH opinfo.py SCHEMA-FOLDER FILE [OPERATORS]    all of them, with raw values
#   PYTHON-WITH-TORCH opinfo.py --text SCHEMA-FOLDER FILE         a few for each operator and class, as text; cases that
#                                                                 the environment's EXCEPT, a file, has the names of stay out
#
# Outputs and gradients of f32, f16, bf16 and c64 are computed in float64 and complex128, then rounded.
import collections, glob, itertools, os, re, sys, types, unittest, warnings

warnings.simplefilter("ignore")
try:
    import torch
except ImportError:
    sys.exit(77)
try:
    import expecttest  # noqa: F401: PyTorch's test helpers want it for their own tests only
except ImportError:
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    sys.modules["expecttest"].TestCase = unittest.TestCase
from torch.testing._internal.common_methods_invocations import op_db

from pytorch_operators import AS_IT_IS, JUMPS, MAP, RENAMED, SHIFTED, SINGLE, add_plain

F = torch.nn.functional

torch.set_num_threads(1)
TEXT = "--text" in sys.argv
EXCEPT = set(open(os.environ["EXCEPT"]).read().split()) if "EXCEPT" in os.environ else set()
ARGS = [a for a in sys.argv[1:] if a != "--text"]
NAMES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16",
         torch.complex64: "c64", torch.complex128: "c128", torch.int64: "i64", torch.int32: "i32",
         torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool"}
CLASSES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.complex128,
           torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool]
WIDE = {torch.float32: torch.float64, torch.float16: torch.float64, torch.bfloat16: torch.float64,
        torch.complex64: torch.complex128}
MOST = 40 if TEXT else 4000         # elements of a tensor
EACH = 2 if TEXT else 12            # samples of an operator and class, and as many reference inputs


def read_schema(folder):
    ops, row = {}, None
    for path in glob.glob(os.path.join(folder, "*.ops")):
        for line in open(path):
            word = line.split()
            if word[:1] == ["op"]:
                row = set()
                ops.update((name, row) for name in line.split(" rev ")[0].split()[1:])
            elif word[:1] in (["opt"], ["arg"]):
                row.add(word[1])
    return ops


class Outside(Exception):
    """A sample that says something for which our operator has no word."""


def like(value, other):
    """A number as a 0-d tensor that takes part in promotion as the number does beside `other`."""
    kind = (torch.complex64 if isinstance(value, complex) else torch.float32 if isinstance(value, float) else
            torch.bool if isinstance(value, bool) else torch.int64)
    if isinstance(other, torch.Tensor) and torch.result_type(other, torch.zeros(1, dtype=kind)[0]) == other.dtype:
        kind = other.dtype
    elif isinstance(other, torch.Tensor) and other.dtype in (torch.float64, torch.complex128) and kind.is_complex:
        kind = torch.complex128
    return torch.tensor(value).to(kind)


def row(values):
    return ",".join(repr(v) if isinstance(v, float) else str(int(v)) for v in values) if len(values) else "-"


def name_of(info):
    name = RENAMED.get(info.name, info.name.replace("nn.functional.", ""))
    return name + ("/" + info.variant_test_name if info.variant_test_name else "")


def option(kind, value):
    if kind == "d":
        return [] if value is None else [value] if isinstance(value, int) else list(value)
    if kind == "i":
        return [value] if isinstance(value, int) else list(value)
    if kind in ("1", "2", "3"):
        value = [value] * int(kind) if isinstance(value, int) else value
        if isinstance(value, str) or any(v is None for v in value):
            raise Outside("a word or nothing among sizes")
        return list(value) * (int(kind) if len(value) == 1 else 1)
    if kind == "n" and isinstance(value, torch.Tensor):
        if value.dim() > 0 or value.dtype == torch.bool:
            raise Outside("a tensor for a number")
        return value.item()
    return value


def bound(info, spec, sample, schema):
    """(our operator, input tensors, options, function of the tensors) for a sample."""
    ours, *params = spec.split()
    rows = [re.match(r"(\w+)(?::(\w))?(?:=(\w+))?$", p).groups() for p in params]
    given = dict(zip([r[0] for r in rows], [sample.input, *sample.args]))
    if len(sample.args) + 1 > len(rows):
        if rows[-1][1] == "i" and all(isinstance(v, int) for v in sample.args):
            given[rows[-1][0]] = sample.args[len(rows) - 2:]
        else:
            raise Outside("arguments")
    positional = list(given)
    for key, value in sample.kwargs.items():
        known = [r for r in rows if r[0] == key] or [r for r in rows if r[2] == key]
        if not known:
            raise Outside(key)
        given[known[0][0]] = value
    inputs, places, options, dtype = [], [], {"dim": 0} if ours in ("cat", "stack") else {}, None
    for param, kind, to in rows:
        if kind == "O" and given.get(param) is None:
            places.append((param, None))
            inputs.append(None)
            continue
        if param not in given:
            continue
        value = given[param]
        if kind == "L":
            places += [(param, i) for i in range(len(value))]
            inputs += list(value)
        elif kind in ("S", "T", "O"):
            if not isinstance(value, torch.Tensor) and value is not None:
                if kind != "S" or not isinstance(value, (int, float, complex)):
                    raise Outside(param)
                other = [given[r[0]] for r in rows if r[1] in ("S", "T") and r[0] != param]
                value = like(value, other[0] if other else None)
            places.append((param, None))
            inputs.append(value)
        elif kind == "z":
            if value:
                raise Outside(param)
        elif kind == "t":
            dtype = value
            if value is not None and "dtype" in schema[ours]:
                options["dtype"] = value
        elif kind != "x" and value is not None:
            options[to or param] = option(kind, value)
    if dtype is not None and "dtype" not in options and not dtype.is_floating_point:
        raise Outside("dtype")
    if dtype is not None and "dtype" not in options:  # PyTorch's meaning: the input is converted first
        inputs[0] = inputs[0].to(dtype)
    if ours in ("linear", "bilinear") and len(inputs) < (3 if ours == "linear" else 4):
        inputs.append(None)
    if options.get("p") == "fro":
        del options["p"]
    for key, value in options.items():
        if isinstance(value, torch.Tensor) or isinstance(value, complex) or value == "nuc":
            raise Outside(key)
        if key not in schema[ours]:
            raise Outside(key)
    if any(t is not None and not isinstance(t, torch.Tensor) for t in inputs):
        raise Outside("input")
    for (param, _), t in zip(places, inputs):
        if param == "index" and t.dtype != torch.int64:
            raise Outside("an index that is not int64")
        if t is not None and t.is_complex() and not inputs[0].is_complex() and ours in ("addcmul", "addcdiv"):
            raise Outside("complex among real ones")
    if inputs and ours in ("addmm", "baddbmm") and not inputs[0].is_floating_point() and any(options.get(k, 1) % 1 for k in ("alpha", "beta") if not inputs[0].is_complex()):
        raise Outside("a fraction for integers")
    if ours == "sum_to" and not (inputs[0].is_floating_point() or inputs[0].is_complex()):
        raise Outside("integers, whose sum PyTorch widens")
    if ours.startswith("adaptive_") and (not options["output_size"] or -1 in options["output_size"]):
        raise Outside("a size left out, or -1, which keeps the size of x here")
    if ours == "normalize" and inputs[0].dtype in (torch.float16, torch.bfloat16) and options.get("p", 2) not in (1, 2):
        raise Outside("gradients that cancel, of roots and inverses in half precision")
    if ours in JUMPS and torch.isnan(inputs[0]).any():
        raise Outside("NaN, where PyTorch's vectors and numbers have different gradients")
    if ours == "topk" and inputs[0].unique().numel() < inputs[0].numel():
        raise Outside("equal numbers, of which any may be taken")
    if ours == "softsign" and not torch.isfinite(inputs[0]).all():
        raise Outside("infinities, where PyTorch's gradient is NaN and the limit is 0")

    def function(*tensors):
        now = {k: list(v) if isinstance(v, (list, tuple)) and any(p == k and i is not None for p, i in places) else v
               for k, v in given.items()}
        for (param, index), t in zip(places, tensors):
            if index is None:
                now[param] = t
            else:
                now[param][index] = t
        if now.get("dtype") is not None and tensors[0].dtype in (torch.float64, torch.complex128):
            now["dtype"] = WIDE.get(now["dtype"], now["dtype"])
        if ours == "sort":
            return torch.sort(now["input"], stable=True, dim=now.get("dim", -1), descending=now.get("descending", False))
        args = [now[k] for k in positional]
        if len(sample.args) + 1 > len(rows):
            args = args[:-1] + list(now[positional[-1]])
        return info.op(*args, **{k: now.get(k, v) for k, v in sample.kwargs.items()})

    return ours, inputs, options, function


# ---- what the table cannot say: name -> (sample) -> (our operator, inputs, options, function) ----
def one(sample, index, name, default=None):
    return sample.args[index] if len(sample.args) > index else sample.kwargs.get(name, default)


def clamp(sample):
    low, high = one(sample, 0, "min"), one(sample, 1, "max")
    if any(isinstance(v, torch.Tensor) for v in (low, high)):
        return "clamp_tensor", [sample.input, low, high], {}, lambda x, *more: torch.clamp(x, more[0] if low is not None else None, more[-1] if high is not None else None)
    return "clamp", [sample.input], {k: v for k, v in (("min", low), ("max", high)) if v is not None}, lambda x: torch.clamp(x, low, high)


def clamp_one(side):
    def made(sample):
        return clamp(types.SimpleNamespace(input=sample.input, args=(), kwargs={side: one(sample, 0, side)}))
    return made


def lerp(sample):
    weight = one(sample, 1, "weight")
    if isinstance(weight, torch.Tensor):
        return "lerp", [sample.input, sample.args[0], weight], {}, torch.lerp
    if isinstance(weight, complex):
        raise Outside("weight")
    return "lerp_scalar", [sample.input, sample.args[0]], {"weight": weight}, lambda a, b: torch.lerp(a, b, weight)


def where(sample):
    condition, other = sample.args
    return "where", [condition, sample.input, other if isinstance(other, torch.Tensor) else like(other, sample.input)], {}, torch.where


def spread(call):
    def made(sample):
        dim, keep = sample.kwargs.get("dim"), bool(sample.kwargs.get("keepdim"))
        correction = sample.kwargs.get("correction")
        for value in sample.args:
            if isinstance(value, bool):
                correction = int(value)
            else:
                dim = value
        if isinstance(sample.kwargs.get("unbiased"), bool):
            correction = int(sample.kwargs["unbiased"])
        correction = 1 if correction is None else correction
        return call.__name__, [sample.input], {"dims": option("d", dim), "keepdim": keep, "correction": correction}, (
            lambda x: call(x, dim, correction=correction, keepdim=keep))
    return made


def made_of(call, names):
    def made(sample):
        options = dict(zip(names, (sample.input, *sample.args)))
        options.update({k: v for k, v in sample.kwargs.items() if k in names})
        extra = {k: v for k, v in sample.kwargs.items() if k not in names and k not in ("dtype", "device", "requires_grad")}
        if extra or any(isinstance(v, (torch.Tensor, complex)) for v in options.values()):
            raise Outside("arguments")
        dtype = sample.kwargs.get("dtype")
        if call is torch.arange and "end" not in options:
            options = {"start": 0, "end": options["start"]}
        if dtype is not None:
            options["dtype"] = dtype
        result = call(sample.input, *sample.args, **{k: v for k, v in sample.kwargs.items() if k != "device"}).detach()
        if dtype is None and result.dtype != torch.float32:
            options["dtype"] = result.dtype
        return call.__name__, [None], options, lambda nothing: result
    return made


def index_put(sample):
    indices, values = sample.args[0], sample.args[1]
    add = bool(one(sample, 2, "accumulate", False))
    if any(t is None or t.dtype != torch.int64 for t in indices):
        raise Outside("indices that are masks or absent")
    return "index_put", [sample.input, values, *indices], {"accumulate": add}, lambda x, v, *at: torch.index_put(x, at, v, add)


def scatter(info, schema):
    def made(sample):
        if len(sample.args) == 3 and not isinstance(sample.args[2], torch.Tensor) and not sample.kwargs:
            dim, index, value = sample.args
            if isinstance(value, complex) and not sample.input.is_complex():
                raise Outside("value")
            return "scatter", [sample.input, index, torch.full(index.shape, value, dtype=sample.input.dtype)], {"dim": dim}, lambda x, i, s: torch.scatter(x, dim, i, s)
        return bound(info, MAP["scatter"], sample, schema)
    return made


def einsum(sample):
    equation = sample.args[0].replace(" ", "")
    if sample.input[0].dtype in (torch.int32, torch.int16, torch.int8, torch.uint8):
        raise Outside("small integers, whose sums PyTorch widens in some equations")
    return "einsum", list(sample.input), {"equation": equation}, lambda *t: torch.einsum(equation, *t)


def interpolate(sample):
    names = ("size", "scale_factor", "mode", "align_corners", "recompute_scale_factor")
    given = {k: one(sample, i, k) for i, k in enumerate(names)}
    dims = sample.input.dim() - 2
    size, factors = given["size"], given["scale_factor"]
    options = {"mode": given["mode"] or "nearest", "align_corners": bool(given["align_corners"]), "recompute_scale_factor": bool(given["recompute_scale_factor"])}
    options["output_size"] = [] if size is None else [size] * dims if isinstance(size, int) else list(size)
    if factors is not None:
        options["scale_factor"] = [float(f) for f in (factors if isinstance(factors, (list, tuple)) else [factors])]
    return "interpolate", [sample.input], options, lambda x: F.interpolate(x, **given)


OWN = {"clamp": clamp, "clamp_min": clamp_one("min"), "clamp_max": clamp_one("max"), "lerp": lerp, "where": where, "einsum": einsum,
       "var": spread(torch.var), "std": spread(torch.std), "var/unbiased": spread(torch.var), "std/unbiased": spread(torch.std),
       "arange": made_of(torch.arange, ("start", "end", "step")), "linspace": made_of(torch.linspace, ("start", "end", "steps")),
       "eye": made_of(torch.eye, ("n", "m")), "full": made_of(torch.full, ("shape", "value")), "index_put": index_put}
OWN.update({"interpolate/" + mode: interpolate for mode in ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear")})


# ---- writing ----
def clean(t):
    return t.detach().resolve_conj().resolve_neg()


def digits(v, dtype):
    if not dtype.is_floating_point:
        return str(int(v))
    return {torch.float64: "%.15g", torch.float32: "%.8g"}.get(dtype, "%.5g") % float(v)


class Writer:
    def __init__(self, path):
        self.file = open(path, "wb")
        self.lines = []

    def line(self, text):
        self.lines.append(text.encode() + b"\n")

    def start(self, title, ours):
        title = title.replace(" ", "")
        if title in EXCEPT:
            raise Outside("does not pass")
        self.lines = [("case %s\nop %s\n" % (title, ours)).encode()]

    def tensor(self, head, t):
        flat = clean(t).contiguous().flatten()
        if flat.numel() > MOST:
            raise Outside("size")
        if TEXT:
            if flat.dtype == torch.int64 and flat.numel() > 0 and flat.to(torch.float64).abs().max() > 2.0**53:
                raise Outside("numbers beyond those of float64")
            if flat.is_complex():
                flat = torch.view_as_real(flat).flatten()
            self.line("%s : %s" % (head, " ".join(digits(v, flat.dtype) for v in flat.tolist())))
        else:
            raw = bytes(flat.untyped_storage())[flat.storage_offset() * flat.element_size():][:flat.numel() * flat.element_size()]
            self.lines.append(("%s = %d\n" % (head, len(raw))).encode() + raw + b"\n")

    def keep(self):
        self.file.write(b"".join(self.lines))


def memory(t):
    """The row of elements beneath a tensor, from its first one."""
    span = 1 + sum((s - 1) * k for s, k in zip(t.shape, t.stride())) if t.numel() else 0
    return torch.as_strided(t, (span,), (1,), t.storage_offset())


def leaf(t, dtype=None):
    if dtype is None:
        return clean(t).clone(memory_format=torch.preserve_format) if t.is_conj() or t.is_neg() else clean(t)
    return clean(t).to(dtype)


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
        again = torch.autograd.grad([g for g in first if g.requires_grad], leaves,
                                    [torch.ones_like(g) for g in first if g.requires_grad], allow_unused=True)
        again = [z if g is None else g for g, z in zip(again, zero)]
    return results, first, again


STEP = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 1e-5, torch.complex64: 1e-5}


class Loose:
    """How far PyTorch's own results of a case lie from the wide ones, where that is more than the tolerance."""
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
        raise Outside("a number where a tensor stands")
    tensors = [None if t is None else leaf(t) for t in inputs]
    wants = [grad and t is not None and (t.is_floating_point() or t.is_complex()) for t in tensors]
    given = [t for t in tensors if t is not None]
    if any(t.layout != torch.strided or t.dtype not in NAMES or t.dim() > 16 for t in given):
        raise Outside("dtype or layout")
    for t in [t for t, w in zip(tensors, wants) if w]:
        t.requires_grad_()
    exact, _, _ = differentiated(function, tensors if ours not in ("clamp_tensor",) else given, wants, None, False)
    cotangent = None
    if grad and exact[0].requires_grad:
        cotangent = ((torch.randn(exact[0].shape, dtype=torch.float64) * 16).round() / 16).to(exact[0].dtype)
        if exact[0].is_complex():
            cotangent = torch.complex(cotangent.real, (torch.randn(exact[0].shape, dtype=torch.float64) * 16).round().to(cotangent.real.dtype) / 16)
    if ours == "clamp_tensor":
        wants_given = [w for t, w in zip(tensors, wants) if t is not None]
    else:
        wants_given, given = wants, tensors
    second = second and cotangent is not None and not TEXT
    results, first, again = differentiated(function, given, wants_given, cotangent, second)
    Loose.far = 0.0
    if (not as_it_is or given[0].dtype in (torch.float16, torch.bfloat16)) and any(t is not None and t.dtype in WIDE for t in given):
        wide = [t if t is None or t.dtype not in WIDE else leaf(t, WIDE[t.dtype]) for t in given]
        for t, w in zip(wide, wants_given):
            if w:
                t.requires_grad_()
        more, first64, _ = differentiated(function, wide, wants_given, cotangent, False)
        results = [agree(a, b) for a, b in zip(results, more)]
        first = first and [agree(a, b) for a, b in zip(first, first64)]
    at = 0
    for t, w in zip(tensors, wants):
        if t is None:
            out.line("in none")
            continue
        if any(k < 0 for k in t.stride()):
            raise Outside("strides")
        out.tensor("in %s %s %s 0 %s" % (NAMES[t.dtype], row(t.shape), row(t.stride()), "g" if w and first else "-"), memory(t.detach()))
    if title.split("/")[0] in SINGLE and not grad_free(first):
        Loose.far = max(Loose.far, 1e-7)
    if Loose.far > 0:
        out.line("loose %g" % Loose.far)
    for t in results[:1] if ours in ("topk", "max_dim", "min_dim") else results:
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
        value = row(value) if isinstance(value, (list, tuple, torch.Size)) else NAMES.get(value, value) if isinstance(value, torch.dtype) else value
        out.line("opt %s %s" % (key, value))
    for t in inputs:
        if t is None:
            out.line("in none")
            continue
        if t.device.type != "cpu" or t.dtype not in NAMES or t.dim() > 16:
            raise Outside("device or dtype")
        out.tensor("in %s %s %s 0 -" % (NAMES[t.dtype], row(t.shape), row(t.stride())), memory(t.detach()))
    out.line("refused")
    out.keep()


def main():
    schema = read_schema(ARGS[0])
    add_plain(ARGS[0])
    out = Writer(ARGS[1])
    only = set(ARGS[2:])
    outside = collections.Counter()
    for info in sorted(op_db, key=lambda o: (o.name, o.variant_test_name)):
        name = name_of(info)
        if name not in MAP and name not in OWN or name.startswith(("signal", "masked.")) or (only and name not in only):
            continue
        make = scatter(info, schema) if name == "scatter" else OWN.get(name) or (lambda s: bound(info, MAP[name], s, schema))
        for dtype in CLASSES:
            if dtype not in info.supported_dtypes("cpu"):
                continue
            grad = info.supports_autograd and dtype in info.supported_backward_dtypes("cpu")
            torch.manual_seed(3)
            done = 0
            samples = list(itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=False), 4 * EACH))
            first = len(samples)
            if not TEXT and dtype in (torch.float32, torch.float64, torch.int64) and info.reference_inputs_func is not None:
                samples += itertools.islice(info.reference_inputs("cpu", dtype, requires_grad=False), 4 * EACH)
            for index, sample in enumerate(samples):
                if index == first:
                    done = 0
                if done >= EACH:
                    continue
                try:
                    write_case(out, "%s/%s/%d" % (name, NAMES[dtype], index), make(sample), grad, name in AS_IT_IS,
                               dtype in (torch.float64, torch.complex128) and index < 6 and info.supports_gradgrad and
                               name not in SHIFTED)
                    done += 1
                except Outside as why:
                    outside["%s: %s" % (name, why)] += 1
                except (RuntimeError, NotImplementedError) as why:
                    outside["%s: %s" % (name, str(why).split("\n")[0][:80])] += 1
        if info.error_inputs_func is not None:
            for index, error in enumerate(info.error_inputs("cpu")):
                try:
                    write_refused(out, "%s/refused/%d" % (name, index), make(error.sample_input))
                except (Outside, AttributeError, TypeError, IndexError, KeyError, ValueError, RuntimeError) as why:
                    outside["%s: refused/%d: %s" % (name, index, str(why)[:60])] += 1
    out.file.write(b"end\n")
    for what, count in sorted(outside.items()):
        print("left out: %s (%d)" % (what, count))


main()
