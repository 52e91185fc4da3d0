#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# pictures.py SOURCES BUILD: tenon predict reads pictures as Pillow does, and Pillow reads the
# pictures that it writes. Exits with 77 if NumPy or Pillow is missing.
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    from PIL import Image
except ImportError as missing:
    print(f"SKIP: {missing}")
    sys.exit(77)


def main():
    source, build = sys.argv[1:3]
    folder = os.path.join(source, "tests/data/files/pictures")
    bad = 0
    with tempfile.TemporaryDirectory() as work:
        rng = numpy.random.RandomState(0)
        paths = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
        for number, size in enumerate([(1, 1), (17, 40), (300, 33), (2, 30000)]):
            path = os.path.join(work, f"noise-{number}.png")
            Image.fromarray(rng.randint(0, 256, size + (3,)).astype(numpy.uint8)).save(path)
            paths.append(path)
        for path in sorted(paths):
            array, picture = os.path.join(work, "out.npy"), os.path.join(work, "out.png")
            for output in (array, picture):
                command = [os.path.join(build, "run"), "tenon", "predict", "Identity()", path]
                subprocess.run(command + ["--output", output], check=True)
            image = Image.open(path)
            if image.mode.startswith("I"):
                wanted = (numpy.asarray(image).astype(numpy.int64) >> 8)[:, :, None]
                wanted = wanted.repeat(3, 2).astype(numpy.uint8)
            else:
                wanted = numpy.asarray(image.convert("RGB"))
            read = numpy.load(array)[0].transpose(1, 2, 0)
            written = numpy.asarray(Image.open(picture))
            good = numpy.array_equal(read, written) and read.shape == wanted.shape
            most = 2 if path.lower().endswith(("jpg", "jpeg")) else 0
            good = good and numpy.abs(read.astype(int) - wanted.astype(int)).max() <= most
            print(f"{'ok' if good else 'FAILED'}  {os.path.basename(path)}")
            bad += not good
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
