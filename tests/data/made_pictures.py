# SPDX-License-Identifier: MIT
#
# For make_library_pictures.py and make_odd_pictures.py: small pictures with smooth colors, and a
# header with the pixels of files as Pillow shows them, turned as EXIF says, in RGB.
import os
import textwrap

import numpy
import PIL
from PIL import Image, ImageOps

HEIGHT, WIDTH = 5, 7


def picture(seed, channels=3):
    rng = numpy.random.RandomState(seed)
    y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH]
    smooth = numpy.stack([30 * y + 5 * x, 255 - 20 * x, 10 * (x + y), 200 - 30 * y], -1)
    noise = rng.randint(-9, 10, smooth.shape)
    return numpy.clip(smooth + noise, 0, 255).astype(numpy.uint8)[:, :, :channels]


def exif(orientation):
    data = Image.Exif()
    data[274] = orientation
    return data


def write_header(top, kind, folder, comment, most):
    """Writes KIND_pictures.h for the pictures in a folder; `most`: the pixels of the largest."""
    with open(os.path.join(top, f"{kind}_pictures.h"), "w", encoding="utf-8") as out:
        out.write("/* SPDX-License-Identifier: MIT\n *\n"
                  f" * Numbers of Pillow {PIL.__version__}, written by make_{kind}_pictures.py."
                  f" */\n\n/* {comment} */\n"
                  f"static const struct {kind}_picture {{\n    const char *name;\n"
                  "    int64_t height, width;\n"
                  f"    uint8_t planes[{3 * most}];\n}} {kind}_pictures[] = {{\n")
        for name in sorted(os.listdir(folder)):
            image = ImageOps.exif_transpose(Image.open(os.path.join(folder, name)))
            pixels = numpy.asarray(image.convert("RGB")).transpose(2, 0, 1)
            values = textwrap.fill(", ".join(map(str, pixels.flatten())), 92,
                                   initial_indent=" " * 8, subsequent_indent=" " * 8)
            out.write(f'    {{ "{name}",\n      {pixels.shape[1]},\n      {pixels.shape[2]},\n'
                      f"      {{\n{values} }} }},\n")
        out.write("};\n")
