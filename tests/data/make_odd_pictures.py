#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# make_odd_pictures.py FOLDER: pictures of kinds that are less usual, below FOLDER/files/odd, and
# odd_pictures.h with their pixels as Pillow shows them: turned as EXIF says, in RGB.
import os
import struct
import sys

import numpy
from PIL import Image

from made_pictures import HEIGHT, WIDTH, exif, picture, write_header


def bmp(bits, rows, top_down=False, masks=None, palette=b"", core=False):
    """A BMP file of rows of bytes, from the top of the picture."""
    rows = [row + b"\0" * (-len(row) % 4) for row in rows]
    data = b"".join(rows if top_down else rows[::-1])
    height = -HEIGHT if top_down else HEIGHT
    if core:
        info = struct.pack("<IHHHH", 12, WIDTH, HEIGHT, 1, bits)
    else:
        info = struct.pack(
            "<IiiHHIIiiII", 40, WIDTH, height, 1, bits, 3 if masks else 0, len(data), 0, 0,
            len(palette) // 4, 0)
    if masks:
        info += struct.pack("<III", *masks)
    offset = 14 + len(info) + len(palette)
    return b"BM" + struct.pack("<IHHI", offset + len(data), 0, 0, offset) + info + palette + data


def pack(values, bits):
    """Numbers of a few bits as bytes, the first one in the upper bits."""
    text = "".join(format(int(value), f"0{bits}b") for value in values)
    text += "0" * (-len(text) % 8)
    return bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8))


def write_bmp(folder):
    rgb = picture(5)
    numbers = picture(6)[:, :, 0]
    palette = b"".join(bytes([255 - i, i, 3 * i % 256, 0]) for i in range(0, 256, 17))
    fields = [[(int(r) >> 3 << 11) | (int(g) >> 2 << 5) | int(b) >> 3 for r, g, b in row] for row in
              rgb]
    files = {
        "bmp_1.bmp": bmp(1, [pack(row > 100, 1) for row in numbers], palette=palette[4:12]),
        "bmp_16.bmp": bmp(16, [struct.pack(f"<{WIDTH}H", *row) for row in fields],
                          masks=(0xF800, 0x7E0, 0x1F)),
        "bmp_24.bmp": bmp(24, [row[:, ::-1].tobytes() for row in rgb], top_down=True),
        "bmp_32.bmp": bmp(32, [numpy.insert(row[:, ::-1], 3, 77, 1).tobytes() for row in rgb]),
        "bmp_4.bmp": bmp(4, [pack(row // 17, 4) for row in numbers], palette=palette),
        "bmp_core.bmp": bmp(24, [row[:, ::-1].tobytes() for row in rgb], core=True),
    }
    for name, data in files.items():
        with open(os.path.join(folder, name), "wb") as out:
            out.write(data)


def write_pictures(folder):
    rgb = Image.fromarray(picture(1))
    inks = Image.fromarray(picture(2, 4), "CMYK")
    wide = numpy.concatenate([picture(3), picture(4)[:, :, :1]], -1)
    for orientation in range(1, 9):
        rgb.save(os.path.join(folder, f"turned_{orientation}.jpg"), quality=95,
                 exif=exif(orientation))
    rgb.save(os.path.join(folder, "turned_6.png"), exif=exif(6))
    Image.fromarray(wide).save(os.path.join(folder, "animated.png"), save_all=True,
                               append_images=[Image.fromarray(255 - wide)])
    path = os.path.join(folder, "cmyk.jpg")
    inks.save(path, quality=95)
    with open(path, "rb") as file:
        data = bytearray(file.read())
    # In the marker of Adobe the last byte says whether the colors are transformed: 2 is YCCK.
    place = data.index(b"Adobe") + 11
    assert data[place] == 0
    data[place] = 2
    with open(os.path.join(folder, "ycck.jpg"), "wb") as file:
        file.write(data)
    write_bmp(folder)


def main():
    top = sys.argv[1]
    folder = os.path.join(top, "files/odd/all")
    os.makedirs(folder, exist_ok=True)
    write_pictures(folder)
    write_header(top, "odd", folder,
                 "In the order of the dataset; RGB, one plane for each color.", HEIGHT * WIDTH)


main()
