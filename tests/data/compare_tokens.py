#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# compare_tokens.py FOLDER: compares TextBPE with GPT2Tokenizer of transformers, for the vocabulary
# in FOLDER: a random text in many scripts, and each code point once. `make data-tokens` runs it.
import os
import random
import sys
import tempfile

import tenon.data
import transformers

RANGES = ((0, 0x250), (0x370, 0x700), (0x900, 0xA00), (0x1C80, 0x1D00), (0x2000, 0x2100),
          (0x3000, 0x3100), (0x4E00, 0x4F00), (0x1F300, 0x1F700), (0x1680, 0x1681))
COMMON = " \n\t'stremld  aeiou  12 \u00a0\u3000!?.-"


def mixed(count):
    random.seed(3)
    rare = [chr(c) for low, high in RANGES for c in range(low, high)]
    pieces = [random.choice(rare if random.random() < 0.35 else COMMON) for _ in range(count)]
    for _ in range(20):
        pieces.insert(random.randrange(count), "<|endoftext|>")
    return "".join(pieces)


def every():
    points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    return "".join(chr(c) + ("a" if c % 3 else " ") for c in points)


def compare(folder, name, text):
    theirs = transformers.GPT2Tokenizer(os.path.join(folder, "vocab.json"),
                                        os.path.join(folder, "merges.txt"))(text)["input_ids"]
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        spec = f'TextBPE("{file.name}", "{folder}", length={len(theirs) - 1})'
        inputs, targets = tenon.data.Dataset(spec)[0]
    ours = inputs.tolist() + targets.tolist()[-1:]
    print(f"{name}: {len(theirs)} tokens, {'equal' if ours == theirs else 'DIFFERENT'}")
    return ours == theirs


def main():
    folder = sys.argv[1]
    good = compare(folder, "a random text", mixed(200000))
    good = compare(folder, "every code point", every()) and good
    sys.exit(not good)


main()
