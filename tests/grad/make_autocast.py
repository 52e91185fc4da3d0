#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes autocast_cases.h: for operators of torch.autocast('cpu', dtype) the dtype and the values of
# the result. Run as python make_autocast.py > autocast_cases.h
#
# Input i of a case has the values ((k * 7 + i * 3) mod 11 - 5) / 4, or, for `positive`,
# 0.25 + ((k * 7 + i * 3) mod 11) / 16; both are exact in bfloat16. test_autocast.c has the same.
import textwrap

import torch
import torch.nn.functional as F

DTYPES = {torch.float32: "TN_F32", torch.float16: "TN_F16", torch.bfloat16: "TN_BF16"}

# name, input shapes, positive, function
CASES = [
    ("linear", [(2, 3), (4, 3), (4,)], False, lambda x, w, b: F.linear(x, w, b)),
    ("matmul", [(2, 3), (3, 4)], False, torch.matmul),
    ("bmm", [(2, 2, 3), (2, 3, 2)], False, torch.bmm),
    ("addmm", [(2, 2), (2, 3), (3, 2)], False, torch.addmm),
    ("baddbmm", [(2, 2, 2), (2, 2, 3), (2, 3, 2)], False, torch.baddbmm),
    ("conv1d", [(1, 2, 5), (3, 2, 3), (3,)], False, F.conv1d),
    ("conv2d", [(1, 2, 4, 4), (2, 2, 3, 3), (2,)], False, F.conv2d),
    ("conv3d", [(1, 1, 3, 3, 3), (2, 1, 2, 2, 2), (2,)], False, F.conv3d),
    ("conv_transpose2d", [(1, 2, 2, 2), (2, 2, 2, 2), (2,)], False, F.conv_transpose2d),
    ("prelu", [(2, 3), (1,)], False, F.prelu),
    ("scaled_dot_product_attention", [(1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)], False,
     F.scaled_dot_product_attention),
    ("einsum", [(2, 3), (3, 2)], False, lambda a, b: torch.einsum("ij,jk->ik", a, b)),
    ("tensordot", [(2, 3), (3, 2)], False, lambda a, b: torch.tensordot(a, b, 1)),
    ("mse_loss", [(2, 3), (2, 3)], False, F.mse_loss),
    ("l1_loss", [(2, 3), (2, 3)], False, F.l1_loss),
    ("smooth_l1_loss", [(2, 3), (2, 3)], False, F.smooth_l1_loss),
    ("huber_loss", [(2, 3), (2, 3)], False, F.huber_loss),
    ("binary_cross_entropy", [(2, 3), (2, 3)], True, F.binary_cross_entropy),
    ("binary_cross_entropy_with_logits", [(2, 3), (2, 3)], True,
     F.binary_cross_entropy_with_logits),
    ("kl_div", [(2, 3), (2, 3)], True, F.kl_div),
    ("poisson_nll_loss", [(2, 3), (2, 3)], True, F.poisson_nll_loss),
    ("hinge_embedding_loss", [(2, 3), (2, 3)], False, F.hinge_embedding_loss),
    ("margin_ranking_loss", [(6,), (6,), (6,)], False, F.margin_ranking_loss),
    ("soft_margin_loss", [(2, 3), (2, 3)], False, F.soft_margin_loss),
    ("triplet_margin_loss", [(2, 3), (2, 3), (2, 3)], False, F.triplet_margin_loss),
    ("cdist", [(2, 3), (4, 3)], False, torch.cdist),
    ("prod", [(2, 3)], False, torch.prod),
    ("trace", [(3, 3)], False, torch.trace),
    ("cat", [(2, 3), (2, 3)], False, lambda a, b: torch.cat([a, b])),
    ("stack", [(2, 3), (2, 3)], False, lambda a, b: torch.stack([a, b])),
    ("avg_pool3d", [(1, 1, 2, 2, 2)], False, lambda x: F.avg_pool3d(x, 2)),
    ("max_pool3d", [(1, 1, 2, 2, 2)], False, lambda x: F.max_pool3d(x, 2)),
    ("avg_pool2d", [(1, 1, 4, 4)], False, lambda x: F.avg_pool2d(x, 2)),
    ("softmax", [(2, 3)], False, lambda x: torch.softmax(x, -1)),
    ("log_softmax", [(2, 3)], False, lambda x: torch.log_softmax(x, -1)),
    ("exp", [(2, 3)], False, torch.exp),
    ("log", [(2, 3)], True, torch.log),
    ("sum", [(2, 3)], False, torch.sum),
    ("mean", [(2, 3)], False, torch.mean),
    ("cumsum", [(2, 3)], False, lambda x: torch.cumsum(x, 1)),
    ("relu", [(2, 3)], False, torch.relu),
    ("gelu", [(2, 3)], False, F.gelu),
    ("add", [(2, 3), (2, 3)], False, torch.add),
    ("mul", [(2, 3), (2, 3)], False, torch.mul),
    ("mv", [(2, 3), (3,)], False, torch.mv),
    ("local_response_norm", [(1, 4, 2, 2)], False, lambda x: F.local_response_norm(x, 3)),
    ("max_unpool1d", [(1, 1, 2)], False,
     lambda x: F.max_unpool1d(x, torch.tensor([[[1, 2]]]), 2)),
    ("max_unpool2d", [(1, 1, 1, 2)], False,
     lambda x: F.max_unpool2d(x, torch.tensor([[[[1, 6]]]]), 2)),
]


def values(shape, i, positive):
    k = torch.arange(torch.Size(shape).numel()) * 7 + i * 3
    k = (k % 11).to(torch.float32)
    return (0.25 + k / 16 if positive else (k - 5) / 4).reshape(shape)


print("/* SPDX-License-Identifier: MIT\n *")
print(" * Written by make_autocast.py with PyTorch's CPU autocast. */")
for low in (torch.bfloat16, torch.float16):
    for name, shapes, positive, function in CASES:
        # all inputs float32; all of the low dtype; the first of the low dtype
        for kind in ("f32", "low", "mixed"):
            args = [values(s, i, positive) for i, s in enumerate(shapes)]
            for i in range(len(args)):
                if kind == "low" or (kind == "mixed" and i == 0):
                    args[i] = args[i].to(low)
            try:
                with torch.autocast("cpu", dtype=low):
                    y = function(*args)
            except RuntimeError:
                continue
            flat = [float(v) for v in y.flatten().to(torch.float64)]
            sizes = ", ".join("{ " + ", ".join(map(str, s)) + " }" for s in shapes)
            ndims = ", ".join(str(len(s)) for s in shapes)
            row = '{ "%s", %s, \'%s\', %s, %d, { %s }, { %s }, %s, %d, { %s } },' % (
                name, DTYPES[low], kind[0], "true" if positive else "false", len(shapes), ndims,
                sizes, DTYPES[y.dtype], len(flat), ", ".join("%.9g" % v for v in flat))
            print("\n".join(textwrap.wrap(row, 98, subsequent_indent="  ")))
