#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Several indices and masks:  PYTHON-WITH-TORCH make_index_several.py > index_several.txt
from cases import *


def at(data, **more):
    return n(data=data, dtype=I64, **more)


def selected(indices, dims, ndim, other):
    """PyTorch's index, with `other` for each dimension that has none."""
    if dims is None:
        return tuple(indices)
    found = [other] * ndim
    for i, d in zip(indices, dims):
        found[d] = i
        if i.dtype == BOOL:
            found[d + 1 : d + i.ndim] = []
    return tuple(found)


def pick(name, a, indices, dims=None):
    more = {} if dims is None else {"dims": dims}
    every = slice(None)
    case("index", name, lambda t, *i: t[selected(i, dims, t.ndim, every)], [a] + indices, **more)


def put_at(name, a, values, indices, dims, add):
    more = {} if dims is None else {"dims": dims}
    case(
        "index_put",
        name,
        lambda t, v, *i: torch.ops.aten.index_put(t, selected(i, dims, t.ndim, None), v, add),
        [a, values] + indices,
        **({"accumulate": True} if add else {}),
        **more
    )


def mask(data):
    return n(data=data, dtype=BOOL)


for d in FLOATS + (I64, I32, BOOL, torch.int8, C64):
    pick(NAMES[d], x(3, 4, dtype=d), [at([0, -1, 1]), at([3, 0, -4])])
    pick("mask-" + NAMES[d], x(3, 4, dtype=d), [mask([True, False, True])])
in_rows, in_columns = [True, False, True], [False, True, True, False]
in_both = [[True, False, True, False], [False] * 4, [True, True, False, True]]
for name, a, indices, dims in [
    ("rows", x64(4, 3), [at([2, -4, 2])], None),
    ("columns", x64(4, 3), [at([2, -3])], [1]),
    ("together", x64(4, 3, 2), [at([[1], [3]]), at([0, -1, 1])], None),
    ("middle", x64(2, 3, 4, 2), [at([0, -1, 1]), at([3, 0, 0])], [1, 2]),
    ("apart", x64(3, 2, 4, 2), [at([0, -1, 1]), at([3, 0, 0])], [0, 2]),
    ("apart-last", x64(2, 3, 2, 4), [at([[0], [2]]), at([3, 0, 0])], [1, -1]),
    ("three", x64(2, 3, 2), [at([0, 1]), at(2), at([-1, 0])], None),
    ("one-element", x64(3, 2), [at(-1)], None),
    ("int32", x64(3, 2), [n(data=[-1, 0], dtype=I32)], None),
    ("transposed", x(3, 4, order=(1, 0)), [at([2, 0])], [1]),
    ("expanded", x(1, 3, expand=(4, 3)), [at([1, 2]), at([0, 2])], None),
    ("none", x(3, 2), [n(0, dtype=I64)], None),
    ("none-together", x(3, 2), [n(0, dtype=I64), n(1, dtype=I64, low=0)], None),
    ("no-elements", x(0, 2), [n(0, dtype=I64)], None),
    ("no-rest", n(3, 0), [at([0, -1])], None),
    ("masks", x64(3, 4), [mask(in_both)], None),
    ("masks-middle", x64(2, 3, 4, 2), [mask(in_both)], [1]),
    ("mask-and-index", x64(3, 4, 2), [mask(in_rows), at([1, 0])], None),
    ("mask-and-index-apart", x64(3, 2, 4), [mask(in_rows), at([3, 0])], [0, 2]),
    ("mask-last", x64(2, 4), [mask(in_columns)], [1]),
    ("mask-nothing", x64(3, 2), [mask([False] * 3)], None),
    ("mask-all", x64(3, 2), [mask([[True] * 2] * 3)], None),
]:
    pick(name, a, indices, dims)
for add in (False, True):
    name = "add-" if add else ""
    for word, a, values, indices, dims in [
        ("columns", x64(4, 3), x64(4, 2), [at([2, -3])], [1]),
        ("middle", x64(2, 3, 4, 2), x64(2, 3, 2), [at([0, -1, 1]), at([3, 0, 1])], [1, 2]),
        ("apart", x64(3, 2, 4, 2), x64(3, 2, 2), [at([0, -1, 1]), at([3, 0, 1])], [0, 2]),
        ("mask", x64(3, 4), x64(2, 4), [mask(in_rows)], None),
        ("mask-number", x64(3, 4), x64(), [mask(in_rows)], None),
        ("masks", x64(3, 4), x64(5), [mask(in_both)], None),
        ("masks-middle", x64(2, 3, 4, 2), x64(2, 5, 2), [mask(in_both)], [1]),
        ("mask-and-index", x64(3, 2, 4), x64(2, 2), [mask(in_rows), at([3, 0])], [0, 2]),
        ("mask-nothing", x64(3, 2), x64(0, 2), [mask([False] * 3)], None),
        ("mask-row", x(3, 2), x(2), [mask([False, True, True])], None),
    ]:
        put_at(name + word, a, values, indices, dims, add)
for d in FLOATS + (I64, I32, BOOL, torch.int8, C64):
    put_at("mask-" + NAMES[d], x(3, 4, dtype=d), x(2, 4, dtype=d), [mask(in_rows)], None, False)
    put_at("columns-" + NAMES[d], x(3, 4, dtype=d), x(2, dtype=d), [at([3, -3])], [1], False)

for d in (I64, C64, BOOL):
    put_at(
        "add-" + NAMES[d],
        x(3, 2, dtype=d),
        x(3, dtype=d),
        [at([0, 2, 0]), at([1, -1, 1])],
        None,
        True,
    )
    put_at("add-mask-" + NAMES[d], x(3, 2, dtype=d), x(2, dtype=d), [mask(in_rows)], None, True)

# Where nothing is selected, no index is out of range.
pick("nothing-of-some", n(3, 2), [n(0, dtype=I64), at([[7], [8]])])
pick("some-of-nothing", n(3, 0, 2), [at([7]), at([-9])], [0, 2])
put_at("nothing-of-some", n(3, 2), n(), [n(0, dtype=I64), at([[7], [8]])], None, False)

for name, indices, dims in [
    ("high", [[0, 1], [0, 2]], None),
    ("low", [[0, 1], [0, -3]], [0, 1]),
    ("last", [[4]], [2]),
    ("mask-and-high", [[True, False, True], [0, 5]], [0, 2]),
    ("too-many", [[0]] * 4, None),
    ("no-broadcast", [[0, 1], [0, 1, 1]], None),
    ("mask-size", [[True, False]], None),
    ("mask-place", [[True, False, True]], [1]),
    ("mask-too-far", [[0], [[True, False, True, True]] * 2, [0]], None),
]:
    a, more = torch.zeros(3, 2, 4), {} if dims is None else {"dims": dims}
    indices = [torch.tensor(i) for i in indices]

    def read(t, *i):
        return t[selected(i, dims, 3, slice(None))]

    def write(t, v, *i):
        t[selected(i, dims, 3, slice(None))] = v

    refused("index-" + name, "index", read, a, *indices, **more)
    refused("index_put-several-" + name, "index_put", write, a, torch.ones(()), *indices, **more)
