#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# compare_pictures.py [COUNT]: compares the transforms with torchvision's on random pictures, 2,000
# of them unless told otherwise. `make data-pictures` runs it.
#
# A picture has one to three channels, bytes or floats, and sizes from 1 to 40. Random transforms
# get options that leave one choice only, or the choice is found by trying all.
import math
import random
import sys

import numpy
import tenon.data
import torch
import torchvision.transforms.v2.functional as functional

MODES = ("nearest", "bilinear", "bicubic")
MODE_OF = functional.InterpolationMode
counts, wrong = {}, []


def ours(picture, spec, seed=1):
    """The picture after a transform of Tenon, as a tensor of PyTorch."""
    x, label = tenon.tensor(picture[None].numpy()), tenon.tensor([0])
    dataset = tenon.data.TensorDataset(x, label).transform(spec)
    return torch.from_numpy(numpy.array(dataset.get(0, seed)[0].numpy()))


def close(got, expected, bytes_off=0):
    """Whether two pictures are equal; floats within 1e-4 of the range, bytes within bytes_off."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    limit = bytes_off if got.dtype == torch.uint8 else 0.03
    return (got.double() - expected.double()).abs().max().item() <= limit


def compare(name, spec, picture, expected, seed=1, bytes_off=0):
    counts[name] = counts.get(name, 0) + 1
    got = ours(picture, spec, seed)
    if not close(got, expected, bytes_off):
        off = "another shape or dtype"
        if got.shape == expected.shape:
            off = "off by %g" % (got.double() - expected.double()).abs().max().item()
        wrong.append(f"{spec} of {tuple(picture.shape)} {picture.dtype}: {off}")


def picture_of(rng):
    shape = (rng.choice((1, 3)), rng.randint(1, 40), rng.randint(1, 40))
    picture = torch.randint(0, 256, shape, dtype=torch.uint8)
    return picture if rng.random() < 0.6 else picture.float()


def resize(rng, picture):
    _, height, width = picture.shape
    mode, antialias = rng.choice(MODES), rng.random() < 0.5
    size = [rng.randint(1, 50), rng.randint(1, 50)]
    if rng.random() < 0.3:
        size = [rng.randint(1, 40)]
    # torchvision computes bytes of width 1 and a smaller height wrongly with antialias
    if antialias and size[-1] == 1 and picture.dtype == torch.uint8:
        return
    expected = functional.resize(picture, size, MODE_OF[mode.upper()], antialias=antialias)
    text = tuple(size) if len(size) == 2 else size[0]
    spec = f"Resize({text}, interpolation='{mode}', antialias={antialias})"
    compare("Resize", spec, picture, expected)


def random_resized_crop(rng, picture):
    """With one scale and one ratio only the place is random: one of all must fit."""
    _, height, width = picture.shape
    mode, antialias = rng.choice(MODES), rng.random() < 0.5
    h, w = rng.randint(1, min(height, 12)), rng.randint(1, min(width, 12))
    if h * w < 2:
        return
    size = [rng.randint(2, 20), rng.randint(2, 20)]
    scale, ratio = h * w / (height * width), w / h
    if (round(math.sqrt(h * w * ratio)), round(math.sqrt(h * w / ratio))) != (w, h):
        return
    spec = (
        f"RandomResizedCrop({tuple(size)}, scale=({scale!r}, {scale!r}), ratio=({ratio!r}, "
        f"{ratio!r}), interpolation='{mode}', antialias={antialias})"
    )
    counts["RandomResizedCrop"] = counts.get("RandomResizedCrop", 0) + 1
    got = ours(picture, spec, rng.randint(1, 1000))
    for top in range(height - h + 1):
        for left in range(width - w + 1):
            expected = functional.resized_crop(
                picture, top, left, h, w, size, MODE_OF[mode.upper()], antialias=antialias
            )
            if close(got, expected):
                return
    wrong.append(f"{spec} of {tuple(picture.shape)} {picture.dtype}: no part of {h} x {w} fits")


def pad(rng, picture):
    _, height, width = picture.shape
    mode = rng.choice(("constant", "edge", "reflect", "symmetric"))
    most = {"constant": 9, "edge": 9, "reflect": min(height, width) - 1}
    most = most.get(mode, min(height, width))
    sides = [rng.randint(0, most) for _ in range(4)]
    fill = rng.randint(0, 255) if mode == "constant" else 0
    expected = functional.pad(picture, sides, fill=fill, padding_mode=mode)
    compare("Pad", f"Pad({tuple(sides)}, fill={fill}, padding_mode='{mode}')", picture, expected)


def center_crop(rng, picture):
    size = (rng.randint(1, 50), rng.randint(1, 50))
    compare("CenterCrop", f"CenterCrop({size})", picture, functional.center_crop(picture, size))


def flip(rng, picture):
    if rng.random() < 0.5:
        expected = functional.horizontal_flip(picture)
        compare("flips", "RandomHorizontalFlip(p=1)", picture, expected)
    else:
        compare("flips", "RandomVerticalFlip(p=1)", picture, functional.vertical_flip(picture))


def rotation(rng, picture):
    angle = rng.choice((0, 90, 180, -90, 30, 45, rng.uniform(-360, 360)))
    mode, expand, fill = rng.choice(MODES[:2]), rng.random() < 0.5, rng.randint(0, 255)
    center = None
    if rng.random() < 0.3 and not expand:
        center = [rng.uniform(-5, 45), rng.uniform(-5, 45)]
    expected = functional.rotate(
        picture, angle, MODE_OF[mode.upper()], expand=expand, center=center, fill=fill
    )
    spec = f"RandomRotation(({angle!r}, {angle!r}), interpolation='{mode}', expand={expand}"
    spec += f", center={tuple(center)}" if center else ""
    compare("RandomRotation", f"{spec}, fill={fill})", picture, expected, bytes_off=1)


def color(rng, picture):
    if picture.shape[0] != 3:
        return
    if picture.dtype != torch.uint8:
        picture = picture / 255
    name = rng.choice(("brightness", "contrast", "saturation", "hue"))
    factor = rng.uniform(-0.5, 0.5) if name == "hue" else rng.uniform(0, 2)
    expected = getattr(functional, "adjust_" + name)(picture, factor)
    spec = f"ColorJitter({name}=({factor!r}, {factor!r}))"
    compare("ColorJitter", spec, picture, expected, bytes_off=1)


def gray(rng, picture):
    if picture.shape[0] != 3:
        return
    channels = rng.choice((1, 3))
    expected = functional.rgb_to_grayscale(picture, channels)
    compare("Grayscale", f"Grayscale({channels})", picture, expected)


def blur(rng, picture):
    _, height, width = picture.shape
    size = [2 * rng.randint(0, (n - 1) // 2 if n < 9 else 4) + 1 for n in (width, height)]
    sigma = rng.uniform(0.1, 3)
    expected = functional.gaussian_blur(picture, size, [sigma, sigma])
    spec = f"GaussianBlur({tuple(size)}, sigma=({sigma!r}, {sigma!r}))"
    compare("GaussianBlur", spec, picture, expected, bytes_off=1)


def normalize(rng, picture):
    channels = picture.shape[0]
    picture = picture.float() / 255
    mean = [rng.random() for _ in range(channels)]
    std = [rng.random() + 0.1 for _ in range(channels)]
    expected = functional.normalize(picture, mean, std)
    spec = f"Normalize(mean={tuple(mean)}, std={tuple(std)})".replace(",)", ")")
    compare("Normalize", spec, picture, expected)


def main():
    torch.manual_seed(4)
    rng = random.Random(4)
    tries = [resize] * 8 + [random_resized_crop] * 2 + [pad, pad, center_crop, flip]
    tries += [rotation, rotation, color, color, gray, blur, normalize]
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 2000):
        rng.choice(tries)(rng, picture_of(rng))
    for line in wrong[:40]:
        print(line)
    text = ", ".join("%s %d" % row for row in sorted(counts.items()))
    print(f"{sum(counts.values())} comparisons ({text}), {len(wrong)} wrong")
    sys.exit(bool(wrong))


main()
