# SPDX-License-Identifier: MIT
"""Random programs that read and write tensors by index, beside PyTorch.

    PYTHON random_indexing.py [--count 4000] [--seed N] [--verbose] [--record FILE]

A program is a few lines of Python: x[...] read, assigned, changed in place, with views of views and
gradients, and indices of every kind (numbers, slices, None, Ellipsis, bool, lists, tensors, masks),
some of them wrong. It must give PyTorch's shapes, dtypes, values and gradients, or fail at the line
at which PyTorch fails. Tenon may refuse what PyTorch takes only in the cases of REFUSED
(bindings/python/tests/index_programs.py, which runs the programs). Prints the
number of programs by outcome, and each difference; then the exit status is 1.

--record writes the programs with PyTorch's results to a file instead; bindings/python/tests has
one, which test_indexing.py replays without PyTorch.

The module `tenon` must be importable (not for --record); `make oracle` does that."""

import argparse
import collections
import json
import os
import random
import sys
import time
import warnings

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bindings", "python", "tests"))
from index_programs import REFUSED, Tenon, numbers, run, differs

warnings.simplefilter("ignore")
torch.set_num_threads(1)

# A view of a tensor that got its history by an assignment, in PyTorch.
LEAF = "PyTorch takes a tensor for a leaf that is none"


# ---- programs ------------------------------------------------------------------------------------


def number(rng, size):
    """A place along a dimension of a size, seldom a wrong one."""
    if size == 0 or rng.random() < 0.03:
        return rng.randint(-size - 2, size + 1)
    return rng.randint(-size, size - 1)


def nested(rng, shape, make):
    return [nested(rng, shape[1:], make) for _ in range(shape[0])] if shape else make()


def some_slice(rng, size):
    start, stop = (
        "" if rng.random() < 0.4 else str(rng.randint(-size - 1, size + 1)) for _ in range(2)
    )
    step = rng.choice(["", "", ":1", ":2", ":3", ":"] + [":0", ":-1"] * (rng.random() < 0.1))
    return f"{start}:{stop}{step}"


def wrong(rng):
    return rng.choice(
        ["1.5", "'a'", "T(1.5)", "T([0.0])", "[0.5]", "U([1, 0])", "{}", "1j", "T([0]).int()"]
    )


def mask(rng, shape):
    if shape and rng.random() < 0.04:
        shape = shape[:-1] + [shape[-1] + 1]
    return f"T({nested(rng, shape, lambda: rng.random() < 0.5)}, 'bool')"


def part(rng, sizes, common):
    """One part of an index of dimensions with these sizes, and how many of them it uses."""
    size = sizes[0]
    kind = rng.choices(
        ["number", "slice", "tensor", "list", "mask", "zero-dim", "wrong"],
        [25, 30, 20, 8, 9, 4, 0.8],
    )[0]
    if kind == "number":
        return str(number(rng, size)), 1
    if kind == "slice":
        return some_slice(rng, size), 1
    if kind == "tensor":
        data = nested(rng, rng.choice(common), lambda: number(rng, size))
        return f"T({data}, 'int64')", 1
    if kind == "list":
        if rng.random() < 0.15:
            return str([rng.random() < 0.5 for _ in range(size)]), 1
        length = rng.choice([0, 1, 2, 2, 3])
        return str([number(rng, size) for _ in range(length)]), 1
    if kind == "mask":
        count = min(len(sizes), rng.choice([1, 1, 2, 3]))
        return mask(rng, list(sizes[:count])), count
    if kind == "zero-dim":
        return f"T({number(rng, size)}, 'int64')", 1
    return wrong(rng), 1


def index(rng, shape):
    """The text of an index of a tensor with this shape."""
    last = rng.choice([1, 2, 3])
    common = rng.choice([[[last]], [[last]], [[last], [2, last]], [[1], [last]], [[]], [[0]]])
    sizes, parts, at = list(shape), [], 0
    stop = rng.randint(0 if rng.random() < 0.1 else 1, max(len(sizes), 1))
    while at < len(sizes) and len(parts) < stop:
        text, used = part(rng, sizes[at:], common)
        parts.append(text)
        at += used
    if parts and rng.random() < 0.1:
        # from the end: what comes after ... belongs to the last dimensions
        parts.insert(rng.randint(0, len(parts)), "...")
    for word, share in (("None", 0.15), ("True", 0.03), ("False", 0.02), ("0", 0.01)):
        if rng.random() < share:
            parts.insert(rng.randint(0, len(parts)), word)
    if not parts:
        parts = [rng.choice(["...", "()", "None", ":", "True"])]
    return ", ".join(parts)


def value(rng, result, dtype):
    """What is assigned to a selection with the shape `result`; None if that is not known."""
    if result is None or rng.random() < 0.35:
        return rng.choice(["3", "-2", "1.5", "True", "7", "0"] + ["1j", "None", "'a'"] *
                          (rng.random() < 0.05))
    shape = list(result)
    for d in range(len(shape)):
        if rng.random() < 0.2:
            shape[d] = 1
    shape = shape[rng.choice([0, 0, 0, 1, 2]):]
    shape = [1] * rng.choice([0, 0, 0, 0, 1, 2]) + shape
    if shape and rng.random() < 0.04:
        shape[rng.randrange(len(shape))] += 1
    if rng.random() < 0.06:
        dtype = rng.choice(["float32", "int64", "bool"])
    name = rng.choice(["w", "v"]) if dtype == "float64" else "v"
    return f"{name}({shape}, '{dtype}')"


def shape_of(program):
    """The shape of y after a program, by PyTorch; None if it fails."""
    outcome = run(program, Torch())
    return outcome["shapes"].get("y") if outcome["failed"] is None else None


def a_program(rng):
    shape = [rng.choice([1, 2, 2, 3, 3, 4, 0] if rng.random() < 0.2 else [1, 2, 3, 3, 4])
             for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 3, 3, 4, 5]))]
    dtype = rng.choice(["float64", "float64", "float64", "int64", "float32", "bool"])
    grad = dtype == "float64" and rng.random() < 0.7
    lines = [f"x = X({shape}, '{dtype}', {grad})"]
    # y is no leaf, so that it may be changed; seldom it is the leaf, which is an error
    lines.append("y = x" if not grad or rng.random() < 0.1 else "y = x * 1.0")
    if len(shape) > 1 and rng.random() < 0.2:
        lines.append("y = y.transpose(0, 1)")
        shape[0], shape[1] = shape[1], shape[0]
    for _ in range(rng.choice([1, 1, 2, 3])):
        place = index(rng, shape)
        kind = rng.choice(["get", "get", "set", "set", "set", "add", "view"])
        if kind == "get":
            lines.append(f"y = y[{place}]")
            shape = shape_of(lines)
            if shape is None or sum(1 for _ in shape) > 7:
                break
            continue
        after = run(lines + [f"y = y[{place}]"], Torch())
        result = after["shapes"].get("y") if after["failed"] is None else None
        given = value(rng, result, dtype)
        if kind == "set":
            lines.append(f"y[{place}] = {given}")
        elif kind == "add":
            lines.append(f"y[{place}] {rng.choice(['+=', '*=', '-='])} {given}")
        else:
            lines += [f"z = y[{place}]", f"z {rng.choice(['+=', '*='])} {given}"]
    return lines


# ---- PyTorch -------------------------------------------------------------------------------------


class Torch:
    """What the names in a program mean in PyTorch."""

    def make(self, shape, dtype, first):
        data = numbers(shape, dtype, first)
        return torch.tensor(data, dtype=getattr(torch, dtype)).reshape(shape).clone()

    def index(self, data, dtype):
        return torch.tensor(data, dtype=getattr(torch, dtype) if dtype else None)

    def gradients(self, y, leaves):
        weights = self.make(list(y.shape), "float64", 3)
        return torch.autograd.grad((y * weights).sum(), leaves, allow_unused=True)

    def read(self, y):
        return [str(y.dtype).split(".")[1], list(y.shape), y.detach().flatten().tolist()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--record", default="")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    if options.record:
        with open(options.record, "w", encoding="utf-8") as file:
            written = 0
            while written < options.count:
                program = a_program(rng)
                found = run(program, Torch())
                if "leaf" in found["message"] and ", False)" in program[0]:
                    continue
                row = json.dumps([program, found["failed"], found["values"]])
                if len(row) < 700:  # PyTorch's results of larger tensors would fill the file
                    written += file.write(row + "\n") > 0
        return 0
    print(f"seed {options.seed}, {options.count} programs of indices")
    count, bad, own = collections.Counter(), 0, Tenon()
    for _ in range(options.count):
        program = a_program(rng)
        expected, got = run(program, Torch()), run(program, own)
        what = differs(expected["failed"], expected["values"], got)
        if what and "leaf" in expected["message"] and ", False)" in program[0]:
            what = LEAF
        if what is None:
            count["equal" if expected["failed"] is None else "refused by both"] += 1
        elif what in REFUSED.values():
            count["refused: " + what] += 1
        elif what is LEAF:
            count[LEAF] += 1
        else:
            count["DIFFERENT"] += 1
            bad += 1
            if bad <= 20 or options.verbose:
                print("\n    ".join(["DIFFERENT"] + program + [what, expected["message"],
                                                                 got["message"]]))
    for what, n in count.most_common():
        print(f"{n:7} {what}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
