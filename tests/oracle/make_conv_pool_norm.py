#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Convolution, pooling, normalization, attention, recurrent networks, distances, resampling:
#  PYTHON-WITH-TORCH make_conv_pool_norm.py > conv_pool_norm.txt
from cases import *

F = torch.nn.functional
FLOATS = (F32, F64, F16, BF16)


def like_images(*shape, **more):
    """Channels-last in memory, [N, C, H, W] to look at."""
    n_, c, h, w = shape
    return x(n_, h, w, c, order=(0, 3, 1, 2), **more)


# ---- convolution ----
def conv(name, dims, a, w, b=None, **options):
    call = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
    how = dict(options)
    if "auto_padding" in how:
        how["padding"] = how.pop("auto_padding")
    for key in ("stride", "padding", "dilation"):
        if isinstance(how.get(key), int):
            options[key] = [how[key]]
    Case("conv%dd/%s" % (dims, name), "conv%dd" % dims, lambda a, w, b=None: call(a, w, b, **how), [a, w, b], **options)


for d in (F32, F64, F16, BF16):
    conv(NAMES[d], 2, x(2, 2, 4, 5, dtype=d), x(3, 2, 2, 3, dtype=d), x(3, dtype=d))
    conv(NAMES[d], 1, x(2, 3, 6, dtype=d), x(2, 3, 3, dtype=d), x(2, dtype=d))
    conv(NAMES[d], 3, x(1, 2, 3, 3, 4, dtype=d), x(2, 2, 2, 2, 2, dtype=d), x(2, dtype=d))
conv("no-bias", 2, x(1, 2, 4, 4, dtype=F64), x(2, 2, 3, 3, dtype=F64))
conv("padding", 2, x(1, 2, 3, 3, dtype=F64), x(2, 2, 3, 3, dtype=F64), x(2, dtype=F64), padding=1)
conv("paddings", 2, x(1, 1, 3, 4, dtype=F64), x(2, 1, 3, 2, dtype=F64), padding=[2, 1])
conv("stride", 2, x(2, 2, 7, 6, dtype=F64), x(3, 2, 3, 2, dtype=F64), x(3, dtype=F64), stride=2)
conv("stride-rest", 2, x(1, 2, 8, 8), x(2, 2, 3, 3), x(2), stride=[3, 2], padding=1)
conv("dilation", 2, x(1, 2, 7, 7, dtype=F64), x(2, 2, 3, 2, dtype=F64), dilation=[2, 3])
conv("all", 2, x(1, 4, 9, 8, dtype=F64), x(4, 2, 3, 3, dtype=F64), x(4, dtype=F64), stride=2, padding=[2, 1], dilation=2, groups=2)
conv("depthwise", 2, x(2, 3, 4, 4, dtype=F64), x(6, 1, 3, 3, dtype=F64), x(6, dtype=F64), groups=3, padding=1)
conv("one-by-one", 2, x(2, 3, 3, 3, dtype=F64), x(4, 3, 1, 1, dtype=F64), x(4, dtype=F64))
conv("one-by-one-stride", 2, x(2, 3, 5, 5, dtype=F64), x(4, 3, 1, 1, dtype=F64), stride=2)
conv("channels-last", 2, like_images(2, 3, 5, 4), x(4, 3, 3, 3), x(4), padding=1)
conv("channels-last-64", 2, like_images(2, 4, 5, 4, dtype=F64), x(4, 2, 3, 3, dtype=F64), groups=2, stride=2, padding=1)
conv("weight-last", 2, like_images(1, 3, 4, 4, dtype=F64), like_images(2, 3, 3, 3, dtype=F64), padding=1)
conv("unbatched", 2, x(2, 4, 4, dtype=F64), x(2, 2, 3, 3, dtype=F64), x(2, dtype=F64))
conv("no-images", 2, x(0, 2, 4, 4), x(3, 2, 3, 3), x(3))
conv("narrowed", 2, x(2, 2, 4, 8, dtype=F64, narrow=(3, 2, 4)), x(2, 2, 3, 3, dtype=F64))
conv("expanded", 2, x(1, 1, 4, 4, dtype=F64, expand=(2, 3, 4, 4)), x(2, 3, 3, 3, dtype=F64))
conv("far-padding", 2, x(1, 1, 2, 2, dtype=F64), x(1, 1, 2, 2, dtype=F64), padding=3)
conv("same", 2, x(1, 2, 5, 4, dtype=F64), x(2, 2, 3, 2, dtype=F64), x(2, dtype=F64), auto_padding="same")
conv("same-dilated", 2, x(1, 1, 6, 6, dtype=F64), x(2, 1, 2, 3, dtype=F64), auto_padding="same", dilation=[3, 2])
conv("valid", 2, x(1, 1, 4, 4, dtype=F64), x(2, 1, 2, 3, dtype=F64), auto_padding="valid")
conv("larger", 2, x(2, 8, 9, 9), x(8, 8, 3, 3), x(8), padding=1)
conv("stride", 1, x(2, 4, 9, dtype=F64), x(4, 2, 3, dtype=F64), x(4, dtype=F64), stride=2, padding=2, groups=2)
conv("same", 1, x(1, 2, 5, dtype=F64), x(2, 2, 4, dtype=F64), auto_padding="same")
conv("unbatched", 1, x(2, 5, dtype=F64), x(2, 2, 3, dtype=F64))
conv("dilation", 1, x(1, 2, 9, dtype=F64), x(2, 2, 3, dtype=F64), dilation=3)
conv("all", 3, x(1, 2, 5, 4, 5, dtype=F64), x(2, 1, 2, 3, 2, dtype=F64), x(2, dtype=F64), stride=[2, 1, 2], padding=[1, 1, 0], dilation=[2, 1, 1], groups=2)
conv("unbatched", 3, x(1, 3, 3, 3, dtype=F64), x(2, 1, 2, 2, 2, dtype=F64))


def back(name, dims, a, w, b=None, **options):
    call = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[dims - 1]
    how = dict(options)
    for key in ("stride", "padding", "dilation", "output_padding"):
        if isinstance(how.get(key), int):
            options[key] = [how[key]]
    Case("conv_transpose%dd/%s" % (dims, name), "conv_transpose%dd" % dims, lambda a, w, b=None: call(a, w, b, **how),
         [a, w, b], **options)


for d in (F32, F64, F16, BF16):
    back(NAMES[d], 2, x(2, 3, 2, 3, dtype=d), x(3, 2, 2, 2, dtype=d), x(2, dtype=d))
    back(NAMES[d], 1, x(2, 3, 3, dtype=d), x(3, 2, 3, dtype=d), x(2, dtype=d))
    back(NAMES[d], 3, x(1, 2, 2, 2, 2, dtype=d), x(2, 2, 2, 1, 2, dtype=d), x(2, dtype=d))
back("no-bias", 2, x(1, 2, 3, 3, dtype=F64), x(2, 2, 3, 3, dtype=F64))
back("stride", 2, x(1, 2, 3, 2, dtype=F64), x(2, 3, 3, 2, dtype=F64), x(3, dtype=F64), stride=2)
back("padding", 2, x(1, 2, 3, 4, dtype=F64), x(2, 3, 3, 2, dtype=F64), x(3, dtype=F64), padding=1)
back("output-padding", 2, x(1, 2, 3, 3, dtype=F64), x(2, 3, 3, 3, dtype=F64), stride=[3, 2], padding=1, output_padding=[2, 1])
back("all", 2, x(2, 4, 3, 2, dtype=F64), x(4, 2, 2, 3, dtype=F64), x(4, dtype=F64), stride=2, padding=[1, 2], output_padding=1, groups=2, dilation=2)
back("unbatched", 2, x(2, 3, 3, dtype=F64), x(2, 1, 2, 2, dtype=F64), x(1, dtype=F64))
back("channels-last", 2, like_images(2, 3, 3, 2), x(3, 4, 3, 3), x(4), stride=2, padding=1)
back("stride", 1, x(2, 2, 4, dtype=F64), x(2, 2, 3, dtype=F64), x(2, dtype=F64), stride=3, padding=1, output_padding=2)
back("unbatched", 1, x(2, 4, dtype=F64), x(2, 2, 3, dtype=F64))
back("stride", 3, x(1, 2, 2, 2, 2, dtype=F64), x(2, 2, 2, 2, 2, dtype=F64), stride=2, output_padding=[1, 0, 1])
back("no-images", 2, x(0, 2, 3, 3), x(2, 2, 2, 2))


# ---- pooling ----
def rows(options):
    return {k: [v] if isinstance(v, int) and not isinstance(v, bool) and k in ("stride", "padding", "dilation", "kernel") else v for k, v in options.items()}


def distinct(*shape, dtype=F64, **more):
    count = 1
    for s in shape:
        count *= s
    return x(dtype=dtype, data=(torch.randperm(count).to(F64) / 4 - count / 8).reshape(shape).tolist(), **more)


def max_pool(name, dims, a, kernel, **options):
    call = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[dims - 1]
    given = rows(dict(options, kernel=kernel))
    Case("max_pool%dd/%s" % (dims, name), "max_pool%dd" % dims, lambda a: call(a, kernel, **options), [a], **given)
    Case("max_pool%dd_with_indices/%s" % (dims, name), "max_pool%dd_with_indices" % dims,
         lambda a: call(a, kernel, return_indices=True, **options), [a], **given)


def avg_pool(name, dims, a, kernel, **options):
    call = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[dims - 1]
    Case("avg_pool%dd/%s" % (dims, name), "avg_pool%dd" % dims, lambda a: call(a, kernel, **options), [a], **rows(dict(options, kernel=kernel)))


for d in FLOATS:
    max_pool(NAMES[d], 2, distinct(2, 2, 4, 5, dtype=d), 2)
    avg_pool(NAMES[d], 2, x(2, 2, 4, 5, dtype=d), 2)
max_pool("f64", 1, distinct(2, 2, 7), 3)
max_pool("f64", 3, distinct(1, 2, 3, 4, 4), 2)
max_pool("unbatched", 1, distinct(2, 7), 2)
max_pool("unbatched", 2, distinct(2, 4, 4), [2, 3])
max_pool("unbatched", 3, distinct(1, 3, 3, 3), 2)
max_pool("stride", 2, distinct(1, 2, 6, 7), 3, stride=2)
max_pool("overlap", 2, distinct(1, 2, 5, 5), [3, 2], stride=1)
max_pool("padding", 2, distinct(1, 2, 5, 5), 3, stride=2, padding=1)
max_pool("paddings", 2, distinct(2, 1, 4, 6), [2, 4], stride=[2, 1], padding=[1, 2])
max_pool("dilation", 2, distinct(1, 1, 8, 7), 2, dilation=[3, 2], stride=1)
max_pool("ceil", 2, distinct(1, 2, 6, 5), 2, stride=2, ceil_mode=True)
max_pool("ceil-padding", 2, distinct(1, 1, 5, 6), 3, stride=3, padding=1, ceil_mode=True)
max_pool("ceil-dilation", 2, distinct(1, 1, 8, 8), 3, stride=2, padding=1, dilation=2, ceil_mode=True)
max_pool("ceil-stride", 1, distinct(1, 2, 7), 2, stride=4, ceil_mode=True)
max_pool("nan", 2, x(data=[[[[1.0, float("nan"), 2.0, 3.0], [4.0, 0.0, float("inf"), -1.0]]]]), 2)
max_pool("minus-infinity", 2, n(data=[[[[float("-inf")] * 4] * 4]]), 3, stride=2, padding=1)
max_pool("ties", 2, x(data=[[[[1.0, 1.0, 2.0], [1.0, 1.0, 2.0]]]], dtype=F64), 2, stride=1)
max_pool("channels-last", 2, like_images(2, 3, 4, 4), 2)
max_pool("no-images", 2, x(0, 2, 4, 4), 2)
max_pool("padding", 3, distinct(1, 1, 4, 4, 4), 3, stride=2, padding=1)
avg_pool("f64", 1, x(2, 2, 7, dtype=F64), 3)
avg_pool("f64", 3, x(1, 2, 3, 4, 4, dtype=F64), 2)
avg_pool("unbatched", 1, x(2, 7, dtype=F64), 2)
avg_pool("unbatched", 2, x(2, 4, 4, dtype=F64), [2, 3])
avg_pool("unbatched", 3, x(1, 3, 3, 3, dtype=F64), 2)
for include in (True, False):
    more = "" if include else "-without"
    avg_pool("padding" + more, 2, x(1, 2, 5, 5, dtype=F64), 3, stride=2, padding=1, count_include_pad=include)
    avg_pool("ceil" + more, 2, x(1, 2, 6, 5, dtype=F64), 2, stride=2, ceil_mode=True, count_include_pad=include)
    avg_pool("ceil-padding" + more, 2, x(1, 1, 5, 6, dtype=F64), [3, 2], stride=3, padding=1, ceil_mode=True, count_include_pad=include)
    avg_pool("padding" + more, 1, x(1, 2, 6, dtype=F64), 4, stride=3, padding=2, ceil_mode=True, count_include_pad=include)
    avg_pool("padding" + more, 3, x(1, 1, 4, 3, 4, dtype=F64), [3, 2, 2], stride=2, padding=[1, 1, 0], count_include_pad=include)
avg_pool("overlap", 2, x(1, 2, 5, 5, dtype=F64), [3, 2], stride=1)
avg_pool("gaps", 2, x(1, 1, 7, 7, dtype=F64), 2, stride=3)
avg_pool("divisor", 2, x(1, 1, 4, 4, dtype=F64), 2, divisor_override=3, padding=1)
avg_pool("channels-last", 2, like_images(2, 3, 4, 4), 2)
avg_pool("no-images", 2, x(0, 2, 4, 4), 2)
for dims, size, outputs in ((1, (7,), ([3], [7], [1], [10])), (2, (5, 7), ([2, 3], [5, 7], [1, 1], [8, 3])), (2, (6, 4), ([3, 2], [2, 4])),
                            (3, (3, 4, 5), ([2, 3, 2], [1, 1, 1], [3, 2, 5]))):
    for output in outputs:
        name = "x".join(map(str, size)) + "-" + "x".join(map(str, output))
        for kind, make in (("avg", x), ("max", distinct)):
            call = getattr(F, "adaptive_%s_pool%dd" % (kind, dims))
            Case("adaptive_%s_pool%dd/%s" % (kind, dims, name), "adaptive_%s_pool%dd" % (kind, dims), lambda a: call(a, output),
                 [make(2, 2, *size, dtype=F64)], output_size=output)
        call = getattr(F, "adaptive_max_pool%dd" % dims)
        Case("adaptive_max_pool%dd_with_indices/%s" % (dims, name), "adaptive_max_pool%dd_with_indices" % dims,
             lambda a: call(a, output, return_indices=True), [distinct(2, 2, *size)], output_size=output)
for d in FLOATS:
    Case("adaptive_avg_pool2d/" + NAMES[d], "adaptive_avg_pool2d", lambda a: F.adaptive_avg_pool2d(a, (2, 3)), [x(2, 2, 5, 4, dtype=d)], output_size=[2, 3])
    Case("adaptive_max_pool2d/" + NAMES[d], "adaptive_max_pool2d", lambda a: F.adaptive_max_pool2d(a, (2, 3)), [distinct(2, 2, 5, 4, dtype=d)], output_size=[2, 3])
Case("adaptive_avg_pool2d/unbatched", "adaptive_avg_pool2d", lambda a: F.adaptive_avg_pool2d(a, (3, None)), [x(2, 4, 5, dtype=F64)], output_size=[3, -1])
Case("adaptive_max_pool2d/unbatched", "adaptive_max_pool2d", lambda a: F.adaptive_max_pool2d(a, (3, None)), [distinct(2, 4, 5)], output_size=[3, -1])
for dims, size, kernel in ((1, (7,), 2), (2, (5, 6), 2), (2, (5, 6), [2, 3]), (3, (3, 4, 4), 2)):
    for p in (2.0, 1.0, 3.0):
        for options in ({}, {"stride": 1}, {"ceil_mode": True}):
            call = getattr(F, "lp_pool%dd" % dims)
            Case("lp_pool%dd/%g-%s" % (dims, p, "-".join(options)), "lp_pool%dd" % dims, lambda a: call(a, p, kernel, **options),
                 [x(1, 2, *size, dtype=F64, positive=True)], p=p, **rows(dict(options, kernel=kernel)))
for dims, size in ((1, (8,)), (2, (4, 6)), (3, (4, 4, 4))):
    pool, unpool = getattr(F, "max_pool%dd" % dims), getattr(F, "max_unpool%dd" % dims)
    for name, shape, output in (("plain", (2, 2), None), ("unbatched", (2,), None), ("sized", (1, 2), [s + 1 for s in size])):
        _, places = pool(torch.randn(*shape, *size), 2, return_indices=True)
        more = {} if output is None else {"output_size": output}
        Case("max_unpool%dd/%s" % (dims, name), "max_unpool%dd" % dims, lambda a, i: unpool(a, i, 2, **more),
             [x(*places.shape, dtype=F64), n(dtype=I64, data=places.tolist())], kernel=[2], **more)


# ---- normalization ----
for d in FLOATS:
    c = (x(3, dtype=d), x(3, dtype=d))
    r = (n(3, dtype=d), n(3, dtype=d, positive=True))
    Case("batch_norm/training-" + NAMES[d], "batch_norm", lambda a, m, v, w, b: F.batch_norm(a, m, v, w, b, True), [x(4, 3, 2, 2, dtype=d), None, None, *c], training=True)
    Case("batch_norm/running-" + NAMES[d], "batch_norm", lambda a, m, v, w, b: F.batch_norm(a, m, v, w, b, False), [x(4, 3, 2, 2, dtype=d), *r, *c])
    Case("layer_norm/" + NAMES[d], "layer_norm", lambda a, w, b: F.layer_norm(a, (5,), w, b), [x(2, 3, 5, dtype=d), x(5, dtype=d), x(5, dtype=d)], normalized_shape=[5])
    Case("group_norm/" + NAMES[d], "group_norm", lambda a, w, b: F.group_norm(a, 2, w, b), [x(2, 4, 3, dtype=d), x(4, dtype=d), x(4, dtype=d)], num_groups=2)
    Case("rms_norm/" + NAMES[d], "rms_norm", lambda a, w: F.rms_norm(a, (5,), w), [x(2, 3, 5, dtype=d), x(5, dtype=d)], normalized_shape=[5])
    Case("instance_norm/" + NAMES[d], "instance_norm", lambda a, m, v, w, b: F.instance_norm(a, m, v, w, b), [x(2, 3, 2, 3, dtype=d), None, None, *c])
for name, a in (("2d", x(5, 3, dtype=F64)), ("3d", x(2, 3, 4, dtype=F64)), ("5d", x(2, 3, 2, 1, 2, dtype=F64)), ("last", like_images(2, 3, 3, 2, dtype=F64)),
                ("narrowed", x(4, 5, 2, dtype=F64, narrow=(1, 1, 3))), ("far", x(data=[[100.0, 1.0, -4.0], [101.0, 2.0, -4.0], [102.0, 4.0, -4.5]], dtype=F64))):
    for w, b in ((x(3, dtype=F64), x(3, dtype=F64)), (None, None), (x(3, dtype=F64), None), (None, x(3, dtype=F64))):
        for training in (True, False):
            Case("batch_norm/%s-%s" % (name, training), "batch_norm", lambda a, m, v, w, b: F.batch_norm(a, m, v, w, b, True, 0.0) if training else
                 F.batch_norm(a, m, v, w, b, False, eps=0.01), [a, n(3, dtype=F64), n(3, dtype=F64, positive=True), w, b],
                 training=training, momentum=0.0 if training else 0.1, eps=1e-5 if training else 0.01)
for shape, normalized in (((4, 3), [3]), ((2, 3, 4), [3, 4]), ((2, 1, 3), [2, 1, 3]), ((0, 3), [3]), ((5,), [5])):
    w = dict(dtype=F64)
    Case("layer_norm/plain", "layer_norm", lambda a, w, b: F.layer_norm(a, normalized, w, b, 0.1), [x(*shape, **w), None, None], normalized_shape=normalized, eps=0.1)
    Case("layer_norm/affine", "layer_norm", lambda a, w, b: F.layer_norm(a, normalized, w, b), [x(*shape, **w), x(*normalized, **w), x(*normalized, **w)], normalized_shape=normalized)
    Case("layer_norm/weight", "layer_norm", lambda a, w, b: F.layer_norm(a, normalized, w, b), [x(*shape, **w), x(*normalized, **w), None], normalized_shape=normalized)
    Case("rms_norm/plain", "rms_norm", lambda a, w: F.rms_norm(a, normalized, w, 0.1), [x(*shape, **w), None], normalized_shape=normalized, eps=0.1)
    Case("rms_norm/weight", "rms_norm", lambda a, w: F.rms_norm(a, normalized, w), [x(*shape, **w), x(*normalized, **w)], normalized_shape=normalized)
Case("layer_norm/transposed", "layer_norm", lambda a, w, b: F.layer_norm(a, (4,), w, b), [x(4, 3, dtype=F64, order=(1, 0)), x(4, dtype=F64), x(4, dtype=F64)], normalized_shape=[4])
Case("layer_norm/larger", "layer_norm", lambda a, w, b: F.layer_norm(a, (67,), w, b), [x(5, 67), x(67), x(67)], normalized_shape=[67])
for groups in (1, 2, 4):
    for shape in ((2, 4), (2, 4, 3), (1, 4, 2, 2)):
        Case("group_norm/plain", "group_norm", lambda a, w, b: F.group_norm(a, groups, w, b),
             [x(*shape, dtype=F64), None, None], num_groups=groups)
        Case("group_norm/affine", "group_norm", lambda a, w, b: F.group_norm(a, groups, w, b, 0.01), [x(*shape, dtype=F64), x(4, dtype=F64), x(4, dtype=F64)], num_groups=groups, eps=0.01)
for shape in ((2, 3, 4), (2, 3, 2, 2), (1, 3, 2, 2, 2)):
    Case("instance_norm/plain", "instance_norm", lambda a, m, v, w, b: F.instance_norm(a), [x(*shape, dtype=F64), None, None, None, None])
    Case("instance_norm/affine", "instance_norm", lambda a, m, v, w, b: F.instance_norm(a, m, v, w, b, momentum=0.0), [x(*shape, dtype=F64), n(3, dtype=F64), n(3, dtype=F64, positive=True), x(3, dtype=F64), x(3, dtype=F64)], momentum=0.0)
    Case("instance_norm/running", "instance_norm", lambda a, m, v, w, b: F.instance_norm(a, m, v, w, b, use_input_stats=False), [x(*shape, dtype=F64), n(3, dtype=F64), n(3, dtype=F64, positive=True), x(3, dtype=F64), x(3, dtype=F64)], use_input_stats=False)
for size, shape in ((3, (2, 5, 3)), (2, (1, 4, 2, 2)), (5, (2, 3, 2, 2, 1)), (1, (1, 3, 2))):
    Case("local_response_norm/%d" % size, "local_response_norm", lambda a: F.local_response_norm(a, size, 0.5, 0.7, 1.5), [x(*shape, dtype=F64)], neighbours=size, alpha=0.5, beta=0.7, k=1.5)
    Case("local_response_norm/usual-%d" % size, "local_response_norm", lambda a: F.local_response_norm(a, size), [x(*shape)], neighbours=size)
for p in (2.0, 1.0, 3.0, float("inf")):
    for dim, shape in ((1, (3, 4)), (0, (3, 4)), (-1, (2, 3, 2)), (1, (0, 4))):
        Case("normalize/%g" % p, "normalize", lambda a: F.normalize(a, p, dim), [distinct(*shape) if p > 3 and 0 not in shape else x(*shape, dtype=F64)], p=p, dim=dim)
    Case("pairwise_distance/%g" % p, "pairwise_distance", lambda a, b: F.pairwise_distance(a, b, p), [x(data=torch.randn(3, 4, dtype=F64).tolist(), dtype=F64), x(data=torch.randn(3, 4, dtype=F64).tolist(), dtype=F64)], p=p)
    Case("pairwise_distance/kept-%g" % p, "pairwise_distance", lambda a, b: F.pairwise_distance(a, b, p, 0.25, True), [x(data=torch.randn(3, 4, dtype=F64).tolist(), dtype=F64), x(data=torch.randn(4, dtype=F64).tolist(), dtype=F64)], p=p, eps=0.25, keepdim=True)
    Case("cdist/%g" % p, "cdist", lambda a, b: torch.cdist(a, b, p, compute_mode="donot_use_mm_for_euclid_dist"), [x(data=torch.randn(3, 4, dtype=F64).tolist(), dtype=F64), x(data=torch.randn(2, 4, dtype=F64).tolist(), dtype=F64)], p=p)
    Case("cdist/batch-%g" % p, "cdist", lambda a, b: torch.cdist(a, b, p, compute_mode="donot_use_mm_for_euclid_dist"), [x(data=torch.randn(2, 3, 2, dtype=F64).tolist(), dtype=F64), x(data=torch.randn(1, 4, 2, dtype=F64).tolist(), dtype=F64)], p=p)
Case("normalize/zero", "normalize", lambda a: F.normalize(a), [x(data=[[0.0, 0.0], [3.0, 4.0]])])
for dim, a, b in ((1, x(3, 4, dtype=F64), x(3, 4, dtype=F64)), (0, x(3, 4), x(3, 4)), (-1, x(2, 1, 3, dtype=F64), x(2, 3, dtype=F64))):
    Case("cosine_similarity/%d" % dim, "cosine_similarity", lambda a, b: F.cosine_similarity(a, b, dim), [a, b], dim=dim)


# ---- other sizes ----
for d in FLOATS:
    Case("interpolate/nearest-" + NAMES[d], "interpolate", lambda a: F.interpolate(a, (5, 3)), [x(2, 2, 3, 4, dtype=d)], output_size=[5, 3])
    Case("interpolate/bilinear-" + NAMES[d], "interpolate", lambda a: F.interpolate(a, (6, 3), mode="bilinear"), [x(2, 2, 3, 4, dtype=d)], output_size=[6, 3], mode="bilinear")
for mode, shape, sizes in (("nearest", (1, 2, 5), ([3], [10], [7])), ("nearest-exact", (1, 2, 5), ([3], [10], [7])), ("nearest", (1, 2, 3, 4, 2), ([2, 5, 3],)),
                           ("nearest-exact", (1, 2, 3, 4), ([5, 2],)), ("linear", (2, 2, 5), ([3], [9], [1], [5])), ("bilinear", (1, 2, 4, 3), ([7, 5], [2, 2], [1, 8])),
                           ("bicubic", (1, 2, 4, 5), ([7, 5], [2, 3], [8, 10])), ("trilinear", (1, 2, 3, 2, 4), ([5, 3, 2],))):
    for size in sizes:
        for corners in ((False,) if "nearest" in mode else (False, True)):
            Case("interpolate/%s-%s-%s" % (mode, size, corners), "interpolate", lambda a: F.interpolate(a, size, mode=mode, align_corners=corners if "nearest" not in mode else None),
                 [x(*shape, dtype=F64)], output_size=size, mode=mode, align_corners=corners)
for mode, factor in (("nearest", 2.0), ("nearest", 1.7), ("bilinear", 1.7), ("bilinear", 0.6), ("bicubic", 1.3)):
    y = F.interpolate(torch.zeros(1, 1, 5, 4), scale_factor=factor, mode=mode)
    Case("interpolate/scale-%s-%g" % (mode, factor), "interpolate", lambda a: F.interpolate(a, scale_factor=factor, mode=mode), [x(1, 2, 5, 4, dtype=F64)],
         output_size=list(y.shape[2:]), mode=mode, scale_factor=[factor])
for r, shape in ((2, (1, 8, 2, 3)), (3, (9, 2, 1)), (1, (2, 3, 2, 2))):
    Case("pixel_shuffle/%d" % r, "pixel_shuffle", lambda a: F.pixel_shuffle(a, r), [x(*shape, dtype=F64)], upscale_factor=r)
for r, shape in ((2, (1, 2, 4, 6)), (3, (1, 3, 6))):
    Case("pixel_unshuffle/%d" % r, "pixel_unshuffle", lambda a: F.pixel_unshuffle(a, r), [x(*shape, dtype=F64)], downscale_factor=r)
for g, shape in ((2, (2, 4, 3)), (3, (1, 6, 2, 2))):
    Case("channel_shuffle/%d" % g, "channel_shuffle", lambda a: torch.channel_shuffle(a, g), [n(*shape, dtype=F64)], groups=g)

# ---- attention and cells ----
attend = F.scaled_dot_product_attention
for d in FLOATS:
    Case("scaled_dot_product_attention/" + NAMES[d], "scaled_dot_product_attention", lambda q, k, v, m: attend(q, k, v), [x(2, 3, 4, dtype=d), x(2, 5, 4, dtype=d), x(2, 5, 3, dtype=d), None])
for name, q, k, v in (("flat", (3, 4), (5, 4), (5, 2)), ("heads", (2, 2, 3, 4), (2, 2, 3, 4), (2, 2, 3, 4)), ("no-rows", (2, 0, 4), (2, 3, 4), (2, 3, 4))):
    ins = [x(*q, dtype=F64), x(*k, dtype=F64), x(*v, dtype=F64)]
    Case("scaled_dot_product_attention/" + name, "scaled_dot_product_attention", lambda q, k, v, m: attend(q, k, v), ins + [None])
    Case("scaled_dot_product_attention/causal-" + name, "scaled_dot_product_attention", lambda q, k, v, m: attend(q, k, v, is_causal=True), ins + [None], is_causal=True)
    Case("scaled_dot_product_attention/scale-" + name, "scaled_dot_product_attention", lambda q, k, v, m: attend(q, k, v, scale=0.3), ins + [None], scale=0.3)
    if name != "no-rows":
        Case("scaled_dot_product_attention/bools-" + name, "scaled_dot_product_attention", lambda q, k, v, m: attend(q, k, v, m), ins + [n(q[-2], k[-2], dtype=BOOL)])
        Case("scaled_dot_product_attention/numbers-" + name, "scaled_dot_product_attention", lambda q, k, v, m: attend(q, k, v, m), ins + [x(q[-2], k[-2], dtype=F64)])
Case("scaled_dot_product_attention/nothing", "scaled_dot_product_attention", lambda q, k, v, m: attend(q, k, v, m), [x(2, 3, dtype=F64), x(2, 3, dtype=F64), x(2, 3, dtype=F64),
     n(data=[[False, False], [True, False]], dtype=BOOL)])
Case("scaled_dot_product_attention/grouped", "scaled_dot_product_attention", lambda q, k, v, m: attend(q, k, v, enable_gqa=True), [x(1, 4, 3, 2, dtype=F64), x(1, 2, 3, 2, dtype=F64), x(1, 2, 3, 2, dtype=F64), None], enable_gqa=True)
for op, gates in (("rnn_tanh_cell", 1), ("rnn_relu_cell", 1), ("gru_cell", 3), ("lstm_cell", 4)):
    call = getattr(torch, op)
    for d in FLOATS:
        w = [x(gates * 3, 4, dtype=d), x(gates * 3, 3, dtype=d), x(gates * 3, dtype=d), x(gates * 3, dtype=d)]
        if op == "lstm_cell":
            Case("lstm_cell/" + NAMES[d], op, lambda a, h, c, *w: call(a, (h, c), *w), [x(2, 4, dtype=d), x(2, 3, dtype=d), x(2, 3, dtype=d)] + w)
        else:
            Case("%s/%s" % (op, NAMES[d]), op, call, [x(2, 4, dtype=d), x(2, 3, dtype=d)] + w)
    w = [x(gates * 3, 4, dtype=F64), x(gates * 3, 3, dtype=F64), None, None]
    if op != "lstm_cell":
        Case(op + "/no-bias", op, lambda a, h, wi, wh, bi, bh: call(a, h, wi, wh), [x(2, 4, dtype=F64), x(2, 3, dtype=F64)] + w)
    else:
        Case(op + "/no-bias", op, lambda a, h, c, wi, wh, bi, bh: call(a, (h, c), wi, wh), [x(2, 4, dtype=F64), x(2, 3, dtype=F64), x(2, 3, dtype=F64)] + w)

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
                    hb = getattr(torch, kind if kind == "gru_cell" else "rnn_relu_cell" if relu else "rnn_tanh_cell")(a[i, b][None], hb[None], wi, wh, bi, bh)[0]
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
    ins += [x(gates * hidden, inputs, dtype=d), x(gates * hidden, out, dtype=d)] + [x(gates * hidden, dtype=d) if bias else None for _ in range(2)]
    if kind == "lstm":
        ins.append(x(project, hidden, dtype=d) if project else None)
    ins.append(lengths_of(*where) if with_lengths else None)
    options = {"reverse": reverse}
    if relu:
        options["nonlinearity"] = "relu"
    Case("%s/%s-%d%d%d%d%d" % (name, NAMES[d], with_lengths, reverse, bias, project, relu), name, call, ins, **options)


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
def heads(name, d=F64, q=(3, 2, 4), k=None, v=None, heads=2, bias=True, kv=False, zero=False, keys=None, mask=None, weights=False, average=True):
    k, v = k or q, v or k or q
    e = q[2]
    apart = k[2] != e or v[2] != e

    def x(*shape, dtype):   # small, so that softmax is not steep
        return globals()["x"](data=((torch.randn(shape, dtype=F64) * 8).round() / 16).tolist(), dtype=dtype)

    def call(q, k, v, wi, wq, wk, wv, bi, bk, bv, wo, bo, km, m):
        y, w = F.multi_head_attention_forward(q, k, v, e, heads, wi, bi, bk[None, None] if bk is not None else None, bv[None, None] if bv is not None else None, zero, 0.0,
                                              wo, bo, True, km, weights, m, apart, wq, wk, wv, average_attn_weights=average)
        return (y, w) if weights else y
    ins = [x(*q, dtype=d), x(*k, dtype=d), x(*v, dtype=d)]
    ins += [None, x(e, e, dtype=d), x(e, k[2], dtype=d), x(e, v[2], dtype=d)] if apart else [x(3 * e, e, dtype=d), None, None, None]
    ins += [x(3 * e, dtype=d) if bias else None, x(e, dtype=d) if kv else None, x(e, dtype=d) if kv else None, x(e, e, dtype=d), x(e, dtype=d) if bias else None, keys, mask]
    op = "multi_head_attention" + ("_with_weights" if weights else "")
    options = {"num_heads": heads}
    if zero:
        options["add_zero_attn"] = True
    if weights and not average:
        options["average_attn_weights"] = False
    Case("%s/%s" % (op, name), op, call, ins, **options)


for d in (F32, F64):
    heads(NAMES[d], d)
    heads(NAMES[d], d, weights=True)
for weights in (False, True):
    heads("apart", k=(5, 2, 3), v=(5, 2, 2), weights=weights)
    heads("cross", k=(5, 2, 4), heads=4, bias=False, weights=weights)
    heads("more", k=(4, 2, 4), kv=True, zero=True, keys=n(data=[[False, True, False, False], [True, False, False, False]], dtype=BOOL), weights=weights)
    heads("kv", kv=True, mask=x(3, 3, dtype=F64), weights=weights)
    heads("zero", zero=True, keys=n(2, 3, dtype=F64), weights=weights)
    heads("masks", mask=n(data=[[False, True, True], [False, False, True], [False, False, False]], dtype=BOOL), keys=n(data=[[False, False, True], [False, False, False]], dtype=BOOL), weights=weights)
    heads("each", mask=x(4, 3, 3, dtype=F64), weights=weights)
heads("heads", weights=True, average=False)

# ---- sampling ----
for d in FLOATS:
    Case("affine_grid/" + NAMES[d], "affine_grid", lambda t: F.affine_grid(t, (2, 1, 3, 4), align_corners=False), [x(2, 2, 3, dtype=d)], output_size=[2, 1, 3, 4])
    Case("grid_sample/" + NAMES[d], "grid_sample", lambda a, g: F.grid_sample(a, g, align_corners=False), [x(2, 2, 3, 4, dtype=d), x(2, 2, 3, 2, dtype=d)])
for corners in (False, True):
    for size in ([1, 2, 2, 3], [1, 1, 1, 4], [1, 1, 2, 3, 2], [2, 1, 1, 1, 3]):
        dims = len(size) - 2
        Case("affine_grid/%s-%s" % (row(size), corners), "affine_grid", lambda t: F.affine_grid(t, size, align_corners=corners), [x(size[0], dims, dims + 1, dtype=F64)], output_size=size, align_corners=corners)
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for shape, points in (((2, 2, 3, 4), (2, 2, 3, 2)), ((1, 1, 1, 5), (1, 3, 2, 2)), ((1, 2, 2, 3, 4), (1, 2, 2, 3, 3))):
                if len(shape) == 5 and mode == "bicubic":
                    continue
                Case("grid_sample/%s-%s-%s-%s" % (mode, padding, corners, row(shape)), "grid_sample", lambda a, g: F.grid_sample(a, g, mode, padding, corners),
                     [x(*shape, dtype=F64), (n if mode == "nearest" else x)(data=(torch.randn(points, dtype=F64) * 1.5).tolist(), dtype=F64)], mode=mode, padding_mode=padding, align_corners=corners)
for d in (F32, F64):
    for shape, kernel, size in (((2, 2, 7, 6), [2, 3], [3, 2]), ((1, 1, 5, 5), [2, 2], [4, 4]), ((3, 6, 7), [3, 2], [1, 5])):
        u = torch.rand(shape[:-2] + (2,), dtype=d)
        batched = u if len(shape) == 4 else u[None]
        Case("fractional_max_pool2d/%s-%s" % (NAMES[d], row(shape)), "fractional_max_pool2d", lambda a, s: F.fractional_max_pool2d(a, kernel, size, return_indices=True, _random_samples=batched),
             [x(*shape, dtype=d), n(data=u.tolist(), dtype=d)], kernel_size=kernel, output_size=size)
    for shape, kernel, size in (((2, 2, 5, 6, 4), [2, 3, 2], [3, 2, 2]), ((2, 5, 6, 4), [2, 2, 1], [3, 4, 3])):
        u = torch.rand(shape[:-3] + (3,), dtype=d)
        batched = u if len(shape) == 5 else u[None]
        Case("fractional_max_pool3d/%s-%s" % (NAMES[d], row(shape)), "fractional_max_pool3d", lambda a, s: F.fractional_max_pool3d(a, kernel, size, return_indices=True, _random_samples=batched),
             [x(*shape, dtype=d), n(data=u.tolist(), dtype=d)], kernel_size=kernel, output_size=size)

# ---- bags ----
def bag(name, index, offsets, d=F64, weights=None, **options):
    Case("embedding_bag/" + name, "embedding_bag",
         lambda w, i, o, s: F.embedding_bag(i, w, o, mode=options.get("mode", "mean"), per_sample_weights=s, include_last_offset=options.get("include_last_offset", False), padding_idx=options.get("padding_idx")),
         [x(5, 3, dtype=d), n(data=index, dtype=I64), None if offsets is None else n(data=offsets, dtype=I64), weights], **options)


for mode in ("sum", "mean", "max"):
    for d in FLOATS:
        bag("%s-%s" % (mode, NAMES[d]), [[1, 0, 4], [2, 2, 1]], None, d, mode=mode)
    bag(mode + "-offsets", [1, 0, 4, 2, 2, 1, 3], [0, 2, 2, 6], mode=mode)
    bag(mode + "-last", [1, 0, 4, 2, 2, 1, 3], [0, 3, 7], mode=mode, include_last_offset=True)
    bag(mode + "-padding", [1, 0, 4, 2, 2, 1, 0, 2, 2], [0, 3, 5, 7], mode=mode, padding_idx=2)
    bag(mode + "-padding-even", [[1, 2, 4], [2, 2, 2], [0, 1, 2]], None, mode=mode, padding_idx=-3)
bag("weighted", [[1, 0, 4], [2, 2, 1]], None, weights=x(2, 3, dtype=F64), mode="sum")
bag("weighted-offsets", [1, 0, 4, 2, 2], [0, 2, 2], weights=x(5, dtype=F64), mode="sum", padding_idx=0)

# ---- found by PyTorch's own samples ----
for d in FLOATS:
    back("beyond-a-stride-" + NAMES[d], 2, x(2, 4, 2, 3, dtype=d), x(4, 2, 2, 3, dtype=d), x(4, dtype=d), stride=[3, 2], padding=[1, 2],
         output_padding=[2, 3], groups=2, dilation=[4, 4])
back("beyond-two-strides", 1, x(2, 3, 3, dtype=F64), x(3, 2, 2, dtype=F64), stride=1, padding=1, output_padding=2, dilation=3)
for dim in (-1, -2, 0):
    Case("cosine_similarity/broadcast%d" % dim, "cosine_similarity", lambda a, b: F.cosine_similarity(a, b, dim),
         [x(1, 2, 3, dtype=F64), x(2, 1, 3, dtype=F64)], dim=dim)
Case("cosine_similarity/ranks", "cosine_similarity", lambda a, b: F.cosine_similarity(a, b, 1), [x(3, dtype=F64), x(2, 4, 1, dtype=F64)], dim=1)
# a factor for each dimension, without sizes; and sizes that tell how far places are apart
for mode, shape, factors, corners in (("nearest", (1, 2, 5, 4), [1.7, 0.6], None), ("nearest-exact", (1, 2, 5, 4), [0.7, 2.3], None), ("linear", (2, 1, 5), [1.3], False),
                                      ("bilinear", (1, 2, 4, 3), [1.6, 2.5], False), ("bilinear", (1, 2, 4, 3), [1.6, 2.5], True), ("bicubic", (1, 1, 4, 5), [1.3, 0.7], False),
                                      ("bicubic", (1, 1, 4, 5), [1.3, 0.7], True), ("trilinear", (1, 1, 3, 2, 4), [1.5, 2.5, 0.8], False), ("nearest", (1, 1, 3, 2, 4), [1.5, 2.5, 0.8], None)):
    for again in (False, True):
        Case("interpolate/factors-%s-%d%s%s" % (mode, len(shape), "-corners" if corners else "", "-again" if again else ""), "interpolate",
             lambda a: F.interpolate(a, scale_factor=factors, mode=mode, align_corners=corners, recompute_scale_factor=again), [x(*shape, dtype=F64)],
             output_size=[], scale_factor=factors, mode=mode, align_corners=bool(corners), recompute_scale_factor=again)

# ---- found by random inputs ----
# images that are expanded: steps of 0
for shape, more in (((1, 1, 1), dict(expand=(1, 1, 7))), ((2, 1, 1), dict(expand=(2, 3, 7))), ((1, 1, 5), dict(expand=(2, 1, 5)))):
    channels = more["expand"][1]
    for kernel in (1, 3):
        Case("conv1d/expanded-%d-%d" % (channels, kernel), "conv1d", lambda a, w, b: F.conv1d(a, w, b, 1, 1), [x(*shape, dtype=F64, **more), x(2, channels, kernel, dtype=F64), None],
             stride=1, padding=1)
        Case("conv_transpose1d/expanded-%d-%d" % (channels, kernel), "conv_transpose1d", lambda a, w, b: F.conv_transpose1d(a, w, b, 2), [x(*shape, dtype=F64, **more), x(channels, 2, kernel, dtype=F64), None],
             stride=2)
# a last window that begins inside though not even the first one fits
for op, call in (("max_pool", F.max_pool2d), ("avg_pool", F.avg_pool2d)):
    for kernel, stride, padding, shape in (([1, 3], [2, 2], [0, 1], (1, 2, 3, 1)), ([3, 3], [3, 3], [1, 0], (2, 1, 1, 2)), ([2, 2], [2, 2], [0, 0], (1, 1, 1, 1))):
        for d in FLOATS:
            Case("%s2d/too-large-%s" % (op, NAMES[d]), op + "2d", lambda a: call(a, kernel, stride, padding, ceil_mode=True), [x(*shape, dtype=d)],
                 kernel=kernel, stride=stride, padding=padding, ceil_mode=True)
Case("avg_pool2d/too-large-inside", "avg_pool2d", lambda a: F.avg_pool2d(a, 3, 3, 1, True, False), [x(1, 2, 1, 2, dtype=F64)], kernel=[3], stride=[3], padding=[1], ceil_mode=True,
     count_include_pad=False)
Case("max_pool2d/too-large-dilated", "max_pool2d", lambda a: F.max_pool2d(a, [3, 3], [1, 2], 1, 2, True), [x(1, 2, 6, 2, dtype=F64)], kernel=[3, 3], stride=[1, 2], padding=[1], dilation=[2], ceil_mode=True)
Case("lp_pool1d/too-large", "lp_pool1d", lambda a: F.lp_pool1d(a, 2.0, 3, 2, True), [x(1, 2, 2, dtype=F64, positive=True)], p=2.0, kernel=[3], stride=[2], ceil_mode=True)
# what is not finite stays in the windows that hold it
INF, NAN = float("inf"), float("nan")
for d in FLOATS:
    Case("adaptive_avg_pool1d/infinite-" + NAMES[d], "adaptive_avg_pool1d", lambda a: F.adaptive_avg_pool1d(a, 3), [x(data=[[[1.0, INF, 2.0, -1.0, 0.5, 3.0, NAN]]], dtype=d)], output_size=[3])
Case("adaptive_avg_pool2d/infinite", "adaptive_avg_pool2d", lambda a: F.adaptive_avg_pool2d(a, (2, 3)), [x(data=[[[[1.0, -INF, 2.0, 4.0], [0.5, 1.0, 1.0, -2.0], [1.5, 2.0, 3.0, 0.25]]]], dtype=F64)],
     output_size=[2, 3])
Case("local_response_norm/nothing", "local_response_norm", lambda a: F.local_response_norm(a, 3), [x(2, 0, 4)], neighbours=3)
for p in (1.0, 2.0, INF):
    Case("cdist/no-length-%g" % p, "cdist", lambda a, b: torch.cdist(a, b, p), [x(3, 0, dtype=F64), x(2, 0, dtype=F64)], p=p)
# uneven means: windows that share elements, more windows than elements, even along one dimension
for d in FLOATS:
    for shape, size in (((2, 3, 7, 10), (3, 7)), ((1, 2, 3, 4), (7, 8)), ((2, 1, 4, 5), (2, 3)), ((1, 2, 9, 2), (2, 9))):
        Case("adaptive_avg_pool2d/uneven-%s-%s" % (row(shape[2:]), NAMES[d]), "adaptive_avg_pool2d", lambda a: F.adaptive_avg_pool2d(a, size), [x(*shape, dtype=d)], output_size=list(size))
print("end")
