# SPDX-License-Identifier: MIT
"""The calls that random_calls.py makes: operands, and PyTorch's and Tenon's functions.

A function NAME_call returns a name, PyTorch's function, Tenon's function and the operands."""

import math

import numpy
import torch

import tenon

INTS = ["int8", "int16", "int32", "int64", "uint8"]
HALVES = ["float16", "bfloat16"]
FLOATS = HALVES + ["float32", "float64"]
DTYPES = INTS + ["bool"] + FLOATS
SHAPES = [(), (3,), (2, 3), (2, 1), (1,)]
device = "cpu:0"


# ---- operands ------------------------------------------------------------------------------------


def ends(dtype):
    """Values that are often at the ends of the range."""
    if dtype == "bool":
        return [False, True]
    if dtype in INTS:
        info = torch.iinfo(getattr(torch, dtype))
        near = [
            0,
            1,
            2,
            3,
            7,
            100,
            info.max,
            info.min,
            info.max - 1,
            info.min + 1,
            info.max // 2 + 1,
        ]
        return near + ([-1, -2, -3, -7] if info.min < 0 else [])
    info = torch.finfo(getattr(torch, dtype))
    return [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        0.5,
        -0.25,
        3.0,
        1e-3,
        100.0,
        -7.5,
        info.max,
        info.min,
        info.tiny,
        math.inf,
        -math.inf,
        math.nan,
    ]


def plain(dtype):
    if dtype == "bool":
        return [False, True]
    if dtype in INTS:
        return list(range(0 if dtype == "uint8" else -5, 12))
    return [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, -0.5, -1.0, -2.5, 4.0]


def values(rng, dtype, count):
    pool = ends(dtype) if rng.random() < 0.5 else plain(dtype)
    return [rng.choice(pool) for _ in range(count)]


class Operand:
    """A tensor for both libraries, or a number."""

    def __init__(self, dtype=None, shape=None, flat=None, number=None):
        self.dtype, self.shape, self.number = dtype, shape, number
        if dtype is None:
            self.torch = self.tenon = number
            return
        self.torch = torch.tensor(flat, dtype=getattr(torch, dtype)).reshape(shape)
        self.tenon = to_tenon(self.torch)

    def wide(self):
        if self.dtype is None:
            return self.number if isinstance(self.number, bool) else float(self.number)
        return self.torch.double()

    def __repr__(self):
        if self.dtype is None:
            return repr(self.number)
        return f"{self.dtype}{list(self.shape)}{self.torch.flatten().tolist()}"


def to_tenon(t):
    """A tensor of Tenon with the elements of PyTorch's."""
    if t.dtype == torch.bfloat16:
        made = tenon.from_numpy(t.float().numpy()).cast("bfloat16")
    else:
        made = tenon.from_numpy(t.contiguous().numpy().copy())
    return made.to(device=device)


def tensor(rng, dtypes=DTYPES, shapes=SHAPES):
    dtype, shape = rng.choice(dtypes), rng.choice(shapes)
    return Operand(dtype, shape, values(rng, dtype, math.prod(shape)))


def number(rng):
    return Operand(
        number=rng.choice(
            [
                True,
                False,
                0,
                1,
                2,
                3,
                -1,
                -2,
                7,
                100,
                127,
                128,
                255,
                256,
                -128,
                -129,
                300,
                32768,
                2**31,
                2**40,
                2**53 + 1,
                2**63 - 1,
                -(2**63),
                0.0,
                1.0,
                2.0,
                0.5,
                -0.5,
                1.5,
                -3.0,
                256.0,
                1e-3,
                1e5,
                1e10,
                3e38,
                math.inf,
                math.nan,
            ]
        )
    )


def operand(rng, dtypes=DTYPES):
    return number(rng) if rng.random() < 0.3 else tensor(rng, dtypes)


# ---- operators -----------------------------------------------------------------------------------

# Name, PyTorch's function, Tenon's; None: of the same name.
BINARY = {
    "add": (lambda a, b: a + b,) * 2,
    "sub": (lambda a, b: a - b,) * 2,
    "mul": (lambda a, b: a * b,) * 2,
    "truediv": (lambda a, b: a / b,) * 2,
    "mod": (lambda a, b: a % b,) * 2,
    "and": (lambda a, b: a & b,) * 2,
    "or": (lambda a, b: a | b,) * 2,
    "xor": (lambda a, b: a ^ b,) * 2,
    "pow": (lambda a, b: a**b,) * 2,
    "eq": (lambda a, b: a == b,) * 2,
    "ne": (lambda a, b: a != b,) * 2,
    "lt": (lambda a, b: a < b,) * 2,
    "le": (lambda a, b: a <= b,) * 2,
    "gt": (lambda a, b: a > b,) * 2,
    "ge": (lambda a, b: a >= b,) * 2,
    "div_trunc": (
        lambda a, b: torch.div(a, b, rounding_mode="trunc"),
        lambda a, b: tenon.div(a, b, rounding_mode="trunc"),
    ),
    "div_floor": (
        lambda a, b: torch.div(a, b, rounding_mode="floor"),
        lambda a, b: tenon.div(a, b, rounding_mode="floor"),
    ),
    "div": None,
    "remainder": None,
    "fmod": None,
    "xlogy": None,
    "bitwise_left_shift": None,
    "bitwise_right_shift": None,
}  # the second operand may be a number
TENSORS = (
    "maximum minimum fmax fmin atan2 hypot copysign nextafter logaddexp logaddexp2 gcd lcm "
    "bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor heaviside ldexp "
    "isclose"
).split()
UNARY = (
    "abs neg sign sgn square sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin "
    "acos atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc floor ceil round trunc frac "
    "reciprocal bitwise_not logical_not isnan isinf isfinite signbit relu relu6 hardtanh "
    "hardswish hardsigmoid leaky_relu elu softplus softsign silu gelu lgamma digamma nan_to_num"
).split()
REDUCE = (
    "sum mean prod amax amin argmax argmin all any var std logsumexp count_nonzero nansum"
).split()
ALONG = (
    "max_dim min_dim cumsum cumprod cummax cummin logcumsumexp softmax log_softmax sort flip"
).split()
LOSS = (
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy "
    "binary_cross_entropy_with_logits kl_div poisson_nll_loss hinge_embedding_loss "
    "soft_margin_loss"
).split()
OTHER_NAMES = {"std": "std", "log": "ln"}


def found(module, name):
    # functional comes first: the functions of these names in torch have no default options
    for place in [torch.nn.functional, torch, torch.special] if module is torch else [tenon]:
        if hasattr(place, name):
            return getattr(place, name)
    return None


def both(name):
    return found(torch, name), found(tenon, name) or found(tenon, OTHER_NAMES.get(name, name))


def binary_call(rng):
    name = rng.choice(list(BINARY))
    first = tensor(rng)
    second = operand(rng)
    args = [first, second]
    if name in ("add", "sub", "mul", "truediv", "and", "or", "xor") and rng.random() < 0.2:
        args.reverse()
    return (name, *(BINARY[name] or both(name)), args)


def tensors_call(rng):
    name = rng.choice(TENSORS)
    return (name, *both(name), [tensor(rng), tensor(rng)])


def unary_call(rng):
    name = rng.choice(UNARY)
    return (name, *both(name), [tensor(rng)])


def ternary_call(rng):
    name = rng.choice(
        [
            "addcmul",
            "addcdiv",
            "lerp",
            "where",
            "clamp",
            "clamp_tensor",
            "clamp_min",
            "clamp_max",
            "masked_fill",
            "add_alpha",
            "sub_alpha",
            "hardtanh_bounds",
            "threshold",
            "lerp_scalar",
        ]
    )
    x = tensor(rng)
    if name in ("addcmul", "addcdiv"):
        return (
            name,
            lambda x, a, b, value: getattr(torch, name)(x, a, b, value=value),
            lambda x, a, b, value: getattr(tenon, name)(x, a, b, value=value),
            [x, tensor(rng), tensor(rng), Operand(number=rng.choice([1, 2, -1, 0.5, 2.0]))],
        )
    if name == "lerp":
        return (name, torch.lerp, tenon.lerp, [x, tensor(rng), tensor(rng)])
    if name == "lerp_scalar":
        return (name, torch.lerp, tenon.lerp_scalar, [x, tensor(rng), number(rng)])
    if name == "where":
        mask = tensor(rng, ["bool"])
        return (name, torch.where, tenon.where, [mask, x, tensor(rng)])
    if name == "clamp":
        return (name, torch.clamp, tenon.clamp, [x, number(rng), number(rng)])
    if name == "clamp_min":
        return (
            name,
            lambda x, a: torch.clamp(x, min=a),
            lambda x, a: tenon.clamp(x, min=a),
            [x, number(rng)],
        )
    if name == "clamp_max":
        return (
            name,
            lambda x, a: torch.clamp(x, max=a),
            lambda x, a: tenon.clamp(x, max=a),
            [x, number(rng)],
        )
    if name == "clamp_tensor":
        return (name, torch.clamp, tenon.clamp_tensor, [x, tensor(rng), tensor(rng)])
    if name == "masked_fill":
        mask = tensor(rng, ["bool"])
        return (name, torch.masked_fill, tenon.masked_fill, [x, mask, number(rng)])
    if name == "hardtanh_bounds":
        return (
            name,
            lambda x, a, b: torch.nn.functional.hardtanh(x, a, b),
            lambda x, a, b: tenon.hardtanh(x, min_val=a, max_val=b),
            [
                x,
                Operand(number=rng.choice([-2, -1.0, 0, -0.5])),
                Operand(number=rng.choice([1, 2.0, 3.5, 100])),
            ],
        )
    if name == "threshold":
        return (name, torch.threshold, tenon.threshold, [x, number(rng), number(rng)])
    base = name.split("_")[0]
    return (
        name,
        lambda a, b, alpha: getattr(torch, base)(a, b, alpha=alpha),
        lambda a, b, alpha: getattr(tenon, base)(a, b, alpha=alpha),
        [x, tensor(rng), number(rng)],
    )


def reduce_call(rng):
    name = rng.choice(REDUCE)
    return (name, *both(name), [tensor(rng)])


def along_call(rng):
    name = rng.choice(ALONG)
    x = tensor(rng, shapes=[(3,), (2, 3)])
    if name in ("max_dim", "min_dim"):
        short = name[:3]
        return (
            name,
            lambda x: tuple(getattr(torch, short)(x, -1)),
            lambda x: getattr(tenon, name)(x, -1),
            [x],
        )
    if name == "flip":
        return (name, lambda x: torch.flip(x, [-1]), lambda x: tenon.flip(x, dims=[-1]), [x])
    if name == "sort":
        return (
            name,
            lambda x: tuple(torch.sort(x, dim=-1, stable=True)),
            lambda x: tenon.sort(x, dim=-1),
            [x],
        )
    return (
        name,
        lambda x: getattr(torch, name)(x, -1),
        lambda x: getattr(tenon, name)(x, dim=-1),
        [x],
    )


def loss_call(rng):
    name = rng.choice(LOSS)
    shape = [rng.choice(SHAPES)]
    x, target = tensor(rng, shapes=shape), tensor(rng, shapes=shape)
    if name == "binary_cross_entropy":  # of probabilities
        x, target = probabilities(rng, x), probabilities(rng, target)
    return (name, *both(name), [x, target])


def probabilities(rng, x):
    if x.dtype in FLOATS:
        return Operand(x.dtype, x.shape, [rng.random() for _ in x.torch.flatten()])
    return Operand(x.dtype, x.shape, [rng.choice([0, 1]) for _ in x.torch.flatten()])


KINDS = (
    [binary_call] * 6
    + [tensors_call] * 4
    + [unary_call] * 3
    + [ternary_call] * 4
    + [reduce_call, along_call, loss_call]
)
