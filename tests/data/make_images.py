#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# make_images.py FOLDER: small pictures below FOLDER/files/pictures, written by Pillow, and images.h
# with their pixels as Pillow reads them, and with what torchvision's resize makes of one.
import os
import sys
import textwrap

import numpy
import PIL
import torch
import torchvision
import torchvision.transforms.v2.functional as functional
from PIL import Image

HEIGHT, WIDTH = 7, 9


def picture(seed):
    rng = numpy.random.RandomState(seed)
    y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH]
    smooth = numpy.stack([20 * y + 5 * x, 255 - 20 * x, 10 * (x + y)], -1)
    return numpy.clip(smooth + rng.randint(-9, 10, smooth.shape), 0, 255).astype(numpy.uint8)


def write_pictures(folder):
    rgb = picture(1)
    grey = picture(2)[:, :, 0]
    alpha = numpy.concatenate([picture(3), picture(4)[:, :, :1]], -1)
    wide = grey.astype(numpy.uint16) * 257
    files = {
        "cat/alpha.png": (Image.fromarray(alpha), {}),
        "cat/grey.png": (Image.fromarray(grey), {}),
        "cat/more/palette.png": (Image.fromarray(rgb).quantize(16), {}),
        "dog/color.JPG": (Image.fromarray(rgb), {"quality": 90}),
        "dog/grey.jpeg": (Image.fromarray(grey), {"quality": 90}),
        "dog/progressive.jpg": (Image.fromarray(rgb), {"quality": 80, "progressive": True}),
        "dog/rgb.png": (Image.fromarray(rgb), {}),
        "dog/sixteen.png": (Image.fromarray(wide), {}),
    }
    for name, (image, options) in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        image.save(path, format="PNG" if name.endswith("png") else "JPEG", **options)
    return files, grey


def lines(values):
    return textwrap.fill(", ".join(map(str, values)), 92, initial_indent=" " * 8,
                         subsequent_indent=" " * 8)


def main():
    top = sys.argv[1]
    folder = os.path.join(top, "files/pictures")
    files, grey = write_pictures(folder)
    with open(os.path.join(top, "images.h"), "w", encoding="utf-8") as out:
        version = torchvision.__version__.split("+")[0]
        out.write("/* SPDX-License-Identifier: MIT\n *\n"
                  f" * Numbers of Pillow {PIL.__version__} and torchvision {version}, written by "
                  "make_images.py. */\n\n"
                  f"enum {{ PICTURE_HEIGHT = {HEIGHT}, PICTURE_WIDTH = {WIDTH} }};\n\n"
                  "/* In the order of the dataset; RGB, one plane for each color. */\n"
                  "static const struct picture {\n    const char *name;\n"
                  "    uint8_t planes[3 * PICTURE_HEIGHT * PICTURE_WIDTH];\n} pictures[] = {\n")
        for name in files:
            if name == "dog/sixteen.png":  # Pillow saturates 16 bits, where libpng takes the high 8
                pixels = numpy.stack([grey] * 3, -1)
            else:
                pixels = numpy.asarray(Image.open(os.path.join(folder, name)).convert("RGB"))
            out.write(f'    {{ "{name}",\n      {{\n'
                      f"{lines(pixels.transpose(2, 0, 1).flatten())} }} }},\n")
        out.write("};\n\n/* What resize makes of dog/rgb.png. */\nstatic const struct sized {\n"
                  "    const char *spec;\n    int64_t height, width;\n"
                  "    uint8_t planes[1024];\n} sizes[] = {\n")
        image = torch.from_numpy(picture(1).transpose(2, 0, 1).copy())
        for size, mode, antialias in (((4, 5), "bilinear", True), ((4, 5), "bilinear", False),
                                      ((14, 12), "bilinear", True), ((3, 20), "bilinear", True),
                                      ((4, 5), "bicubic", True), ((14, 12), "bicubic", True),
                                      ((4, 5), "nearest", True), ((14, 12), "nearest", True),
                                      ([4], "bilinear", True), ([12], "bilinear", True)):
            result = functional.resize(image, list(size),
                                       getattr(functional.InterpolationMode, mode.upper()),
                                       antialias=antialias)
            text = str(tuple(size)) if len(size) == 2 else str(size[0])
            out.write(f"    {{ \"Resize({text}, interpolation='{mode}', antialias={antialias})\",\n"
                      f"      {result.shape[1]},\n      {result.shape[2]},\n"
                      f"      {{\n{lines(result.flatten().tolist())} }} }},\n")
        out.write("};\n")


main()
