# SPDX-License-Identifier: MIT
#
# A case of function_cases.py: a call of a function, and the tensors that are its inputs. A number
# is never at a kink or a tie unless a case wants that, so that gradients are unique.
import math

import torch

A = torch.ops.aten
F16, BF16, F32, F64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
I8, U8, I32, I64, BOOL = torch.int8, torch.uint8, torch.int32, torch.int64, torch.bool
C64, C128 = torch.complex64, torch.complex128
CPU = torch.device('cpu')
INF, NAN = math.inf, math.nan
source = torch.Generator().manual_seed(7)


def count(shape):
    n = 1
    for size in shape:
        n *= size
    return n


def order(n):
    return torch.randperm(n, generator=source)


def real(*shape, low=-2.0, high=2.0, dtype=F64, grad=True):
    """Distinct numbers between low and high, none of them whole."""
    n = count(shape)
    step = (high - low) / max(n, 1)
    x = (low + step * (order(n).double() + 0.40625)).mul(4096).round().add(0.375).div(4096)
    x = x.reshape(shape).to(dtype)
    return x.requires_grad_(grad and dtype in (F32, F64))


def positive(*shape, **given):
    return real(*shape, low=0.25, high=2.25, **given)


def unit(*shape, **given):
    return real(*shape, low=0.0625, high=0.9375, **given)


def cplx(*shape, dtype=C128):
    return torch.complex(real(*shape, grad=False), real(*shape, grad=False)).to(dtype)


def ints(*shape, low=-5, high=6, dtype=I64):
    return torch.randint(low, high, shape, generator=source).to(dtype)


def bools(*shape):
    return torch.randint(0, 2, shape, generator=source).bool()


def whole(*values, dtype=I64):
    return torch.tensor(list(values), dtype=dtype)


class Case:
    def __init__(self, name, function, inputs):
        self.name, self.function, self.inputs = name, function, inputs
        self.truth = None  # where PyTorch is wrong, another function

    def instead(self, truth):
        self.truth = truth
        return self


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [x for part in value for x in tensors_in(part)]
    return []


def replaced(value, given):
    """`value` with its tensors replaced by those of the iterator."""
    if isinstance(value, torch.Tensor):
        return next(given)
    if isinstance(value, (list, tuple)):
        return [replaced(part, given) for part in value]
    return value


def call(function, *args, **options):
    """A call of `function`: the tensors in args and options are inputs of the program. A function
    that writes its first argument gets a copy, which is the result."""
    inputs = tensors_in(list(args)) + tensors_in(list(options.values()))
    name = str(function)
    name = name.removeprefix('aten.')
    changes = function._schema.arguments[0].alias_info
    changes = changes is not None and changes.is_write

    def run(*given):
        it = iter(given)
        a = [replaced(x, it) for x in args]
        o = {k: replaced(v, it) for k, v in options.items()}
        if changes:
            a[0] = a[0].clone()
            function(*a, **o)
            return a[0]
        return function(*a, **o)

    return Case(name, run, inputs)


def program(name, function, *inputs):
    """Any calls, for functions whose results have no values of their own."""
    return Case(name, function, list(inputs))


def written(name, function, *shape):
    """Writes to the result of a function of x. The results are x and what was written: they show
    whether the two share memory."""

    def run(given):
        x = A.clone(given)
        y = function(x)
        A.add_.Scalar(y, 1)
        return [x, y]

    return Case(name, run, [real(*shape, grad=False)])


def picked(numbers, function, *args, **options):
    """Like call, with only some results: the others are for the derivative in PyTorch."""
    case = call(function, *args, **options)
    run = case.function

    def some(*given):
        results = run(*given)
        return [results[i] for i in numbers]

    case.function = some
    return case


def first(function, *args, **options):
    return picked([0], function, *args, **options)
