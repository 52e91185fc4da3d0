#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# make_library_pictures.py FOLDER: WebP, TIFF and GIF files below FOLDER/files/library, and
# library_pictures.h with their pixels as Pillow shows them: turned as EXIF says, in RGB.
import os
import sys
import textwrap

import numpy
import PIL
from PIL import Image, ImageOps, TiffImagePlugin

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


def write_webp(folder):
    rgb = Image.fromarray(picture(11))
    clear = Image.fromarray(picture(12, 4))

    def save(image, name, **options):
        image.save(os.path.join(folder, name), **options)

    save(rgb, "lossless.webp", lossless=True)
    save(rgb, "lossy.webp", quality=90)
    save(clear, "clear.webp", lossless=True, exact=True)
    save(rgb, "animated.webp", lossless=True, save_all=True,
         append_images=[Image.fromarray(255 - picture(11))])
    for orientation in (3, 5, 8):
        save(rgb, f"turned_{orientation}.webp", lossless=True, exif=exif(orientation))


def write_gif(folder):
    one = Image.fromarray(picture(13)).quantize(16)
    two = Image.fromarray(picture(14)).quantize(16)
    path = os.path.join(folder, "plain.gif")
    one.save(path, interlace=0)
    one.save(os.path.join(folder, "interlaced.gif"), interlace=1)
    one.save(os.path.join(folder, "animated.gif"), save_all=True, append_images=[two])
    one.save(os.path.join(folder, "clear.gif"), transparency=3)
    with open(path, "rb") as file:
        data = bytearray(file.read())
    # The picture becomes a part of a larger screen, with and without a transparent color.
    place = data.index(b",\0\0\0\0")
    data[6:10] = bytes([WIDTH + 2, 0, HEIGHT + 1, 0])
    data[11] = 4
    data[place + 1:place + 5] = bytes([1, 0, 1, 0])
    with open(os.path.join(folder, "part.gif"), "wb") as file:
        file.write(data)
    place = data.index(b",\1\0\1\0")
    data[place:place] = b"!\xf9\4\1\0\0\2\0"
    with open(os.path.join(folder, "part_clear.gif"), "wb") as file:
        file.write(data)


def write_tiff(folder):
    rgb = Image.fromarray(picture(15))
    gray = Image.fromarray(picture(16)[:, :, 0])

    def save(image, name, **options):
        image.save(os.path.join(folder, name), **options)

    save(rgb, "rgb.tiff")
    save(rgb, "big.tiff", big_tiff=True)
    save(rgb, "lzw.tif", compression="tiff_lzw")
    save(rgb, "deflate.tif", compression="tiff_adobe_deflate")
    save(rgb.quantize(16), "palette.tif")
    save(gray, "gray.tif")
    save(gray.convert("1"), "bits.tif", compression="group4")
    save(Image.fromarray(picture(17, 4)), "clear.tif")
    for orientation in (3, 5, 8):
        tags = TiffImagePlugin.ImageFileDirectory_v2()
        tags[274] = orientation
        save(rgb, f"turned_{orientation}.tif", tiffinfo=tags)


def main():
    top = sys.argv[1]
    folder = os.path.join(top, "files/library")
    os.makedirs(folder, exist_ok=True)
    write_webp(folder)
    write_gif(folder)
    write_tiff(folder)
    with open(os.path.join(top, "library_pictures.h"), "w", encoding="utf-8") as out:
        out.write("/* SPDX-License-Identifier: MIT\n *\n"
                  f" * Numbers of Pillow {PIL.__version__}, written by make_library_pictures.py."
                  " */\n\n/* RGB, one plane for each color. */\n"
                  "static const struct library_picture {\n    const char *name;\n"
                  "    int64_t height, width;\n"
                  f"    uint8_t planes[{3 * (HEIGHT + 1) * (WIDTH + 2)}];\n"
                  "} library_pictures[] = {\n")
        for name in sorted(os.listdir(folder)):
            image = ImageOps.exif_transpose(Image.open(os.path.join(folder, name)))
            pixels = numpy.asarray(image.convert("RGB")).transpose(2, 0, 1)
            values = textwrap.fill(", ".join(map(str, pixels.flatten())), 92,
                                   initial_indent=" " * 8, subsequent_indent=" " * 8)
            out.write(f'    {{ "{name}",\n      {pixels.shape[1]},\n      {pixels.shape[2]},\n'
                      f"      {{\n{values} }} }},\n")
        out.write("};\n")


main()
