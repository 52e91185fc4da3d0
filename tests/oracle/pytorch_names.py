#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Evaluates the rows of docs/guides/pytorch-without-operator.md, and compares their results and
# gradients with PyTorch's functions on the samples of PyTorch's operator database.
#
#   PYTHON-WITH-TORCH pytorch_names.py SCHEMA-FOLDER PAGE [--count] [NAMES]
#
# --count only counts the names of the database that have a counterpart. TENON_LIBRARY and
# PYTHONPATH choose the library and the Python module, as in bindings/python/check.sh.
import functools, glob, inspect, math, os, re, sys, types, unittest, warnings

warnings.simplefilter("ignore")
try:
    import numpy, torch
except ImportError:
    sys.exit(77)
try:
    import expecttest  # noqa: F401: PyTorch's test helpers want it for their own tests only
except ImportError:
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    sys.modules["expecttest"].TestCase = unittest.TestCase
from torch.testing._internal.common_methods_invocations import op_db

EACH = 12  # samples of a name
# Variants of a name whose arguments differ from those of the page.
OTHER_FORMS = {"var_mean/unbiased", "std_mean/unbiased"}
# Arguments that say where a result is; the samples give only the defaults.
PLACES = {"device", "requires_grad", "memory_format", "layout", "pin_memory"}


def read_page(path):
    """PyTorch's names -> (arguments, expression)."""
    rows = {}
    for line in open(path):
        found = re.match(r"\| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \|$", line)
        if found:
            rows[found[1]] = (found[2], found[3].replace("\\|", "|"))
    return rows


def operators(folder):
    names = set()
    for path in glob.glob(os.path.join(folder, "*.ops")):
        for line in open(path):
            if line.startswith("op "):
                names.update(line.split(" rev ")[0].split()[1:])
    return names


def counterpart(name, ours, rows):
    """Whether a name is a row of the page, a row of MAP, or the name of an operator."""
    from pytorch_operators import MAP

    short = name.replace("nn.functional.", "").replace("special.", "")
    plain = {row.split("/")[0] for row in MAP}
    return (
        name in rows
        or short in plain
        or name in plain
        or short in ours
        or name.replace(".", "_") in ours
        or name in SAME
    )


# Operators with another name, and functions of the interface that call no operator.
SAME = {
    "nn.functional.unfold": "im2col",
    "max": "amax",
    "min": "amin",
    "div": "div",
    "clamp_min": "clamp",
    "clamp_max": "clamp",
    "empty": "tn.empty",
    "zeros": "tn.zeros",
    "ones": "tn.ones",
    "randn": "tn.randn",
    "randn_like": "tn.randn",
    "rand_like": "tn.rand",
    "empty_like": "tn.empty",
    "to": "x.to",
    "__getitem__": "x[index]",
}


def ours_of(value, tn, leaves):
    if isinstance(value, torch.Tensor):
        narrow = value.dtype == torch.bfloat16
        plain = (value.float() if narrow else value).detach().resolve_conj().resolve_neg()
        made = tn.from_numpy(numpy.array(plain.numpy())).clone()
        made = made.cast("bfloat16") if narrow else made
        if value.requires_grad:
            made.requires_grad = True
            leaves.append((value, made))
        return made
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(ours_of(v, tn, leaves) for v in value)
    if isinstance(value, torch.Size):
        return tuple(value)
    return "cpu:0" if value == "cpu" else value


def flat(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def theirs_of(value):
    import tenon as tn

    if not isinstance(value, tn.Tensor):
        return torch.as_tensor(value)
    if value.dtype == "bfloat16":
        return torch.tensor(value.cast("float32").tolist()).bfloat16().reshape(value.shape)
    return torch.from_numpy(numpy.array(value.detach().numpy())).reshape(value.shape)


def compare(what, wanted, got):
    if wanted.shape != got.shape:
        raise AssertionError(f"{what}: shape {list(got.shape)}; expected {list(wanted.shape)}")
    if wanted.dtype != got.dtype:
        raise AssertionError(f"{what}: dtype {got.dtype}; expected {wanted.dtype}")
    if wanted.numel() and not torch.allclose(got, wanted.detach(), 1e-8, 1e-9, equal_nan=True):
        raise AssertionError(
            f"{what}: got {got.flatten()[:6].tolist()}; "
            f"expected {wanted.flatten()[:6].tolist()}"
        )


def run_sample(info, sample, function, differentiable):
    import tenon as tn

    given = (sample.input, *sample.args)
    leaves = []
    args = ours_of(list(given), tn, leaves)
    kwargs = {k: ours_of(v, tn, leaves) for k, v in sample.kwargs.items() if k not in PLACES}
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    if info.name.startswith("signal") and sample.input < 2:
        return False
    if info.name.startswith("atleast") and isinstance(sample.input, list):
        return False
    if kwargs.get("correction", 1) is None or (info.name == "linalg.vander" and not args[0].ndim):
        return False
    wanted = flat(info.op(*given, **sample.kwargs))
    got = flat(function(*args, **kwargs))
    if len(wanted) != len(got):
        raise AssertionError(f"{len(got)} results; expected {len(wanted)}")
    for i, (a, b) in enumerate(zip(wanted, got)):
        compare(f"result {i}", torch.as_tensor(a), theirs_of(b))
    where = [i for i, a in enumerate(wanted) if isinstance(a, torch.Tensor) and a.requires_grad]
    if not differentiable or not leaves or not where:
        return True
    first = where[0]
    cotangent = torch.randn(wanted[first].shape, dtype=wanted[first].dtype)
    slopes = torch.autograd.grad(
        wanted[first], [a for a, _ in leaves], cotangent, allow_unused=True
    )
    if got[first].requires_grad:
        got[first].backward(ours_of(cotangent, tn, []))
    for i, (slope, (theirs, leaf)) in enumerate(zip(slopes, leaves)):
        grad = torch.zeros_like(theirs) if leaf.grad is None else theirs_of(leaf.grad)
        compare(f"gradient {i}", torch.zeros_like(theirs) if slope is None else slope, grad)
    return True


def judge(info, function):
    """The number of samples that were compared; raises AssertionError at the first difference."""
    dtype = torch.float64 if torch.float64 in info.supported_dtypes("cpu") else torch.int64
    slopes = info.supports_autograd and dtype == torch.float64
    torch.manual_seed(3)
    done = 0
    for sample in info.sample_inputs("cpu", dtype, requires_grad=slopes):
        if done == EACH:
            break
        done += run_sample(info, sample, function, slopes)
    return done


def main():
    folder, page = sys.argv[1:3]
    only = [a for a in sys.argv[3:] if a != "--count"]
    rows = read_page(page)
    ours = operators(folder)
    names = {info.name for info in op_db}
    found = {name for name in names if counterpart(name, ours, rows)}
    print(f"{len(found)} of {len(names)} names have a counterpart")
    if "--count" in sys.argv:
        print("without: " + " ".join(sorted(names - found)))
        return 0
    import tenon as tn

    scope = {"tn": tn, "math": math, "functools": functools, "numpy": numpy}
    failed = 0
    compared, samples = set(), 0
    for info in sorted(op_db, key=lambda o: (o.name, o.variant_test_name)):
        form = f"{info.name}/{info.variant_test_name}"
        if info.name not in rows or form in OTHER_FORMS or (only and info.name not in only):
            continue
        function = eval("lambda %s: %s" % rows[info.name], scope)
        try:
            done = judge(info, function)
        except Exception as why:
            print(f"{form}: {type(why).__name__}: {str(why)[:300]}")
            failed += 1
            continue
        if done:
            compared.add(info.name)
        samples += done
    never = [] if only else sorted(set(rows) - compared)
    if never:
        print("no sample passed: " + " ".join(never))
    print(
        f"{len(compared)} rows of the page agree with PyTorch in {samples} samples, "
        f"{failed + len(never)} do not"
    )
    return 1 if failed or never else 0


sys.exit(main())
