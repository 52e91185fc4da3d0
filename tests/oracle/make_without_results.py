#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Cases without results, for tenon check alone, which has its own reference: operators that PyTorch
# has no function for (what layers' operators decompose into) and random ones, whose numbers are
# Tenon's.
#   PYTHON-WITH-TORCH make_without_results.py > without_results.txt
from cases import *


def case(name, op, inputs, **options):
    print("case %s/%s" % (op, name))
    print("op " + op)
    for key, value in options.items():
        print(
            "opt %s %s"
            % (
                key,
                (
                    row(value)
                    if isinstance(value, (list, tuple))
                    else NAMES[value] if isinstance(value, torch.dtype) else value
                ),
            )
        )
    for given in inputs:
        if given is None:
            print("in none")
            continue
        wants, make = given
        memory, view = make()
        print(
            "in %s %s %s %d %s : %s"
            % (
                NAMES[view.dtype],
                row(view.shape),
                row(view.stride()),
                view.storage_offset(),
                "g" if wants else "-",
                values(memory),
            )
        )


for d in FLOATS:
    name = NAMES[d]
    # ---- convolution ----
    case(
        name,
        "convolution",
        [x(2, 2, 5, 4, dtype=d), x(3, 2, 3, 2, dtype=d), x(3, dtype=d)],
        stride=[2, 1],
        padding=[1, 1],
    )
    case(
        "1d-" + name,
        "convolution",
        [x(2, 4, 7, dtype=d), x(4, 2, 3, dtype=d), None],
        groups=2,
        dilation=[2],
    )
    case("3d-" + name, "convolution", [x(1, 2, 3, 4, 3, dtype=d), x(2, 2, 2, 2, 2, dtype=d), None])
    case(
        name,
        "convolution_grad_input",
        [x(2, 3, 3, 5, dtype=d), x(3, 2, 3, 2, dtype=d)],
        input_size=[5, 4],
        stride=[2, 1],
        padding=[1, 1],
    )
    case(
        name,
        "convolution_grad_weight",
        [x(2, 3, 3, 5, dtype=d), x(2, 2, 5, 4, dtype=d)],
        kernel=[3, 2],
        stride=[2, 1],
        padding=[1, 1],
    )
    case(
        "depthwise-" + name,
        "convolution",
        [x(2, 3, 4, 4, dtype=d), x(3, 1, 3, 3, dtype=d), None],
        groups=3,
        padding=[1, 1],
    )
    # ---- pooling ----
    case(name, "max_pool", [x(2, 2, 5, 6, dtype=d)], kernel=[2, 3], stride=[2, 2], padding=[1, 1])
    case("1d-" + name, "max_pool", [x(2, 2, 7, dtype=d)], kernel=[3], dilation=[2])
    case("ceil-" + name, "max_pool", [x(1, 2, 5, 5, dtype=d)], kernel=[2, 2], ceil_mode=True)
    case(name, "avg_pool", [x(2, 2, 5, 6, dtype=d)], kernel=[2, 3], stride=[2, 2], padding=[1, 1])
    case(
        "more-" + name,
        "avg_pool",
        [x(2, 2, 5, 5, dtype=d)],
        kernel=[2, 2],
        ceil_mode=True,
        count_include_pad=False,
        padding=[1, 0],
    )
    case("divisor-" + name, "avg_pool", [x(2, 1, 4, dtype=d)], kernel=[2], divisor_override=3)
    case(
        name,
        "avg_pool_grad",
        [x(2, 2, 3, 3, dtype=d)],
        input_size=[5, 6],
        kernel=[2, 3],
        stride=[2, 2],
        padding=[1, 1],
    )
    case(
        name,
        "max_pool_grad",
        [x(1, 2, 2, 2, dtype=d), n(data=[[[[0, 2], [5, 5]], [[3, 2], [8, 7]]]], dtype=I64)],
        input_size=[3, 3],
    )
    # ---- normalization ----
    case(
        name, "standardize", [x(4, 3, 5, dtype=d), x(3, 1, dtype=d), x(3, 1, dtype=d)], dims=[0, 2]
    )
    case("last-" + name, "standardize", [x(4, 6, dtype=d), x(6, dtype=d), x(6, dtype=d)], dims=[1])
    case("plain-" + name, "standardize", [x(2, 3, 4, dtype=d), None, None], dims=[1, 2], eps=0.1)
    case(
        name,
        "standardize_grad",
        [
            x(4, 6, dtype=d),
            x(4, 6, dtype=d),
            x(4, 1, dtype=d),
            x(4, 1, dtype=d, positive=True),
            x(6, dtype=d),
        ],
        dims=[1],
        affine_shape=[6],
    )
    case(
        name,
        "binary_cross_entropy_each",
        [
            x(data=[[0.25, 0.5], [0.125, 0.75]], dtype=d),
            x(data=[[0.5, 1.0], [0.0, 0.25]], dtype=d),
        ],
    )
    # ---- random numbers: the same bits everywhere ----
    case(
        name,
        "philox_uniform",
        [n(3, 5, dtype=d), None],
        low=-1.5,
        high=2.0,
        seed=12345678901,
        block=7,
    )
    case(
        name,
        "philox_normal",
        [n(3, 5, dtype=d), None],
        mean=0.5,
        std=2.0,
        seed=-3,
        block=4294967295,
    )
    case(name, "uniform", [n(4, 5, dtype=d)], low=-1.0, high=1.0)
    case(name, "normal", [n(4, 5, dtype=d)], mean=1.0, std=0.5)
    case(name, "truncated_normal", [n(4, 5, dtype=d)], low=-1.0, high=1.5)
    case(name, "bernoulli", [n(data=[[0.0, 0.25, 0.5], [0.75, 1.0, 0.5]], dtype=d)])
    case(name, "dropout", [x(4, 5, dtype=d)], p=0.25)
    case("off-" + name, "dropout", [x(4, 5, dtype=d)], p=0.25, training=False)
    case("all-" + name, "dropout", [x(4, 5, dtype=d)], p=1.0)
    case(name, "feature_dropout", [x(4, 5, 2, dtype=d)], p=0.25)
    case(name, "alpha_dropout", [x(4, 5, dtype=d)], p=0.25, training=True)
    case(name, "feature_alpha_dropout", [x(4, 5, 2, dtype=d)], p=0.25, training=True)
    case(name, "randint", [n(4, 5, dtype=d)], low=-3, high=9)
for d in (F32, F64):
    case(NAMES[d], "gumbel_softmax", [x(3, 4, dtype=d)], tau=0.5)
    case("hard-" + NAMES[d], "gumbel_softmax", [x(3, 4, dtype=d)], hard=True, dim=0)
case("i64", "randint", [n(4, 5, dtype=I64)], low=-1000000000000, high=1000000000000)
case("i32", "randint", [n(7, dtype=I32)], low=0, high=2)
case("ten", "randperm", [n(1)], n=10)
case("none", "randperm", [n(1)], n=0)
case("many", "randperm", [n(1, dtype=F64)], n=1000)
case("larger", "convolution", [x(2, 8, 9, 9), x(8, 8, 3, 3), x(8)], padding=[1, 1])
case("none", "convolution", [x(0, 2, 4, 4), x(3, 2, 3, 3), None])

# ---- NaN, infinity, zeros, small numbers ----
EDGES = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-30, -2.5, 0.5]
for d in (F32, F64):
    functions = (
        "relu sigmoid abs neg exp log sqrt floor ceil trunc round expm1 log1p log2 "
        "log10 sin cos tanh atan sinh cosh erf erfc square reciprocal rsqrt isnan "
        "isinf isfinite"
    )
    for op in functions.split():
        case("edges-" + NAMES[d], op, [x(data=EDGES, dtype=d)])
    for op in "add sub mul maximum minimum eq lt le gt ge ne".split():
        case(
            "edges-" + NAMES[d], op, [x(data=EDGES, dtype=d), x(data=[[v] for v in EDGES], dtype=d)]
        )

for d in FLOATS:
    name = NAMES[d]
    wide = d if d == F64 else F32
    # ---- attention: two heads of queries for one head of keys, masks ----
    # With dropout the result depends on the dtype; tests/op/test_attention.c checks it.
    case(
        name,
        "attend",
        [x(1, 2, 3, 4, dtype=d), x(1, 1, 5, 4, dtype=d), x(1, 1, 5, 2, dtype=d), None, None],
        scale=0.5,
    )
    case(
        "causal-" + name,
        "attend",
        [x(2, 1, 3, 2, dtype=d), x(2, 1, 3, 2, dtype=d), x(2, 1, 3, 3, dtype=d), None, None],
        scale=0.75,
        is_causal=True,
    )
    case(
        "bools-" + name,
        "attend",
        [
            x(1, 2, 2, 3, dtype=d),
            x(1, 2, 3, 3, dtype=d),
            x(1, 2, 3, 2, dtype=d),
            n(data=[[False, False, False], [True, False, True]], dtype=BOOL),
            None,
        ],
        scale=0.5,
    )
    case(
        "numbers-" + name,
        "attend",
        [
            x(1, 2, 2, 3, dtype=d),
            x(1, 2, 3, 3, dtype=d),
            x(1, 2, 3, 2, dtype=d),
            x(2, 1, 3, dtype=d),
            None,
        ],
        scale=0.5,
    )
    more = [
        x(1, 2, 3, 2, dtype=d),
        x(1, 2, 3, 4, dtype=d),
        x(1, 1, 5, 4, dtype=d),
        x(1, 1, 5, 2, dtype=d),
        None,
        x(1, 2, 3, 2, dtype=d),
        x(1, 2, 3, dtype=wide, positive=True),
    ]
    case(name, "attend_grad", more + [x(1, 2, 3, dtype=wide), None], scale=0.5)
    case("plain-" + name, "attend_grad", more + [None, None], scale=0.5, is_causal=True)
    more[4] = n(1, 2, 3, 5, dtype=BOOL)
    case("bools-" + name, "attend_grad", more + [None, None], scale=0.5)
case("i64", "philox_permutation", [n(11, dtype=I64), None], seed=12345678901, block=7)
case("none-i64", "philox_permutation", [n(0, dtype=I64), None], seed=3, block=0)
for d in (F32, F64):
    name = "state-" + NAMES[d]
    case(
        name,
        "philox_uniform",
        [n(3, 5, dtype=d), n(dtype=I64, data=[12345678901, 4294967290, 5])],
        low=-1.5,
        high=2.0,
        seed=0,
        block=7,
    )
    case(
        name,
        "philox_normal",
        [n(3, 5, dtype=d), n(dtype=I64, data=[-3, -1, -2])],
        mean=0.5,
        std=2.0,
        seed=0,
        block=4294967295,
    )
    name = NAMES[d]
    # ---- running moments that are updated ----
    moments = [n(3, dtype=d), n(3, dtype=d, positive=True)]
    case(
        "train-" + name,
        "batch_norm",
        [x(4, 3, 5, dtype=d)] + moments + [x(3, dtype=d), x(3, dtype=d)],
        training=True,
        momentum=0.25,
    )
    case(
        "train-" + name,
        "batch_norm_relu",
        [x(4, 3, dtype=d)] + moments + [x(3, dtype=d), None, x(4, 3, dtype=d)],
        training=True,
    )
    case(
        "train-" + name,
        "instance_norm",
        [x(2, 3, 5, dtype=d)] + moments + [None, None],
        momentum=0.25,
    )
    # ---- values that are read on the host ----
    packed = [x(3, 2, 2, dtype=d), x(2, 2, dtype=d)]
    lengths = n(dtype=I64, data=[3, 1])
    case(
        "packed-" + name,
        "rnn_sequence",
        packed + [x(2, 2, dtype=d), x(2, 2, dtype=d), None, None, lengths],
    )
    case(
        "packed-" + name,
        "gru_sequence",
        packed + [x(6, 2, dtype=d), x(6, 2, dtype=d), None, None, lengths],
    )
    case(
        "packed-" + name,
        "lstm_sequence",
        packed + [x(2, 2, dtype=d), x(8, 2, dtype=d), x(8, 2, dtype=d), None, None, None, lengths],
    )
    # ---- attention with dropout ----
    case(
        "drop-" + name,
        "scaled_dot_product_attention",
        [x(2, 3, 4, dtype=d), x(2, 5, 4, dtype=d), x(2, 5, 3, dtype=d), None],
        dropout_p=0.25,
    )
    heads = (
        [x(3, 2, 4, dtype=d), x(3, 2, 4, dtype=d), x(3, 2, 4, dtype=d), x(12, 4, dtype=d)]
        + [None] * 6
        + [x(4, 4, dtype=d)]
        + [None] * 3
    )
    case("drop-" + name, "multi_head_attention", heads, num_heads=2, dropout_p=0.25)
    case("drop-" + name, "multi_head_attention_with_weights", heads, num_heads=2, dropout_p=0.25)
case(
    "state-i64",
    "philox_permutation",
    [n(11, dtype=I64), n(dtype=I64, data=[12345678901, 3, 1])],
    seed=0,
    block=4,
)
for d in FLOATS:
    name = NAMES[d]
    case(name, "exponential", [n(4, 5, dtype=d)], lambd=2.0)
    case(name, "geometric", [n(4, 5, dtype=d)], p=0.25)
    case(name, "log_normal", [n(4, 5, dtype=d)], mean=0.5, std=0.25)
    case(name, "cauchy", [n(4, 5, dtype=d)], median=1.0, sigma=2.0)
    p = n(data=[[0.5, 0.0, 0.25, 1.0], [2.0, 1.0, 0.5, 0.0]], dtype=d)
    case(name, "multinomial", [p], num_samples=3)
    case("again-" + name, "multinomial", [p], num_samples=5, replacement=True)
    case("many-" + name, "multinomial", [p], num_samples=40, replacement=True)
    case("one-" + name, "multinomial", [n(data=[0.5, 0.0, 0.25], dtype=d)], num_samples=2)
case("i64", "geometric", [n(4, 5, dtype=I64)], p=0.01)
case("i8", "geometric", [n(4, 5, dtype=torch.int8)], p=0.001)
for d in (F32, F64):
    case(NAMES[d], "rrelu", [x(4, 5, dtype=d)], training=True)
    case("off-" + NAMES[d], "rrelu", [x(4, 5, dtype=d)], lower=0.25, upper=0.5)
print("end")
