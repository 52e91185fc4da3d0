#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# make_parts.py FOLDER: JPEG files of each kind of colors below FOLDER/files/parts, for the test
# that decodes parts of them.
import os
import sys

import numpy
from PIL import Image

HEIGHT, WIDTH = 75, 101


def main():
    rng = numpy.random.RandomState(7)
    small = Image.fromarray(rng.randint(0, 256, (19, 26, 3)).astype(numpy.uint8))
    image = small.resize((WIDTH, HEIGHT), Image.BICUBIC)
    folder = os.path.join(sys.argv[1], "files/parts/all")
    os.makedirs(folder, exist_ok=True)
    for name, options in {
        "a_420": {"subsampling": "4:2:0"},
        "b_422": {"subsampling": "4:2:2"},
        "c_444": {"subsampling": "4:4:4"},
        "d_progressive": {"subsampling": "4:2:0", "progressive": True},
        "e_restart": {"subsampling": "4:2:0", "restart_marker_blocks": 3},
    }.items():
        image.save(os.path.join(folder, f"{name}.jpg"), quality=85, **options)
    image.convert("L").save(os.path.join(folder, "f_grey.jpg"), quality=85)
    image.save(os.path.join(folder, "g.png"))


main()
