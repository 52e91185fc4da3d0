#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# make_transforms.py FILE: what torchvision's transforms make of a small image, for
# test_data_plugin.c.
import sys
import textwrap

import torch
import torchvision
import torchvision.transforms.v2.functional as functional


def numbers(values, indent):
    return textwrap.fill(", ".join(values), 92, initial_indent=indent, subsequent_indent=indent)


def rows(image):
    for mode in ("constant", "edge", "reflect", "symmetric"):
        fill = 9 if mode == "constant" else 0
        text = ", fill=9" if mode == "constant" else ""
        yield (f"Pad((1, 2, 2, 1){text}, padding_mode='{mode}')",
               functional.pad(image, [1, 2, 2, 1], fill=fill, padding_mode=mode))
    for size in ((2, 2), (1, 3), (3, 1), (2, 3), (5, 6), (4, 2), (2, 7)):
        yield f"CenterCrop({size})", functional.center_crop(image, list(size))
    yield "RandomHorizontalFlip(p=1)", functional.horizontal_flip(image)
    yield "RandomVerticalFlip(p=1)", functional.vertical_flip(image)


def main():
    image = torch.arange(24, dtype=torch.uint8).reshape(2, 3, 4)
    normalized = functional.normalize(image.float() / 255, [0.1, 0.2], [0.5, 0.25])
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        version = torchvision.__version__.split("+")[0]
        out.write("/* SPDX-License-Identifier: MIT\n *\n"
                  f" * Numbers of torchvision {version}, written by make_transforms.py. */\n\n"
                  "static const struct row {\n    const char *spec;\n"
                  "    int64_t height, width;\n    uint8_t values[84];\n} rows[] = {\n")
        for spec, result in rows(image):
            values = numbers(map(str, result.flatten().tolist()), " " * 8)
            out.write(f'    {{ "{spec}",\n      {result.shape[1]},\n      {result.shape[2]},\n'
                      f"      {{\n{values} }} }},\n")
        values = numbers((f"{v:.9e}f" for v in normalized.flatten().tolist()), " " * 4)
        out.write("};\n\n/* Normalize(mean=(0.1, 0.2), std=(0.5, 0.25)) of ToFloat() */\n"
                  f"static const float normalized[24] = {{\n{values}\n}};\n")


main()
