#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# make_library_pictures.py FOLDER: WebP, TIFF and GIF files below FOLDER/files/library, and
# library_pictures.h with their pixels as Pillow shows them: turned as EXIF says, in RGB.
import os
import sys

from PIL import Image, TiffImagePlugin

from made_pictures import HEIGHT, WIDTH, exif, picture, write_header


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
    write_header(top, "library", folder, "RGB, one plane for each color.",
                 (HEIGHT + 1) * (WIDTH + 2))


main()
