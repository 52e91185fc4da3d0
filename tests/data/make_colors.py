#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# make_colors.py FILE: what torchvision makes of an image by transforms whose random numbers are
# fixed, for test_colors.c.
import math
import sys
import textwrap

import torch
import torchvision
import torchvision.transforms.v2.functional as functional

HEIGHT, WIDTH = 11, 13


def image():
    """The numbers of test_colors.c."""
    count = 3 * HEIGHT * WIDTH
    values = [(i * 37 + i * i // 7 * 11) % 256 for i in range(count)]
    return torch.tensor(values, dtype=torch.uint8).reshape(3, HEIGHT, WIDTH)


def rows(x):
    for factor in (0.0, 0.6, 1.7):
        yield (f"ColorJitter(brightness=({factor}, {factor}))",
               functional.adjust_brightness(x, factor))
        yield f"ColorJitter(contrast=({factor}, {factor}))", functional.adjust_contrast(x, factor)
        yield (f"ColorJitter(saturation=({factor}, {factor}))",
               functional.adjust_saturation(x, factor))
    for factor in (-0.5, -0.17, 0.08, 0.4):
        yield f"ColorJitter(hue=({factor}, {factor}))", functional.adjust_hue(x, factor)
    yield "Grayscale()", functional.rgb_to_grayscale(x)
    yield "Grayscale(3)", functional.rgb_to_grayscale(x, 3)
    yield "RandomGrayscale(p=1)", functional.rgb_to_grayscale(x, 3)
    yield "GaussianBlur(3, sigma=0.8)", functional.gaussian_blur(x, [3, 3], [0.8])
    yield "GaussianBlur((7, 5), sigma=(2, 2))", functional.gaussian_blur(x, [7, 5], [2.0])
    for mode in ("nearest", "bilinear"):
        kind = functional.InterpolationMode(mode)
        for angle in (0, 33, 90, 180, 271.5):
            for expand in (False, True):
                yield (f"RandomRotation(({angle}, {angle}), interpolation='{mode}', "
                       f"expand={expand}, fill=7)",
                       functional.rotate(x, angle, kind, expand, None, 7))
        yield (f"RandomRotation((40, 40), interpolation='{mode}', center=(2, 3))",
               functional.rotate(x, 40, kind, False, [2, 3], 0))
        yield (f"RandomAffine((20, 20), scale=(1.3, 1.3), shear=(8, 8, -5, -5), "
               f"interpolation='{mode}')",
               functional.affine(x, 20, [0, 0], 1.3, [8, -5], kind, 0))


def main():
    x = image()
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        version = torchvision.__version__.split("+")[0]
        out.write("/* SPDX-License-Identifier: MIT\n *\n"
                  f" * Numbers of torchvision {version}, written by make_colors.py. */\n\n"
                  f"enum {{ COLOR_HEIGHT = {HEIGHT}, COLOR_WIDTH = {WIDTH} }};\n\n"
                  "static const struct color {\n    const char *spec;\n"
                  "    int64_t channels, height, width;\n"
                  "    uint8_t values[1024];\n} colors[] = {\n")
        for spec, y in rows(x):
            text = textwrap.fill(", ".join(map(str, y.flatten().tolist())), 92,
                                 initial_indent=" " * 8, subsequent_indent=" " * 8)
            assert math.prod(y.shape) <= 1024
            head = textwrap.fill(spec, 88).replace("\n", ' "\n      "')
            out.write(f'    {{ "{head}",\n      {y.shape[0]},\n      {y.shape[1]},\n'
                      f"      {y.shape[2]},\n      {{\n{text} }} }},\n")
        out.write("};\n")


main()
