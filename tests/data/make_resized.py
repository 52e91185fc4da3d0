#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# make_resized.py FILE: what torchvision's resize makes of small pictures in all modes, for
# test_resized.c.
import sys
import textwrap

import torch
import torchvision
import torchvision.transforms.v2.functional as functional

# height and width, before and after; 30 to 26: float32 decides which of two pixels is nearest
SIZES = (
    ((5, 6), (5, 6)),
    ((5, 6), (3, 9)),
    ((4, 7), (11, 2)),
    ((9, 2), (4, 7)),
    ((1, 8), (3, 5)),
    ((6, 1), (4, 3)),
    ((1, 1), (2, 3)),
    ((2, 30), (3, 26)),
    ((30, 3), (22, 4)),
    ((13, 12), (3, 2)),
    ((3, 3), (10, 11)),
    ((7, 23), (1, 5)),
    ((8, 5), (7, 4)),
)
MODES = (
    ("nearest", False),
    ("bilinear", False),
    ("bilinear", True),
    ("bicubic", False),
    ("bicubic", True),
)


def picture(height, width):
    """The picture of test_resized.c."""
    at = torch.arange(height * width)
    return ((at * 37 + at * at % 251) % 256).to(torch.uint8).reshape(1, height, width)


def main():
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        version = torchvision.__version__.split("+")[0]
        out.write(
            "/* SPDX-License-Identifier: MIT\n *\n"
            f" * Numbers of torchvision {version}, written by make_resized.py. */\n\n"
            "static const struct resized {\n    const char *spec;\n"
            "    int64_t from[2], to[2];\n    uint8_t values[128];\n} resized[] = {\n"
        )
        for before, after in SIZES:
            for mode, antialias in MODES:
                result = functional.resize(
                    picture(*before),
                    list(after),
                    getattr(functional.InterpolationMode, mode.upper()),
                    antialias=antialias,
                )
                values = textwrap.fill(
                    ", ".join(map(str, result.flatten().tolist())),
                    92,
                    initial_indent=" " * 8,
                    subsequent_indent=" " * 8,
                )
                out.write(
                    f"    {{ \"Resize({after}, interpolation='{mode}', antialias={antialias})\",\n"
                    f"      {{ {before[0]}, {before[1]} }},\n      {{ {after[0]}, {after[1]} }},\n"
                    f"      {{\n{values} }} }},\n"
                )
        out.write("};\n")


main()
