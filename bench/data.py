#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the loader with PyTorch's DataLoader on JPEG files that are made for it.

    bench/data.py PROGRAM [--pictures 20000] [--rounds 3] [--workers 2] [--folder F]

PROGRAM is bench/data of a build tree, with what runs it: "./run bench/data". Both sides decode,
transform and collect the same files with the same number of workers, in turn. The time of the
processor counts all threads and processes of a side; the wall time depends on what else runs."""
import argparse
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CASES = {
    "train": f"[RandomResizedCrop(224), ToFloat(), Normalize({MEAN}, {STD})]",
    "test": f"[Resize(256), CenterCrop(224), ToFloat(), Normalize({MEAN}, {STD})]",
}


def make(folder, count):
    """Pictures of 500 x 375 and 375 x 460 pixels: smooth colors with a texture, about 55 KB."""
    import numpy
    from PIL import Image

    rng = numpy.random.default_rng(1)
    bases = []
    for _ in range(24):
        small = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=numpy.uint8))
        smooth = numpy.asarray(small.resize((640, 480), Image.BICUBIC), dtype=numpy.int16)
        fine = Image.fromarray(rng.integers(0, 256, (240, 320), dtype=numpy.uint8))
        texture = numpy.asarray(fine.resize((640, 480), Image.BICUBIC), dtype=numpy.int16)
        mixed = smooth + (texture[:, :, None] - 128) // 4
        bases.append(numpy.clip(mixed, 0, 255).astype(numpy.uint8))
    for i in range(count):
        place = os.path.join(folder, f"class{i % 10}")
        os.makedirs(place, exist_ok=True)
        height, width = (375, 500) if i % 3 else (460, 375)
        top, left = rng.integers(0, 480 - height + 1), rng.integers(0, 640 - width + 1)
        part = bases[i % len(bases)][top : top + height, left : left + width]
        Image.fromarray(part).save(os.path.join(place, f"{i:06}.jpg"), quality=85)


def torch_side(folder, case, workers, batch, most):
    import torch
    from torchvision import datasets, transforms

    torch.set_num_threads(1)
    first = [transforms.RandomResizedCrop(224)]
    if case == "test":
        first = [transforms.Resize(256), transforms.CenterCrop(224)]
    last = [transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    data = datasets.ImageFolder(folder, transforms.Compose(first + last))
    before = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    start, pictures = time.monotonic(), 0
    loader = torch.utils.data.DataLoader(data, batch, shuffle=True, num_workers=workers)
    if len(data) > most:
        chosen = torch.randperm(len(data))[:most].tolist()
        chosen = torch.utils.data.Subset(data, chosen)
        loader = torch.utils.data.DataLoader(chosen, batch, num_workers=workers)
    for images, _ in loader:
        pictures += len(images)
    wall = time.monotonic() - start
    del loader  # ends the workers, whose time counts only then
    after = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    user = sum(a.ru_utime - b.ru_utime for a, b in zip(after, before))
    system = sum(a.ru_stime - b.ru_stime for a, b in zip(after, before))
    print(pictures, wall, user, system)


def measure(command):
    words = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    pictures, wall, user, system = (float(w) for w in words)
    return [1000 * t / pictures for t in (wall, user, user + system)]


def compare(args, folder):
    for case, spec in CASES.items():
        ours, theirs = [], []
        for _ in range(args.rounds):
            ours.append(measure(shlex.split(args.program) + [folder, spec, str(args.workers),
                                                             "64", str(args.most)]))
            theirs.append(measure([sys.executable, __file__, "--side", case, folder,
                                   "--workers", str(args.workers), "--most", str(args.most)]))
        best = [[min(column) for column in zip(*rows)] for rows in (ours, theirs)]
        for name, row in zip(("Tenon", "PyTorch"), best):
            print(f"{case:6} {name:8} {row[0]:7.3f} ms wall {row[1]:7.3f} ms user "
                  f"{row[2]:7.3f} ms user and system, each picture, best of {args.rounds}")
        ratios = [theirs / ours for ours, theirs in zip(*best)]
        print(f"{case:6} PyTorch / Tenon: {ratios[0]:.2f} wall, {ratios[1]:.2f} user, "
              f"{ratios[2]:.2f} user and system", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--side", action="store_true")
    parser.add_argument("--pictures", type=int, default=20000)
    parser.add_argument("--most", type=int, default=1 << 40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder")
    args = parser.parse_args()
    if args.side:
        torch_side(args.rest[0], args.program, args.workers, 64, args.most)
        return
    folder = args.folder or tempfile.mkdtemp(prefix="tenon-data-")
    if not os.path.isdir(os.path.join(folder, "class0")):
        make(folder, args.pictures)
    try:
        compare(args, folder)
    finally:
        if not args.folder:
            subprocess.run(["rm", "-r", folder], check=True)


main()
