# SPDX-License-Identifier: MIT
"""Random calls of operators with integer, bool and half operands beside PyTorch.

    PYTHON random_calls.py [--count 10000] [--seed N] [--device cpu:0] [--only NAME] [--verbose]

The operands are tensors, tensors of 0 dimensions and numbers, often at the ends of their ranges. A
call must have PyTorch's dtype, shape and values, or be refused by both. A difference is allowed
only if it belongs to a row of docs/reference/promotion.md; ALLOWED has these rows. Prints the
number of calls by kind of outcome, and each difference that belongs to no row; then the exit status
is 1.

The module `tenon` must be importable; `make oracle` does that. `make check` does not run this file,
but tests/op/test_promotion.c, which needs no PyTorch."""

import argparse
import collections
import math
import random
import sys
import time
import warnings

import numpy
import torch

import random_calls_operators as calls
from random_calls_operators import HALVES, INTS, LOSS

warnings.simplefilter("ignore")
torch.set_num_threads(1)
NEARER, REFUSED = "equal to float64, PyTorch is not", "refused by both"


CANCELS = LOSS + [
    "gelu",
    "digamma",
    "lgamma",
    "logcumsumexp",
    "logsumexp",
    "logaddexp",
    "logaddexp2",
]


# ---- comparison ----------------------------------------------------------------------------------

STEP = {
    torch.float64: 2.0**-52,
    torch.float32: 2.0**-23,
    torch.float16: 2.0**-10,
    torch.bfloat16: 2.0**-7,
}


def from_tenon(y):
    if y.dtype == "bfloat16":
        return torch.from_numpy(y.cast("float32").to(device="cpu:0").numpy().copy()).bfloat16()
    return torch.from_numpy(numpy.array(y.to(device="cpu:0").numpy()))


INTEGERS = [getattr(torch, name) for name in INTS]


def several(y):
    return y if isinstance(y, tuple) else (y,)


def same(got, expected, steps, size=0):
    """Which values are equal, of floats up to `steps` rounding errors of the value and of `size`,
    the size of the terms that cancel out in it."""
    if not expected.dtype.is_floating_point:
        return got == expected
    p, q = got.double(), expected.double()
    info = torch.finfo(expected.dtype)
    # Below the normal range, functions of float32 and bfloat16 may be 0.
    least = 64 * STEP[expected.dtype] if expected.dtype == torch.float16 else 1
    near = (p - q).abs() <= steps * STEP[expected.dtype] * (q.abs() + size) + least * info.tiny
    return torch.isnan(p) & torch.isnan(q) | (p == q) | near


def compare(name, expected, got):
    """Returns what differs, or None."""
    if isinstance(expected, Exception) and isinstance(got, Exception):
        return None
    if isinstance(expected, Exception):
        return "only PyTorch refuses"
    if isinstance(got, Exception):
        return "only Tenon refuses"
    for p, q in zip(several(expected), several(got)):
        q = from_tenon(q)
        if p.dtype != q.dtype:
            return f"dtype {q.dtype}, PyTorch's {p.dtype}"
        if p.shape != q.shape:
            return f"shape {list(q.shape)}, PyTorch's {list(p.shape)}"
        if not same(q, p, 4, name in CANCELS).all():
            return "values"
    return None


def closer(expected, got, exact):
    """Whether Tenon's elements are those of float64 wherever PyTorch's are others."""
    for p, q, e in zip(several(expected), several(got), several(exact)):
        q = from_tenon(q)
        if p.dtype in INTEGERS or e.shape != p.shape:
            return False
        if not (same(q, p, 4) | same(q, e.to(p.dtype), 2)).all():
            return False
    return True


# ---- differences that are documented -------------------------------------------------------------

# The rows of the table in docs/reference/promotion.md: a text, the operators, and a function of the
# arguments and what differs.
ALLOWED = []


def row(text, *names):
    def add(function):
        ALLOWED.append((text, names, function))
        return function

    return add


def kind(arg):
    return 0 if arg.dtype == "bool" else 1 if arg.dtype in INTS else 2


def is_number(arg):
    return arg.dtype is None


INTO_INTEGERS = ("addcmul", "masked_fill", "threshold", "add_alpha", "sub_alpha")
AT_THE_ENDS = ("add_alpha", "sub_alpha") + (
    "addcmul",
    "addcdiv",
    "lerp",
    "lerp_scalar",
    "nansum",
    "sum",
    "var",
    "std",
)


def is_extreme(arg):
    """Whether an operand has infinite values, or such whose square is out of range."""
    if is_number(arg):
        return abs(arg.number) > 1e30
    if not arg.torch.dtype.is_floating_point:
        return False
    size = arg.torch.double().abs().nan_to_num(0, math.inf).max()
    return bool(size > math.sqrt(torch.finfo(arg.torch.dtype).max))


def out_of_range(arg, dtype):
    most = torch.finfo(getattr(torch, dtype)).max
    return is_number(arg) and math.isfinite(arg.number) and abs(arg.number) > most


@row("losses of several dtypes, or of integers", *LOSS)
def _(args, what):
    mixed = args[0].dtype != args[1].dtype or kind(args[0]) < 2
    return mixed and not what.startswith("shape")


@row("lerp of several dtypes", "lerp", "lerp_scalar")
def _(args, what):
    dtypes = {a.dtype for a in args if not is_number(a)}
    return len(dtypes) > 1 and what.startswith("only")


@row("addcdiv of integers beside a float", "addcdiv")
def _(args, what):
    return kind(args[1]) < 2 and kind(args[2]) < 2 and what == "only PyTorch refuses"


@row("minus, with a number and bool", "sub")
def _(args, what):
    bools = any(a.dtype == "bool" or isinstance(a.number, bool) for a in args)
    return bools and any(is_number(a) for a in args) and what == "only PyTorch refuses"


@row("clamp by NaN", "clamp", "clamp_min", "clamp_max")
def _(args, what):
    return any(is_number(a) and a.number != a.number for a in args)


@row(
    "a number out of the float dtype's range",
    *("clamp", "clamp_min", "clamp_max", "add_alpha", "sub_alpha", "pow"),
)
def _(args, what):
    dtypes = [a.dtype for a in args if kind(a) == 2 and not is_number(a)]
    far = any(out_of_range(a, dtype) for a in args for dtype in dtypes)
    return far and what == "only PyTorch refuses"


@row("integers and a number with a fraction or out of range", *INTO_INTEGERS)
def _(args, what):
    first = args[0] if args[0].dtype in INTS else args[1]
    if first.dtype not in INTS or not what.startswith("only"):
        return False
    info = torch.iinfo(getattr(torch, first.dtype))
    # PyTorch compares -alpha with the range in sub
    return any(not info.min < a.number <= info.max or a.number % 1 for a in args if is_number(a))


@row("nan_to_num of bool", "nan_to_num")
def _(args, what):
    return args[0].dtype == "bool" and what == "only Tenon refuses"


@row("ldexp and softsign of bool", "ldexp", "softsign")
def _(args, what):
    return args[-1].dtype == "bool" and what == "only PyTorch refuses"


@row("intermediate results at the ends of the range", *AT_THE_ENDS)
def _(args, what):
    return what == "values" and any(is_extreme(a) for a in args)


@row("a half times or divided by another float without dimensions", "mul", "truediv", "div")
def _(args, what):
    half = any(a.dtype in HALVES for a in args)
    mixed = any(kind(a) == 2 and not a.shape for a in args) and args[0].dtype != args[1].dtype
    return what == "values" and half and mixed


@row("gcd and lcm of the smallest integer", "gcd", "lcm")
def _(args, what):
    most = [2.0 ** (8 * a.torch.element_size() - 1) for a in args]
    return what == "values" and any((a.wide() == -m).any() for a, m in zip(args, most))


def attempt(function, args):
    try:
        return function(*args)
    except Exception as error:
        return error


def run(rng):
    """Returns the name, the arguments, both results, and the outcome: None if they are equal."""
    name, judge, own, args = rng.choice(calls.KINDS)(rng)
    if own is None or judge is None:
        return name, args, None, None, "no such operator"
    expected = attempt(judge, [a.torch for a in args])
    got = attempt(own, [a.tenon for a in args])
    what = compare(name, expected, got)
    if what == "values":
        exact = attempt(judge, [a.wide() for a in args])
        if not isinstance(exact, Exception) and closer(expected, got, exact):
            what = NEARER
    elif what is None and isinstance(got, Exception):
        what = REFUSED
    for text, names, allowed in ALLOWED:
        if what not in (None, NEARER, REFUSED) and name in names and allowed(args, what):
            return name, args, expected, got, text
    return name, args, expected, got, what


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--device", default="cpu:0")
    parser.add_argument("--only", default="")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    calls.device = options.device
    rng = random.Random(options.seed)
    print(f"seed {options.seed}, {options.count} calls, {options.device}")
    known = {text for text, _, _ in ALLOWED} | {None, NEARER, REFUSED}
    count, bad = collections.Counter(), collections.Counter()
    for _ in range(options.count):
        name, args, expected, got, what = run(rng)
        count[what if what in known else "DIFFERENT"] += 1
        if what not in known:
            bad[name, what] += 1
        shown = bad[name, what] <= 3 and what not in known or options.verbose and what is not None
        if shown and options.only in name:
            print(f"{name}{tuple(args)}: {what}\n    PyTorch {expected!r}\n    Tenon   {got!r}")
    for what, n in count.most_common():
        print(f"{n:7} {what or 'equal'}")
    for (name, what), n in bad.most_common():
        print(f"{n:7} {name}: {what}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
