#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# make_sounds.py FOLDER: sounds.h in the folder, with what torchaudio's resample makes of the sounds
# of test_wav.c.
import os
import sys
import textwrap

import torch
import torchaudio

FRAMES = 61


def main():
    with open(os.path.join(sys.argv[1], "sounds.h"), "w", encoding="utf-8") as out:
        out.write("/* SPDX-License-Identifier: MIT\n *\n"
                  f" * Numbers of torchaudio {torchaudio.__version__.split('+')[0]}, written by "
                  "make_sounds.py. */\n\n"
                  f"enum {{ FRAMES = {FRAMES} }};\n\n"
                  "/* A sound of two channels, byte i is 37 * i % 251, at another rate. */\n"
                  "static const struct resampled {\n    int64_t from, to, count;\n"
                  "    double values[2 * 200];\n} resampled[] = {\n")
        bytes_ = torch.arange(2 * FRAMES) * 37 % 251
        sound = ((bytes_.double() - 128) / 128).reshape(FRAMES, 2).T
        for source, to in ((8000, 16000), (44100, 16000), (16000, 44100), (48000, 8000), (7, 5)):
            values = torchaudio.functional.resample(sound, source, to)
            text = textwrap.fill(", ".join(f"{v:.9g}" for v in values.flatten().tolist()), 92,
                                 initial_indent=" " * 8, subsequent_indent=" " * 8)
            out.write(f"    {{ {source},\n      {to},\n      {values.shape[1]},\n"
                      f"      {{\n{text} }} }},\n")
        out.write("};\n")


main()
