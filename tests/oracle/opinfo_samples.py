# SPDX-License-Identifier: MIT
#
# The samples of opinfo.py: calls of our operators, made from calls of PyTorch's functions.
import re
import types

import torch

from pytorch_operators import JUMPS, MAP, RENAMED

F = torch.nn.functional
# PyTorch computes the expected results in these.
WIDE = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
}


class Outside(Exception):
    """A sample that says something for which our operator has no word."""


def like(value, other):
    """A number as a 0-d tensor that takes part in promotion as the number does beside `other`."""
    kinds = ((complex, torch.complex64), (float, torch.float32), (bool, torch.bool))
    kind = next((dtype for known, dtype in kinds if isinstance(value, known)), torch.int64)
    if isinstance(other, torch.Tensor):
        if torch.result_type(other, torch.zeros(1, dtype=kind)[0]) == other.dtype:
            kind = other.dtype
        elif other.dtype in (torch.float64, torch.complex128) and kind.is_complex:
            kind = torch.complex128
    return torch.tensor(value).to(kind)


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
            given[rows[-1][0]] = sample.args[len(rows) - 2 :]
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
    # PyTorch's meaning: the input is converted first
    if dtype is not None and "dtype" not in options:
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
        if param == "index" and t.dtype not in (torch.int64, torch.int32):
            raise Outside("an index that is neither int64 nor int32")
        complex_here = t is not None and t.is_complex() and not inputs[0].is_complex()
        if complex_here and ours in ("addcmul", "addcdiv"):
            raise Outside("complex among real ones")
    integers = inputs and not (inputs[0].is_floating_point() or inputs[0].is_complex())
    if integers and ours in ("addmm", "baddbmm"):
        if any(options.get(k, 1) % 1 for k in ("alpha", "beta")):
            raise Outside("a fraction for integers")
    if integers and ours == "sum_to":
        raise Outside("integers, whose sum PyTorch widens")
    size = options.get("output_size")
    if ours.startswith("adaptive_") and (not size or -1 in size):
        raise Outside("a size left out, or -1, which keeps the size of x here")
    half = inputs and inputs[0].dtype in (torch.float16, torch.bfloat16)
    if half and ours == "normalize" and options.get("p", 2) not in (1, 2):
        raise Outside("gradients that cancel, of roots and inverses in half precision")
    if ours in JUMPS and torch.isnan(inputs[0]).any():
        raise Outside("NaN, where PyTorch's vectors and numbers have different gradients")
    if ours == "topk" and inputs[0].unique().numel() < inputs[0].numel():
        raise Outside("equal numbers, of which any may be taken")
    if ours == "softsign" and not torch.isfinite(inputs[0]).all():
        raise Outside("infinities, where PyTorch's gradient is NaN and the limit is 0")

    def function(*tensors):
        lists = {param for param, index in places if index is not None}
        now = {k: list(v) if k in lists else v for k, v in given.items()}
        for (param, index), t in zip(places, tensors):
            if index is None:
                now[param] = t
            else:
                now[param][index] = t
        if now.get("dtype") is not None and tensors[0].dtype in (torch.float64, torch.complex128):
            now["dtype"] = WIDE.get(now["dtype"], now["dtype"])
        if ours == "sort":
            dim, down = now.get("dim", -1), now.get("descending", False)
            return torch.sort(now["input"], stable=True, dim=dim, descending=down)
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

        def between(x, *more):
            a, b = None if low is None else more[0], None if high is None else more[-1]
            return torch.clamp(x, a, b)

        return "clamp_tensor", [sample.input, low, high], {}, between
    options = {k: v for k, v in (("min", low), ("max", high)) if v is not None}
    return "clamp", [sample.input], options, lambda x: torch.clamp(x, low, high)


def clamp_one(side):
    def made(sample):
        bounds = {side: one(sample, 0, side)}
        return clamp(types.SimpleNamespace(input=sample.input, args=(), kwargs=bounds))

    return made


def lerp(sample):
    weight = one(sample, 1, "weight")
    if isinstance(weight, torch.Tensor):
        return "lerp", [sample.input, sample.args[0], weight], {}, torch.lerp
    if isinstance(weight, complex):
        raise Outside("weight")
    tensors = [sample.input, sample.args[0]]
    return "lerp_scalar", tensors, {"weight": weight}, lambda a, b: torch.lerp(a, b, weight)


def where(sample):
    condition, other = sample.args
    if not isinstance(other, torch.Tensor):
        other = like(other, sample.input)
    return "where", [condition, sample.input, other], {}, torch.where


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
        options = {"dims": option("d", dim), "keepdim": keep, "correction": correction}

        def function(x):
            return call(x, dim, correction=correction, keepdim=keep)

        return call.__name__, [sample.input], options, function

    return made


def made_of(call, names):
    def made(sample):
        options = dict(zip(names, (sample.input, *sample.args)))
        options.update({k: v for k, v in sample.kwargs.items() if k in names})
        extra = set(sample.kwargs) - {*names, "dtype", "device", "requires_grad"}
        if extra or any(isinstance(v, (torch.Tensor, complex)) for v in options.values()):
            raise Outside("arguments")
        dtype = sample.kwargs.get("dtype")
        if call is torch.arange and "end" not in options:
            options = {"start": 0, "end": options["start"]}
        if dtype is not None:
            options["dtype"] = dtype
        more = {k: v for k, v in sample.kwargs.items() if k != "device"}
        result = call(sample.input, *sample.args, **more).detach()
        if dtype is None and result.dtype != torch.float32:
            options["dtype"] = result.dtype
        return call.__name__, [None], options, lambda nothing: result

    return made


def index_put(sample):
    indices, values = sample.args[0], sample.args[1]
    add = bool(one(sample, 2, "accumulate", False))
    if any(t is None or t.dtype not in (torch.int64, torch.int32) for t in indices):
        raise Outside("indices that are masks or absent")

    def function(x, v, *at):
        return torch.index_put(x, at, v, add)

    return "index_put", [sample.input, values, *indices], {"accumulate": add}, function


def scatter(info, schema):
    def made(sample):
        if sample.kwargs or len(sample.args) != 3 or isinstance(sample.args[2], torch.Tensor):
            return bound(info, MAP["scatter"], sample, schema)
        dim, index, value = sample.args
        if isinstance(value, complex) and not sample.input.is_complex():
            raise Outside("value")
        values = torch.full(index.shape, value, dtype=sample.input.dtype)

        def function(x, i, s):
            return torch.scatter(x, dim, i, s)

        return "scatter", [sample.input, index, values], {"dim": dim}, function

    return made


def median(call):
    def made(sample):
        dim, keep = one(sample, 0, "dim"), one(sample, 1, "keepdim", False)
        if dim is None:
            return call.__name__, [sample.input], {}, call
        options = {"dim": dim, "keepdim": keep}
        return call.__name__ + "_dim", [sample.input], options, lambda x: call(x, dim, keep)

    return made


def einsum(sample):
    equation = sample.args[0].replace(" ", "")
    if sample.input[0].dtype in (torch.int32, torch.int16, torch.int8, torch.uint8):
        raise Outside("small integers, whose sums PyTorch widens in some equations")
    options = {"equation": equation}
    return "einsum", list(sample.input), options, lambda *t: torch.einsum(equation, *t)


def interpolate(sample):
    names = ("size", "scale_factor", "mode", "align_corners", "recompute_scale_factor")
    given = {k: one(sample, i, k) for i, k in enumerate(names)}
    dims = sample.input.dim() - 2
    size, factors = given["size"], given["scale_factor"]
    options = {
        "mode": given["mode"] or "nearest",
        "align_corners": bool(given["align_corners"]),
        "recompute_scale_factor": bool(given["recompute_scale_factor"]),
    }
    size = [size] * dims if isinstance(size, int) else size
    options["output_size"] = [] if size is None else list(size)
    if factors is not None:
        factors = factors if isinstance(factors, (list, tuple)) else [factors]
        options["scale_factor"] = [float(f) for f in factors]
    return "interpolate", [sample.input], options, lambda x: F.interpolate(x, **given)


def repeat_interleave(sample):
    names = ("repeats", "dim", "output_size")
    repeats, dim, size = (one(sample, i, k) for i, k in enumerate(names))
    options = {} if dim is None else {"dim": dim}
    if not isinstance(repeats, torch.Tensor):
        options = {"repeats": repeats, **options}

        def by_number(x):
            return torch.repeat_interleave(x, repeats, dim)

        return "repeat_interleave_scalar", [sample.input], options, by_number
    if size is not None:
        options["output_size"] = size

    def by_tensor(x, r):
        return torch.repeat_interleave(x, r, dim, output_size=size)

    return "repeat_interleave", [sample.input, repeats], options, by_tensor


def distinct(name, call, names):
    """unique and unique_consecutive, which have three outputs here.

    Those not asked for are empty.
    """

    def made(sample):
        options = {k: one(sample, i, k) for i, k in enumerate(names)}
        options = {k: v for k, v in options.items() if v is not None}

        def function(x):
            out, outs = call(x, **options), [torch.zeros(0, dtype=torch.int64)] * 2
            out = list(out) if isinstance(out, tuple) else [out]
            for i, k in enumerate(("return_inverse", "return_counts")):
                if options.get(k):
                    outs[i] = out.pop(1)
            return out[:1] + outs

        return name, [sample.input], options, function

    return made


def isin(sample):
    options = {k: v for k, v in sample.kwargs.items() if k in ("assume_unique", "invert")}
    given = [sample.input, *sample.args, *(v for k, v in sample.kwargs.items() if k not in options)]
    tensors = [
        t if isinstance(t, torch.Tensor) else like(t, given[1 - i]) for i, t in enumerate(given)
    ]
    return "isin", tensors, options, lambda a, b: torch.isin(a, b, **options)


COUNTED = ("return_inverse", "return_counts", "dim")
OWN = {
    "clamp": clamp,
    "repeat_interleave": repeat_interleave,
    "isin": isin,
    "unique": distinct("unique", torch.unique, ("sorted", *COUNTED)),
    "unique_consecutive": distinct("unique_consecutive", torch.unique_consecutive, COUNTED),
    "clamp_min": clamp_one("min"),
    "clamp_max": clamp_one("max"),
    "lerp": lerp,
    "where": where,
    "einsum": einsum,
    "var": spread(torch.var),
    "std": spread(torch.std),
    "var/unbiased": spread(torch.var),
    "std/unbiased": spread(torch.std),
    "median": median(torch.median),
    "nanmedian": median(torch.nanmedian),
    "arange": made_of(torch.arange, ("start", "end", "step")),
    "linspace": made_of(torch.linspace, ("start", "end", "steps")),
    "eye": made_of(torch.eye, ("n", "m")),
    "full": made_of(torch.full, ("shape", "value")),
    "index_put": index_put,
}
for mode in ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area"):
    OWN["interpolate/" + mode] = interpolate
