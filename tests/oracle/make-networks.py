#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Convolutions, pooling, normalisation:  PYTHON-WITH-TORCH make-networks.py > networks.txt
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
print("end")
