#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Convolution, pooling, normalization, attention, recurrent networks, distances, resampling:
#  PYTHON-WITH-TORCH make_conv_pool_norm.py > conv_pool_norm.txt
from cases import *


# ---- convolution ----
def conv(name, dims, a, w, b=None, kind="conv", **options):
    op = "%s%dd" % (kind, dims)
    call, how = getattr(F, op), dict(options)
    if "auto_padding" in how:
        how["padding"] = how.pop("auto_padding")
    case(op, name, lambda a, w, b=None: call(a, w, b, **how), [a, w, b], **lists(options))


def back(*given, **options):
    conv(*given, kind="conv_transpose", **options)


for d in (F32, F64, F16, BF16):
    conv(NAMES[d], 2, x(2, 2, 4, 5, dtype=d), x(3, 2, 2, 3, dtype=d), x(3, dtype=d))
    conv(NAMES[d], 1, x(2, 3, 6, dtype=d), x(2, 3, 3, dtype=d), x(2, dtype=d))
    conv(NAMES[d], 3, x(1, 2, 3, 3, 4, dtype=d), x(2, 2, 2, 2, 2, dtype=d), x(2, dtype=d))
conv("no-bias", 2, x64(1, 2, 4, 4), x64(2, 2, 3, 3))
conv("padding", 2, x64(1, 2, 3, 3), x64(2, 2, 3, 3), x64(2), padding=1)
conv("paddings", 2, x64(1, 1, 3, 4), x64(2, 1, 3, 2), padding=[2, 1])
conv("stride", 2, x64(2, 2, 7, 6), x64(3, 2, 3, 2), x64(3), stride=2)
conv("stride-rest", 2, x(1, 2, 8, 8), x(2, 2, 3, 3), x(2), stride=[3, 2], padding=1)
conv("dilation", 2, x64(1, 2, 7, 7), x64(2, 2, 3, 2), dilation=[2, 3])
conv(
    "all",
    2,
    x64(1, 4, 9, 8),
    x64(4, 2, 3, 3),
    x64(4),
    stride=2,
    padding=[2, 1],
    dilation=2,
    groups=2,
)
conv("depthwise", 2, x64(2, 3, 4, 4), x64(6, 1, 3, 3), x64(6), groups=3, padding=1)
conv("one-by-one", 2, x64(2, 3, 3, 3), x64(4, 3, 1, 1), x64(4))
conv("one-by-one-stride", 2, x64(2, 3, 5, 5), x64(4, 3, 1, 1), stride=2)
conv("channels-last", 2, like_images(2, 3, 5, 4), x(4, 3, 3, 3), x(4), padding=1)
conv(
    "channels-last-64",
    2,
    like_images(2, 4, 5, 4, dtype=F64),
    x64(4, 2, 3, 3),
    groups=2,
    stride=2,
    padding=1,
)
conv(
    "weight-last",
    2,
    like_images(1, 3, 4, 4, dtype=F64),
    like_images(2, 3, 3, 3, dtype=F64),
    padding=1,
)
conv("unbatched", 2, x64(2, 4, 4), x64(2, 2, 3, 3), x64(2))
conv("no-images", 2, x(0, 2, 4, 4), x(3, 2, 3, 3), x(3))
conv("narrowed", 2, x64(2, 2, 4, 8, narrow=(3, 2, 4)), x64(2, 2, 3, 3))
conv("expanded", 2, x64(1, 1, 4, 4, expand=(2, 3, 4, 4)), x64(2, 3, 3, 3))
conv("far-padding", 2, x64(1, 1, 2, 2), x64(1, 1, 2, 2), padding=3)
conv("same", 2, x64(1, 2, 5, 4), x64(2, 2, 3, 2), x64(2), auto_padding="same")
conv("same-dilated", 2, x64(1, 1, 6, 6), x64(2, 1, 2, 3), auto_padding="same", dilation=[3, 2])
conv("valid", 2, x64(1, 1, 4, 4), x64(2, 1, 2, 3), auto_padding="valid")
conv("larger", 2, x(2, 8, 9, 9), x(8, 8, 3, 3), x(8), padding=1)
conv("stride", 1, x64(2, 4, 9), x64(4, 2, 3), x64(4), stride=2, padding=2, groups=2)
conv("same", 1, x64(1, 2, 5), x64(2, 2, 4), auto_padding="same")
conv("unbatched", 1, x64(2, 5), x64(2, 2, 3))
conv("dilation", 1, x64(1, 2, 9), x64(2, 2, 3), dilation=3)
conv(
    "all",
    3,
    x64(1, 2, 5, 4, 5),
    x64(2, 1, 2, 3, 2),
    x64(2),
    stride=[2, 1, 2],
    padding=[1, 1, 0],
    dilation=[2, 1, 1],
    groups=2,
)
conv("unbatched", 3, x64(1, 3, 3, 3), x64(2, 1, 2, 2, 2))


for d in (F32, F64, F16, BF16):
    back(NAMES[d], 2, x(2, 3, 2, 3, dtype=d), x(3, 2, 2, 2, dtype=d), x(2, dtype=d))
    back(NAMES[d], 1, x(2, 3, 3, dtype=d), x(3, 2, 3, dtype=d), x(2, dtype=d))
    back(NAMES[d], 3, x(1, 2, 2, 2, 2, dtype=d), x(2, 2, 2, 1, 2, dtype=d), x(2, dtype=d))
back("no-bias", 2, x64(1, 2, 3, 3), x64(2, 2, 3, 3))
back("stride", 2, x64(1, 2, 3, 2), x64(2, 3, 3, 2), x64(3), stride=2)
back("padding", 2, x64(1, 2, 3, 4), x64(2, 3, 3, 2), x64(3), padding=1)
back(
    "output-padding",
    2,
    x64(1, 2, 3, 3),
    x64(2, 3, 3, 3),
    stride=[3, 2],
    padding=1,
    output_padding=[2, 1],
)
back(
    "all",
    2,
    x64(2, 4, 3, 2),
    x64(4, 2, 2, 3),
    x64(4),
    stride=2,
    padding=[1, 2],
    output_padding=1,
    groups=2,
    dilation=2,
)
back("unbatched", 2, x64(2, 3, 3), x64(2, 1, 2, 2), x64(1))
back("channels-last", 2, like_images(2, 3, 3, 2), x(3, 4, 3, 3), x(4), stride=2, padding=1)
back("stride", 1, x64(2, 2, 4), x64(2, 2, 3), x64(2), stride=3, padding=1, output_padding=2)
back("unbatched", 1, x64(2, 4), x64(2, 2, 3))
back("stride", 3, x64(1, 2, 2, 2, 2), x64(2, 2, 2, 2, 2), stride=2, output_padding=[1, 0, 1])
back("no-images", 2, x(0, 2, 3, 3), x(2, 2, 2, 2))


# ---- pooling ----
def pool(op, name, a, kernel, more={}, **options):
    call = getattr(F, op.replace("_with_indices", ""))
    given = lists(dict(options, kernel=kernel))
    case(op, name, lambda a: call(a, kernel, **more, **options), [a], **given)


def max_pool(name, dims, a, kernel, **options):
    op = "max_pool%dd" % dims
    pool(op, name, a, kernel, **options)
    pool(op + "_with_indices", name, a, kernel, {"return_indices": True}, **options)


def avg_pool(name, dims, a, kernel, **options):
    pool("avg_pool%dd" % dims, name, a, kernel, **options)


for d in FLOATS:
    max_pool(NAMES[d], 2, distinct(2, 2, 4, 5, dtype=d), 2)
    avg_pool(NAMES[d], 2, x(2, 2, 4, 5, dtype=d), 2)
max_pool("f64", 1, distinct(2, 2, 7, dtype=F64), 3)
max_pool("f64", 3, distinct(1, 2, 3, 4, 4, dtype=F64), 2)
max_pool("unbatched", 1, distinct(2, 7, dtype=F64), 2)
max_pool("unbatched", 2, distinct(2, 4, 4, dtype=F64), [2, 3])
max_pool("unbatched", 3, distinct(1, 3, 3, 3, dtype=F64), 2)
max_pool("stride", 2, distinct(1, 2, 6, 7, dtype=F64), 3, stride=2)
max_pool("overlap", 2, distinct(1, 2, 5, 5, dtype=F64), [3, 2], stride=1)
max_pool("padding", 2, distinct(1, 2, 5, 5, dtype=F64), 3, stride=2, padding=1)
max_pool("paddings", 2, distinct(2, 1, 4, 6, dtype=F64), [2, 4], stride=[2, 1], padding=[1, 2])
max_pool("dilation", 2, distinct(1, 1, 8, 7, dtype=F64), 2, dilation=[3, 2], stride=1)
max_pool("ceil", 2, distinct(1, 2, 6, 5, dtype=F64), 2, stride=2, ceil_mode=True)
max_pool("ceil-padding", 2, distinct(1, 1, 5, 6, dtype=F64), 3, stride=3, padding=1, ceil_mode=True)
max_pool(
    "ceil-dilation",
    2,
    distinct(1, 1, 8, 8, dtype=F64),
    3,
    stride=2,
    padding=1,
    dilation=2,
    ceil_mode=True,
)
max_pool("ceil-stride", 1, distinct(1, 2, 7, dtype=F64), 2, stride=4, ceil_mode=True)
max_pool("nan", 2, x(data=[[[[1.0, float("nan"), 2.0, 3.0], [4.0, 0.0, float("inf"), -1.0]]]]), 2)
max_pool("minus-infinity", 2, n(data=[[[[float("-inf")] * 4] * 4]]), 3, stride=2, padding=1)
max_pool("ties", 2, x64(data=[[[[1.0, 1.0, 2.0], [1.0, 1.0, 2.0]]]]), 2, stride=1)
max_pool("channels-last", 2, like_images(2, 3, 4, 4), 2)
max_pool("no-images", 2, x(0, 2, 4, 4), 2)
max_pool("padding", 3, distinct(1, 1, 4, 4, 4, dtype=F64), 3, stride=2, padding=1)
avg_pool("f64", 1, x64(2, 2, 7), 3)
avg_pool("f64", 3, x64(1, 2, 3, 4, 4), 2)
avg_pool("unbatched", 1, x64(2, 7), 2)
avg_pool("unbatched", 2, x64(2, 4, 4), [2, 3])
avg_pool("unbatched", 3, x64(1, 3, 3, 3), 2)
for include in (True, False):
    more = "" if include else "-without"
    avg_pool(
        "padding" + more, 2, x64(1, 2, 5, 5), 3, stride=2, padding=1, count_include_pad=include
    )
    avg_pool(
        "ceil" + more, 2, x64(1, 2, 6, 5), 2, stride=2, ceil_mode=True, count_include_pad=include
    )
    avg_pool(
        "ceil-padding" + more,
        2,
        x64(1, 1, 5, 6),
        [3, 2],
        stride=3,
        padding=1,
        ceil_mode=True,
        count_include_pad=include,
    )
    avg_pool(
        "padding" + more,
        1,
        x64(1, 2, 6),
        4,
        stride=3,
        padding=2,
        ceil_mode=True,
        count_include_pad=include,
    )
    avg_pool(
        "padding" + more,
        3,
        x64(1, 1, 4, 3, 4),
        [3, 2, 2],
        stride=2,
        padding=[1, 1, 0],
        count_include_pad=include,
    )
avg_pool("overlap", 2, x64(1, 2, 5, 5), [3, 2], stride=1)
avg_pool("gaps", 2, x64(1, 1, 7, 7), 2, stride=3)
avg_pool("divisor", 2, x64(1, 1, 4, 4), 2, divisor_override=3, padding=1)
avg_pool("channels-last", 2, like_images(2, 3, 4, 4), 2)
avg_pool("no-images", 2, x(0, 2, 4, 4), 2)
for dims, size, outputs in (
    (1, (7,), ([3], [7], [1], [10])),
    (2, (5, 7), ([2, 3], [5, 7], [1, 1], [8, 3])),
    (2, (6, 4), ([3, 2], [2, 4])),
    (3, (3, 4, 5), ([2, 3, 2], [1, 1, 1], [3, 2, 5])),
):
    for output in outputs:
        name = "x".join(map(str, size)) + "-" + "x".join(map(str, output))
        for kind, make in (("avg", x), ("max", distinct)):
            call = getattr(F, "adaptive_%s_pool%dd" % (kind, dims))
            case(
                "adaptive_%s_pool%dd" % (kind, dims),
                name,
                lambda a: call(a, output),
                [make(2, 2, *size, dtype=F64)],
                output_size=output,
            )
        call = getattr(F, "adaptive_max_pool%dd" % dims)
        case(
            "adaptive_max_pool%dd_with_indices" % dims,
            name,
            lambda a: call(a, output, return_indices=True),
            [distinct(2, 2, *size, dtype=F64)],
            output_size=output,
        )
for d in FLOATS:
    case(
        "adaptive_avg_pool2d",
        NAMES[d],
        lambda a: F.adaptive_avg_pool2d(a, (2, 3)),
        [x(2, 2, 5, 4, dtype=d)],
        output_size=[2, 3],
    )
    case(
        "adaptive_max_pool2d",
        NAMES[d],
        lambda a: F.adaptive_max_pool2d(a, (2, 3)),
        [distinct(2, 2, 5, 4, dtype=d)],
        output_size=[2, 3],
    )
case(
    "adaptive_avg_pool2d",
    "unbatched",
    lambda a: F.adaptive_avg_pool2d(a, (3, None)),
    [x64(2, 4, 5)],
    output_size=[3, -1],
)
case(
    "adaptive_max_pool2d",
    "unbatched",
    lambda a: F.adaptive_max_pool2d(a, (3, None)),
    [distinct(2, 4, 5, dtype=F64)],
    output_size=[3, -1],
)
for dims, size, kernel in ((1, (7,), 2), (2, (5, 6), 2), (2, (5, 6), [2, 3]), (3, (3, 4, 4), 2)):
    for p in (2.0, 1.0, 3.0):
        for options in ({}, {"stride": 1}, {"ceil_mode": True}):
            call = getattr(F, "lp_pool%dd" % dims)
            case(
                "lp_pool%dd" % dims,
                "%g-%s" % (p, "-".join(options)),
                lambda a: call(a, p, kernel, **options),
                [x64(1, 2, *size, positive=True)],
                p=p,
                **lists(dict(options, kernel=kernel))
            )
for dims, size in ((1, (8,)), (2, (4, 6)), (3, (4, 4, 4))):
    pool, unpool = getattr(F, "max_pool%dd" % dims), getattr(F, "max_unpool%dd" % dims)
    for name, shape, output in (
        ("plain", (2, 2), None),
        ("unbatched", (2,), None),
        ("sized", (1, 2), [s + 1 for s in size]),
    ):
        _, places = pool(torch.randn(*shape, *size), 2, return_indices=True)
        more = {} if output is None else {"output_size": output}
        case(
            "max_unpool%dd" % dims,
            name,
            lambda a, i: unpool(a, i, 2, **more),
            [x64(*places.shape), n(dtype=I64, data=places.tolist())],
            kernel=[2],
            **more
        )


# ---- normalization ----
for d in FLOATS:
    c = (x(3, dtype=d), x(3, dtype=d))
    r = (n(3, dtype=d), n(3, dtype=d, positive=True))
    case(
        "batch_norm",
        "training-" + NAMES[d],
        lambda a, m, v, w, b: F.batch_norm(a, m, v, w, b, True),
        [x(4, 3, 2, 2, dtype=d), None, None, *c],
        training=True,
    )
    case(
        "batch_norm",
        "running-" + NAMES[d],
        lambda a, m, v, w, b: F.batch_norm(a, m, v, w, b, False),
        [x(4, 3, 2, 2, dtype=d), *r, *c],
    )
    case(
        "layer_norm",
        NAMES[d],
        lambda a, w, b: F.layer_norm(a, (5,), w, b),
        [x(2, 3, 5, dtype=d), x(5, dtype=d), x(5, dtype=d)],
        normalized_shape=[5],
    )
    case(
        "group_norm",
        NAMES[d],
        lambda a, w, b: F.group_norm(a, 2, w, b),
        [x(2, 4, 3, dtype=d), x(4, dtype=d), x(4, dtype=d)],
        num_groups=2,
    )
    case(
        "rms_norm",
        NAMES[d],
        lambda a, w: F.rms_norm(a, (5,), w),
        [x(2, 3, 5, dtype=d), x(5, dtype=d)],
        normalized_shape=[5],
    )
    case(
        "instance_norm",
        NAMES[d],
        lambda a, m, v, w, b: F.instance_norm(a, m, v, w, b),
        [x(2, 3, 2, 3, dtype=d), None, None, *c],
    )
for name, a in (
    ("2d", x64(5, 3)),
    ("3d", x64(2, 3, 4)),
    ("5d", x64(2, 3, 2, 1, 2)),
    ("last", like_images(2, 3, 3, 2, dtype=F64)),
    ("narrowed", x64(4, 5, 2, narrow=(1, 1, 3))),
    ("far", x64(data=[[100.0, 1.0, -4.0], [101.0, 2.0, -4.0], [102.0, 4.0, -4.5]])),
):
    for w, b in ((x64(3), x64(3)), (None, None), (x64(3), None), (None, x64(3))):
        for training in (True, False):
            case(
                "batch_norm",
                "%s-%s" % (name, training),
                lambda a, m, v, w, b: (
                    F.batch_norm(a, m, v, w, b, True, 0.0)
                    if training
                    else F.batch_norm(a, m, v, w, b, False, eps=0.01)
                ),
                [a, n(3, dtype=F64), n(3, dtype=F64, positive=True), w, b],
                training=training,
                momentum=0.0 if training else 0.1,
                eps=1e-5 if training else 0.01,
            )
for shape, normalized in (
    ((4, 3), [3]),
    ((2, 3, 4), [3, 4]),
    ((2, 1, 3), [2, 1, 3]),
    ((0, 3), [3]),
    ((5,), [5]),
):
    w = dict(dtype=F64)
    case(
        "layer_norm",
        "plain",
        lambda a, w, b: F.layer_norm(a, normalized, w, b, 0.1),
        [x(*shape, **w), None, None],
        normalized_shape=normalized,
        eps=0.1,
    )
    case(
        "layer_norm",
        "affine",
        lambda a, w, b: F.layer_norm(a, normalized, w, b),
        [x(*shape, **w), x(*normalized, **w), x(*normalized, **w)],
        normalized_shape=normalized,
    )
    case(
        "layer_norm",
        "weight",
        lambda a, w, b: F.layer_norm(a, normalized, w, b),
        [x(*shape, **w), x(*normalized, **w), None],
        normalized_shape=normalized,
    )
    case(
        "rms_norm",
        "plain",
        lambda a, w: F.rms_norm(a, normalized, w, 0.1),
        [x(*shape, **w), None],
        normalized_shape=normalized,
        eps=0.1,
    )
    case(
        "rms_norm",
        "weight",
        lambda a, w: F.rms_norm(a, normalized, w),
        [x(*shape, **w), x(*normalized, **w)],
        normalized_shape=normalized,
    )
case(
    "layer_norm",
    "transposed",
    lambda a, w, b: F.layer_norm(a, (4,), w, b),
    [x64(4, 3, order=(1, 0)), x64(4), x64(4)],
    normalized_shape=[4],
)
case(
    "layer_norm",
    "larger",
    lambda a, w, b: F.layer_norm(a, (67,), w, b),
    [x(5, 67), x(67), x(67)],
    normalized_shape=[67],
)
for groups in (1, 2, 4):
    for shape in ((2, 4), (2, 4, 3), (1, 4, 2, 2)):
        case(
            "group_norm",
            "plain",
            lambda a, w, b: F.group_norm(a, groups, w, b),
            [x64(*shape), None, None],
            num_groups=groups,
        )
        case(
            "group_norm",
            "affine",
            lambda a, w, b: F.group_norm(a, groups, w, b, 0.01),
            [x64(*shape), x64(4), x64(4)],
            num_groups=groups,
            eps=0.01,
        )
for shape in ((2, 3, 4), (2, 3, 2, 2), (1, 3, 2, 2, 2)):
    case(
        "instance_norm",
        "plain",
        lambda a, m, v, w, b: F.instance_norm(a),
        [x64(*shape), None, None, None, None],
    )
    case(
        "instance_norm",
        "affine",
        lambda a, m, v, w, b: F.instance_norm(a, m, v, w, b, momentum=0.0),
        [x64(*shape), n(3, dtype=F64), n(3, dtype=F64, positive=True), x64(3), x64(3)],
        momentum=0.0,
    )
    case(
        "instance_norm",
        "running",
        lambda a, m, v, w, b: F.instance_norm(a, m, v, w, b, use_input_stats=False),
        [x64(*shape), n(3, dtype=F64), n(3, dtype=F64, positive=True), x64(3), x64(3)],
        use_input_stats=False,
    )
for size, shape in ((3, (2, 5, 3)), (2, (1, 4, 2, 2)), (5, (2, 3, 2, 2, 1)), (1, (1, 3, 2))):
    case(
        "local_response_norm",
        "%d" % size,
        lambda a: F.local_response_norm(a, size, 0.5, 0.7, 1.5),
        [x64(*shape)],
        neighbours=size,
        alpha=0.5,
        beta=0.7,
        k=1.5,
    )
    case(
        "local_response_norm",
        "usual-%d" % size,
        lambda a: F.local_response_norm(a, size),
        [x(*shape)],
        neighbours=size,
    )
for p in (2.0, 1.0, 3.0, float("inf")):
    for dim, shape in ((1, (3, 4)), (0, (3, 4)), (-1, (2, 3, 2)), (1, (0, 4))):
        case(
            "normalize",
            "%g" % p,
            lambda a: F.normalize(a, p, dim),
            [distinct(*shape, dtype=F64) if p > 3 and 0 not in shape else x64(*shape)],
            p=p,
            dim=dim,
        )
    case(
        "pairwise_distance",
        "%g" % p,
        lambda a, b: F.pairwise_distance(a, b, p),
        [
            x64(data=torch.randn(3, 4, dtype=F64).tolist()),
            x64(data=torch.randn(3, 4, dtype=F64).tolist()),
        ],
        p=p,
    )
    case(
        "pairwise_distance",
        "kept-%g" % p,
        lambda a, b: F.pairwise_distance(a, b, p, 0.25, True),
        [
            x64(data=torch.randn(3, 4, dtype=F64).tolist()),
            x64(data=torch.randn(4, dtype=F64).tolist()),
        ],
        p=p,
        eps=0.25,
        keepdim=True,
    )
    case(
        "cdist",
        "%g" % p,
        lambda a, b: torch.cdist(a, b, p, compute_mode="donot_use_mm_for_euclid_dist"),
        [
            x64(data=torch.randn(3, 4, dtype=F64).tolist()),
            x64(data=torch.randn(2, 4, dtype=F64).tolist()),
        ],
        p=p,
    )
    case(
        "cdist",
        "batch-%g" % p,
        lambda a, b: torch.cdist(a, b, p, compute_mode="donot_use_mm_for_euclid_dist"),
        [
            x64(data=torch.randn(2, 3, 2, dtype=F64).tolist()),
            x64(data=torch.randn(1, 4, 2, dtype=F64).tolist()),
        ],
        p=p,
    )
case("normalize", "zero", lambda a: F.normalize(a), [x(data=[[0.0, 0.0], [3.0, 4.0]])])
for dim, a, b in ((1, x64(3, 4), x64(3, 4)), (0, x(3, 4), x(3, 4)), (-1, x64(2, 1, 3), x64(2, 3))):
    case(
        "cosine_similarity",
        "%d" % dim,
        lambda a, b: F.cosine_similarity(a, b, dim),
        [a, b],
        dim=dim,
    )


# ---- other sizes ----
for d in FLOATS:
    case(
        "interpolate",
        "nearest-" + NAMES[d],
        lambda a: F.interpolate(a, (5, 3)),
        [x(2, 2, 3, 4, dtype=d)],
        output_size=[5, 3],
    )
    case(
        "interpolate",
        "bilinear-" + NAMES[d],
        lambda a: F.interpolate(a, (6, 3), mode="bilinear"),
        [x(2, 2, 3, 4, dtype=d)],
        output_size=[6, 3],
        mode="bilinear",
    )
for mode, shape, sizes in (
    ("nearest", (1, 2, 5), ([3], [10], [7])),
    ("nearest-exact", (1, 2, 5), ([3], [10], [7])),
    ("nearest", (1, 2, 3, 4, 2), ([2, 5, 3],)),
    ("nearest-exact", (1, 2, 3, 4), ([5, 2],)),
    ("linear", (2, 2, 5), ([3], [9], [1], [5])),
    ("bilinear", (1, 2, 4, 3), ([7, 5], [2, 2], [1, 8])),
    ("bicubic", (1, 2, 4, 5), ([7, 5], [2, 3], [8, 10])),
    ("trilinear", (1, 2, 3, 2, 4), ([5, 3, 2],)),
):
    for size in sizes:
        for corners in ((False,) if "nearest" in mode else (False, True)):
            case(
                "interpolate",
                "%s-%s-%s" % (mode, size, corners),
                lambda a: F.interpolate(
                    a, size, mode=mode, align_corners=corners if "nearest" not in mode else None
                ),
                [x64(*shape)],
                output_size=size,
                mode=mode,
                align_corners=corners,
            )
for mode, factor in (
    ("nearest", 2.0),
    ("nearest", 1.7),
    ("bilinear", 1.7),
    ("bilinear", 0.6),
    ("bicubic", 1.3),
):
    y = F.interpolate(torch.zeros(1, 1, 5, 4), scale_factor=factor, mode=mode)
    case(
        "interpolate",
        "scale-%s-%g" % (mode, factor),
        lambda a: F.interpolate(a, scale_factor=factor, mode=mode),
        [x64(1, 2, 5, 4)],
        output_size=list(y.shape[2:]),
        mode=mode,
        scale_factor=[factor],
    )
for r, shape in ((2, (1, 8, 2, 3)), (3, (9, 2, 1)), (1, (2, 3, 2, 2))):
    case(
        "pixel_shuffle", "%d" % r, lambda a: F.pixel_shuffle(a, r), [x64(*shape)], upscale_factor=r
    )
for r, shape in ((2, (1, 2, 4, 6)), (3, (1, 3, 6))):
    case(
        "pixel_unshuffle",
        "%d" % r,
        lambda a: F.pixel_unshuffle(a, r),
        [x64(*shape)],
        downscale_factor=r,
    )
for g, shape in ((2, (2, 4, 3)), (3, (1, 6, 2, 2))):
    case(
        "channel_shuffle",
        "%d" % g,
        lambda a: torch.channel_shuffle(a, g),
        [n(*shape, dtype=F64)],
        groups=g,
    )

# ---- attention and cells ----
attend = F.scaled_dot_product_attention
for d in FLOATS:
    case(
        "scaled_dot_product_attention",
        NAMES[d],
        lambda q, k, v, m: attend(q, k, v),
        [x(2, 3, 4, dtype=d), x(2, 5, 4, dtype=d), x(2, 5, 3, dtype=d), None],
    )
for name, q, k, v in (
    ("flat", (3, 4), (5, 4), (5, 2)),
    ("heads", (2, 2, 3, 4), (2, 2, 3, 4), (2, 2, 3, 4)),
    ("no-rows", (2, 0, 4), (2, 3, 4), (2, 3, 4)),
):
    ins = [x64(*q), x64(*k), x64(*v)]
    case("scaled_dot_product_attention", name, lambda q, k, v, m: attend(q, k, v), ins + [None])
    case(
        "scaled_dot_product_attention",
        "causal-" + name,
        lambda q, k, v, m: attend(q, k, v, is_causal=True),
        ins + [None],
        is_causal=True,
    )
    case(
        "scaled_dot_product_attention",
        "scale-" + name,
        lambda q, k, v, m: attend(q, k, v, scale=0.3),
        ins + [None],
        scale=0.3,
    )
    if name != "no-rows":
        case(
            "scaled_dot_product_attention",
            "bools-" + name,
            lambda q, k, v, m: attend(q, k, v, m),
            ins + [n(q[-2], k[-2], dtype=BOOL)],
        )
        case(
            "scaled_dot_product_attention",
            "numbers-" + name,
            lambda q, k, v, m: attend(q, k, v, m),
            ins + [x64(q[-2], k[-2])],
        )
case(
    "scaled_dot_product_attention",
    "nothing",
    lambda q, k, v, m: attend(q, k, v, m),
    [x64(2, 3), x64(2, 3), x64(2, 3), n(data=[[False, False], [True, False]], dtype=BOOL)],
)
case(
    "scaled_dot_product_attention",
    "grouped",
    lambda q, k, v, m: attend(q, k, v, enable_gqa=True),
    [x64(1, 4, 3, 2), x64(1, 2, 3, 2), x64(1, 2, 3, 2), None],
    enable_gqa=True,
)
for op, gates in (("rnn_tanh_cell", 1), ("rnn_relu_cell", 1), ("gru_cell", 3), ("lstm_cell", 4)):
    call = getattr(torch, op)
    for d in FLOATS:
        w = [
            x(gates * 3, 4, dtype=d),
            x(gates * 3, 3, dtype=d),
            x(gates * 3, dtype=d),
            x(gates * 3, dtype=d),
        ]
        if op == "lstm_cell":
            case(
                op,
                NAMES[d],
                lambda a, h, c, *w: call(a, (h, c), *w),
                [x(2, 4, dtype=d), x(2, 3, dtype=d), x(2, 3, dtype=d)] + w,
            )
        else:
            case(op, NAMES[d], call, [x(2, 4, dtype=d), x(2, 3, dtype=d)] + w)
    w = [x64(gates * 3, 4), x64(gates * 3, 3), None, None]
    if op != "lstm_cell":
        case(
            op,
            "no-bias",
            lambda a, h, wi, wh, bi, bh: call(a, h, wi, wh),
            [x64(2, 4), x64(2, 3)] + w,
        )
    else:
        case(
            op,
            "no-bias",
            lambda a, h, c, wi, wh, bi, bh: call(a, (h, c), wi, wh),
            [x64(2, 4), x64(2, 3), x64(2, 3)] + w,
        )


# ---- sequences ----
def lengths_of(*given):
    return n(data=list(given), dtype=I64)


def sequence(kind, gates, d, with_lengths, reverse=False, bias=True, project=0, relu=False):
    """One direction of PyTorch's own module: parameters and lengths through torch.nn.utils.rnn."""
    length, batch, inputs, hidden = 4, 3, 2, 3
    out = project or hidden
    where = [3, 4, 1]

    def call(*t):
        if kind == "lstm":
            a, h, c, wi, wh, bi, bh, hr, ls = t
        else:
            (a, h, wi, wh, bi, bh, ls), c, hr = t, None, None
        ends = where if with_lengths else [length] * batch
        ys, hs, cs = [], [], []
        for b in range(batch):
            hb, cb = h[b], c[b] if c is not None else None
            row_ = [None] * length
            for i in (range(ends[b] - 1, -1, -1) if reverse else range(ends[b])):
                if kind == "lstm":
                    # torch.lstm_cell has no projection
                    g = F.linear(a[i, b], wi, bi) + F.linear(hb, wh, bh)
                    i_, f_, g_, o_ = g.chunk(4)
                    cb = f_.sigmoid() * cb + i_.sigmoid() * g_.tanh()
                    hb = o_.sigmoid() * cb.tanh()
                    hb = F.linear(hb, hr) if hr is not None else hb
                else:
                    hb = getattr(
                        torch,
                        (
                            kind
                            if kind == "gru_cell"
                            else "rnn_relu_cell" if relu else "rnn_tanh_cell"
                        ),
                    )(a[i, b][None], hb[None], wi, wh, bi, bh)[0]
                row_[i] = hb
            ys.append(torch.stack([r if r is not None else torch.zeros_like(hb) for r in row_]))
            hs.append(hb)
            cs.append(cb)
        y = torch.stack(ys, 1)
        return (y, torch.stack(hs)) + ((torch.stack(cs),) if kind == "lstm" else ())

    name = {"lstm": "lstm_sequence", "gru_cell": "gru_sequence"}.get(kind, "rnn_sequence")
    ins = [x(length, batch, inputs, dtype=d), x(batch, out, dtype=d)]
    if kind == "lstm":
        ins.append(x(batch, hidden, dtype=d))
    ins += [x(gates * hidden, inputs, dtype=d), x(gates * hidden, out, dtype=d)] + [
        x(gates * hidden, dtype=d) if bias else None for _ in range(2)
    ]
    if kind == "lstm":
        ins.append(x(project, hidden, dtype=d) if project else None)
    ins.append(lengths_of(*where) if with_lengths else None)
    options = {"reverse": reverse}
    if relu:
        options["nonlinearity"] = "relu"
    case(
        name,
        "%s-%d%d%d%d%d" % (NAMES[d], with_lengths, reverse, bias, project, relu),
        call,
        ins,
        **options
    )


for d in FLOATS:
    for kind, gates in (("rnn", 1), ("gru_cell", 3), ("lstm", 4)):
        sequence(kind, gates, d, False)
for with_lengths in (False, True):
    for reverse in (False, True):
        for kind, gates in (("rnn", 1), ("gru_cell", 3), ("lstm", 4)):
            sequence(kind, gates, F64, with_lengths, reverse, bias=not reverse)
        sequence("rnn", 1, F64, with_lengths, reverse, relu=True)
        sequence("lstm", 4, F64, with_lengths, reverse, project=2)


# ---- attention of several heads ----
def small(*shape, dtype):
    """Small numbers, so that softmax is not steep."""
    data = ((torch.randn(shape, dtype=F64) * 8).round() / 16).tolist()
    return x(data=data, dtype=dtype)


def heads(
    name,
    d=F64,
    k=(3, 2, 4),
    v=None,
    bias=True,
    kv=False,
    keys=None,
    mask=None,
    weights=False,
    **given
):
    q, v, options = (3, 2, 4), v or k, {"num_heads": 2, **given}
    e = q[2]
    apart = k[2] != e or v[2] != e

    def call(q, k, v, wi, wq, wk, wv, bi, bk, bv, wo, bo, km, m):
        bk, bv = (t if t is None else t[None, None] for t in (bk, bv))
        zero = options.get("add_zero_attn", False)
        y, w = F.multi_head_attention_forward(
            *(q, k, v, e, options["num_heads"], wi, bi, bk, bv, zero, 0.0, wo, bo),
            key_padding_mask=km,
            need_weights=weights,
            attn_mask=m,
            use_separate_proj_weight=apart,
            q_proj_weight=wq,
            k_proj_weight=wk,
            v_proj_weight=wv,
            average_attn_weights=options.get("average_attn_weights", True)
        )
        return (y, w) if weights else y

    ins = [small(*shape, dtype=d) for shape in (q, k, v)]
    if apart:
        ins += [None] + [small(e, length, dtype=d) for length in (e, k[2], v[2])]
    else:
        ins += [small(3 * e, e, dtype=d), None, None, None]
    ins.append(small(3 * e, dtype=d) if bias else None)
    ins += [small(e, dtype=d) if kv else None for _ in range(2)]
    ins += [small(e, e, dtype=d), small(e, dtype=d) if bias else None, keys, mask]
    op = "multi_head_attention" + ("_with_weights" if weights else "")
    case(op, name, call, ins, **options)


for d in (F32, F64):
    heads(NAMES[d], d)
    heads(NAMES[d], d, weights=True)
last = n(data=[[False, False, True], [False, False, False]], dtype=BOOL)
some = n(data=[[False, True, False, False], [True, False, False, False]], dtype=BOOL)
later = n(data=[[False, True, True], [False, False, True], [False, False, False]], dtype=BOOL)
for weights in (False, True):
    heads("apart", k=(5, 2, 3), v=(5, 2, 2), weights=weights)
    heads("cross", k=(5, 2, 4), num_heads=4, bias=False, weights=weights)
    heads("more", k=(4, 2, 4), kv=True, add_zero_attn=True, keys=some, weights=weights)
    heads("kv", kv=True, mask=x64(3, 3), weights=weights)
    heads("zero", add_zero_attn=True, keys=n(2, 3, dtype=F64), weights=weights)
    heads("masks", mask=later, keys=last, weights=weights)
    heads("each", mask=x64(4, 3, 3), weights=weights)
heads("heads", weights=True, average_attn_weights=False)


# ---- sampling ----
for d in FLOATS:
    case(
        "affine_grid",
        NAMES[d],
        lambda t: F.affine_grid(t, (2, 1, 3, 4), align_corners=False),
        [x(2, 2, 3, dtype=d)],
        output_size=[2, 1, 3, 4],
    )
    case(
        "grid_sample",
        NAMES[d],
        lambda a, g: F.grid_sample(a, g, align_corners=False),
        [x(2, 2, 3, 4, dtype=d), x(2, 2, 3, 2, dtype=d)],
    )
for corners in (False, True):
    for size in ([1, 2, 2, 3], [1, 1, 1, 4], [1, 1, 2, 3, 2], [2, 1, 1, 1, 3]):
        dims = len(size) - 2
        case(
            "affine_grid",
            "%s-%s" % (row(size), corners),
            lambda t: F.affine_grid(t, size, align_corners=corners),
            [x64(size[0], dims, dims + 1)],
            output_size=size,
            align_corners=corners,
        )
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for shape, points in (
                ((2, 2, 3, 4), (2, 2, 3, 2)),
                ((1, 1, 1, 5), (1, 3, 2, 2)),
                ((1, 2, 2, 3, 4), (1, 2, 2, 3, 3)),
            ):
                if len(shape) == 5 and mode == "bicubic":
                    continue
                case(
                    "grid_sample",
                    "%s-%s-%s-%s" % (mode, padding, corners, row(shape)),
                    lambda a, g: F.grid_sample(a, g, mode, padding, corners),
                    [
                        x64(*shape),
                        (n if mode == "nearest" else x)(
                            data=(torch.randn(points, dtype=F64) * 1.5).tolist(), dtype=F64
                        ),
                    ],
                    mode=mode,
                    padding_mode=padding,
                    align_corners=corners,
                )
for d in (F32, F64):
    for shape, kernel, size in (
        ((2, 2, 7, 6), [2, 3], [3, 2]),
        ((1, 1, 5, 5), [2, 2], [4, 4]),
        ((3, 6, 7), [3, 2], [1, 5]),
    ):
        u = torch.rand(shape[:-2] + (2,), dtype=d)
        batched = u if len(shape) == 4 else u[None]
        case(
            "fractional_max_pool2d",
            "%s-%s" % (NAMES[d], row(shape)),
            lambda a, s: F.fractional_max_pool2d(
                a, kernel, size, return_indices=True, _random_samples=batched
            ),
            [x(*shape, dtype=d), n(data=u.tolist(), dtype=d)],
            kernel_size=kernel,
            output_size=size,
        )
    for shape, kernel, size in (
        ((2, 2, 5, 6, 4), [2, 3, 2], [3, 2, 2]),
        ((2, 5, 6, 4), [2, 2, 1], [3, 4, 3]),
    ):
        u = torch.rand(shape[:-3] + (3,), dtype=d)
        batched = u if len(shape) == 5 else u[None]
        case(
            "fractional_max_pool3d",
            "%s-%s" % (NAMES[d], row(shape)),
            lambda a, s: F.fractional_max_pool3d(
                a, kernel, size, return_indices=True, _random_samples=batched
            ),
            [x(*shape, dtype=d), n(data=u.tolist(), dtype=d)],
            kernel_size=kernel,
            output_size=size,
        )


# ---- bags ----
def bag(name, index, offsets, d=F64, weights=None, **options):
    case(
        "embedding_bag",
        name,
        lambda w, i, o, s: F.embedding_bag(
            i,
            w,
            o,
            mode=options.get("mode", "mean"),
            per_sample_weights=s,
            include_last_offset=options.get("include_last_offset", False),
            padding_idx=options.get("padding_idx"),
        ),
        [
            x(5, 3, dtype=d),
            n(data=index, dtype=I64),
            None if offsets is None else n(data=offsets, dtype=I64),
            weights,
        ],
        **options
    )


for mode in ("sum", "mean", "max"):
    for d in FLOATS:
        bag("%s-%s" % (mode, NAMES[d]), [[1, 0, 4], [2, 2, 1]], None, d, mode=mode)
    bag(mode + "-offsets", [1, 0, 4, 2, 2, 1, 3], [0, 2, 2, 6], mode=mode)
    bag(mode + "-last", [1, 0, 4, 2, 2, 1, 3], [0, 3, 7], mode=mode, include_last_offset=True)
    bag(mode + "-padding", [1, 0, 4, 2, 2, 1, 0, 2, 2], [0, 3, 5, 7], mode=mode, padding_idx=2)
    bag(mode + "-padding-even", [[1, 2, 4], [2, 2, 2], [0, 1, 2]], None, mode=mode, padding_idx=-3)
bag("weighted", [[1, 0, 4], [2, 2, 1]], None, weights=x64(2, 3), mode="sum")
bag("weighted-offsets", [1, 0, 4, 2, 2], [0, 2, 2], weights=x64(5), mode="sum", padding_idx=0)

# ---- found by PyTorch's own samples ----
for d in FLOATS:
    back(
        "beyond-a-stride-" + NAMES[d],
        2,
        x(2, 4, 2, 3, dtype=d),
        x(4, 2, 2, 3, dtype=d),
        x(4, dtype=d),
        stride=[3, 2],
        padding=[1, 2],
        output_padding=[2, 3],
        groups=2,
        dilation=[4, 4],
    )
back(
    "beyond-two-strides",
    1,
    x64(2, 3, 3),
    x64(3, 2, 2),
    stride=1,
    padding=1,
    output_padding=2,
    dilation=3,
)
for dim in (-1, -2, 0):
    case(
        "cosine_similarity",
        "broadcast%d" % dim,
        lambda a, b: F.cosine_similarity(a, b, dim),
        [x64(1, 2, 3), x64(2, 1, 3)],
        dim=dim,
    )
case(
    "cosine_similarity",
    "ranks",
    lambda a, b: F.cosine_similarity(a, b, 1),
    [x64(3), x64(2, 4, 1)],
    dim=1,
)
# a factor for each dimension instead of sizes; with recompute_scale_factor the resulting sizes
# determine the scale
for mode, shape, factors, corners in (
    ("nearest", (1, 2, 5, 4), [1.7, 0.6], None),
    ("nearest-exact", (1, 2, 5, 4), [0.7, 2.3], None),
    ("linear", (2, 1, 5), [1.3], False),
    ("bilinear", (1, 2, 4, 3), [1.6, 2.5], False),
    ("bilinear", (1, 2, 4, 3), [1.6, 2.5], True),
    ("bicubic", (1, 1, 4, 5), [1.3, 0.7], False),
    ("bicubic", (1, 1, 4, 5), [1.3, 0.7], True),
    ("trilinear", (1, 1, 3, 2, 4), [1.5, 2.5, 0.8], False),
    ("nearest", (1, 1, 3, 2, 4), [1.5, 2.5, 0.8], None),
):
    for again in (False, True):
        case(
            "interpolate",
            "factors-%s-%d%s%s"
            % (mode, len(shape), "-corners" if corners else "", "-again" if again else ""),
            lambda a: F.interpolate(
                a,
                scale_factor=factors,
                mode=mode,
                align_corners=corners,
                recompute_scale_factor=again,
            ),
            [x64(*shape)],
            output_size=[],
            scale_factor=factors,
            mode=mode,
            align_corners=bool(corners),
            recompute_scale_factor=again,
        )

# ---- found by random inputs ----
# images that are expanded: steps of 0
for shape, more in (
    ((1, 1, 1), dict(expand=(1, 1, 7))),
    ((2, 1, 1), dict(expand=(2, 3, 7))),
    ((1, 1, 5), dict(expand=(2, 1, 5))),
):
    channels = more["expand"][1]
    for kernel in (1, 3):
        case(
            "conv1d",
            "expanded-%d-%d" % (channels, kernel),
            lambda a, w, b: F.conv1d(a, w, b, 1, 1),
            [x64(*shape, **more), x64(2, channels, kernel), None],
            stride=1,
            padding=1,
        )
        case(
            "conv_transpose1d",
            "expanded-%d-%d" % (channels, kernel),
            lambda a, w, b: F.conv_transpose1d(a, w, b, 2),
            [x64(*shape, **more), x64(channels, 2, kernel), None],
            stride=2,
        )
# a last window that begins inside though not even the first one fits
for op, call in (("max_pool", F.max_pool2d), ("avg_pool", F.avg_pool2d)):
    for kernel, stride, padding, shape in (
        ([1, 3], [2, 2], [0, 1], (1, 2, 3, 1)),
        ([3, 3], [3, 3], [1, 0], (2, 1, 1, 2)),
        ([2, 2], [2, 2], [0, 0], (1, 1, 1, 1)),
    ):
        for d in FLOATS:
            case(
                op + "2d",
                "too-large-" + NAMES[d],
                lambda a: call(a, kernel, stride, padding, ceil_mode=True),
                [x(*shape, dtype=d)],
                kernel=kernel,
                stride=stride,
                padding=padding,
                ceil_mode=True,
            )
case(
    "avg_pool2d",
    "too-large-inside",
    lambda a: F.avg_pool2d(a, 3, 3, 1, True, False),
    [x64(1, 2, 1, 2)],
    kernel=[3],
    stride=[3],
    padding=[1],
    ceil_mode=True,
    count_include_pad=False,
)
case(
    "max_pool2d",
    "too-large-dilated",
    lambda a: F.max_pool2d(a, [3, 3], [1, 2], 1, 2, True),
    [x64(1, 2, 6, 2)],
    kernel=[3, 3],
    stride=[1, 2],
    padding=[1],
    dilation=[2],
    ceil_mode=True,
)
case(
    "lp_pool1d",
    "too-large",
    lambda a: F.lp_pool1d(a, 2.0, 3, 2, True),
    [x64(1, 2, 2, positive=True)],
    p=2.0,
    kernel=[3],
    stride=[2],
    ceil_mode=True,
)
# what is not finite stays in the windows that hold it
for d in FLOATS:
    case(
        "adaptive_avg_pool1d",
        "infinite-" + NAMES[d],
        lambda a: F.adaptive_avg_pool1d(a, 3),
        [x(data=[[[1.0, INF, 2.0, -1.0, 0.5, 3.0, NAN]]], dtype=d)],
        output_size=[3],
    )
case(
    "adaptive_avg_pool2d",
    "infinite",
    lambda a: F.adaptive_avg_pool2d(a, (2, 3)),
    [x64(data=[[[[1.0, -INF, 2.0, 4.0], [0.5, 1.0, 1.0, -2.0], [1.5, 2.0, 3.0, 0.25]]]])],
    output_size=[2, 3],
)
case(
    "local_response_norm",
    "nothing",
    lambda a: F.local_response_norm(a, 3),
    [x(2, 0, 4)],
    neighbours=3,
)
for p in (1.0, 2.0, INF):
    case(
        "cdist", "no-length-%g" % p, lambda a, b: torch.cdist(a, b, p), [x64(3, 0), x64(2, 0)], p=p
    )
# uneven means: windows that share elements, more windows than elements, even along one dimension
for d in FLOATS:
    for shape, size in (
        ((2, 3, 7, 10), (3, 7)),
        ((1, 2, 3, 4), (7, 8)),
        ((2, 1, 4, 5), (2, 3)),
        ((1, 2, 9, 2), (2, 9)),
    ):
        case(
            "adaptive_avg_pool2d",
            "uneven-%s-%s" % (row(shape[2:]), NAMES[d]),
            lambda a: F.adaptive_avg_pool2d(a, size),
            [x(*shape, dtype=d)],
            output_size=list(size),
        )
for shape, given in (
    ((2, 2, 5), {"size": [3]}),
    ((1, 2, 7, 5), {"size": [3, 2]}),
    ((1, 2, 3, 4), {"size": [6, 5]}),
    ((1, 1, 4, 5, 3), {"size": [2, 3, 2]}),
    ((2, 1, 4, 5), {"scale_factor": [0.7, 1.3]}),
):
    case(
        "interpolate",
        "area-%d-%s" % (len(shape), row(list(given.values())[0])),
        lambda a: F.interpolate(a, mode="area", **given),
        [x64(*shape)],
        output_size=given.get("size", []),
        mode="area",
        **({} if "size" in given else {"scale_factor": given["scale_factor"]}),
    )
for corners in (False, True):
    for padding in ("zeros", "border", "reflection"):
        case(
            "grid_sample",
            "bicubic-%s-%s-volume" % (padding, corners),
            lambda a, g: F.grid_sample(a, g, "bicubic", padding, corners),
            [
                x64(1, 2, 2, 3, 4),
                x(data=(torch.rand(1, 2, 1, 2, 3, dtype=F64) * 3 - 1.5).tolist(), dtype=F64),
            ],
            mode="bicubic",
            padding_mode=padding,
            align_corners=corners,
        )
print("end")
