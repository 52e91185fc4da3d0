# SPDX-License-Identifier: MIT
"""Runs the programs of tests/oracle/random_indexing.py: lines of Python that read and write tensors
by index. X(shape, dtype, grad) makes a tensor of known numbers, w(shape, dtype) one that requires a
gradient, v(shape, dtype) one that does not, T(data, dtype) and U(data) an index."""

import math

# What Tenon refuses and PyTorch takes: a part of the message, and why.
REFUSED = {
    "has two meanings": "a list of lists, which PyTorch 2.9 was to read in another way",
    "expected integers or bool, not both": "a list of bool and integers, or of floats",
    "more than one Ellipsis": "a second ..., to which PyTorch gives the size 0",
    "got uint8": "masks of uint8, which PyTorch calls deprecated",
    "expected none, since dimension": "a write of nothing, by an index of a size of 0",
    "written-to tensor partly share memory": "a tensor that is read and written in one step",
}


def numbers(shape, dtype, first):
    """Numbers of a shape in a list, all of which float32 has exactly."""
    data = [(first + i) % 11 - 4 for i in range(math.prod(shape))]
    if dtype == "bool":
        return [v % 3 == 0 for v in data]
    return data if dtype == "int64" else [v * 0.25 for v in data]


class Tenon:
    """What the names in a program mean in Tenon."""

    def __init__(self):
        import tenon

        self.tenon = tenon

    def make(self, shape, dtype, first):
        return self.tenon.tensor(numbers(shape, dtype, first), dtype=dtype).reshape(shape).clone()

    def index(self, data, dtype):
        return self.tenon.tensor(data, dtype=dtype)

    def gradients(self, y, leaves):
        weights = self.make(list(y.shape), "float64", 3)
        return self.tenon.grad((y * weights).sum(), leaves, allow_unused=True)

    def read(self, y):
        return [y.dtype, list(y.shape), y.detach().reshape([-1]).tolist()]


def run(program, library):
    """Runs a program: the line at which it failed (None: none) and the message, the shapes of x, y
    and z, and the dtypes, shapes and values of them and of the gradients of y."""
    leaves, made = [], []

    def leaf(shape, dtype, grad):
        found = library.make(shape, dtype, len(made))
        made.append(found)
        if grad:
            found.requires_grad_(True)
            leaves.append(found)
        return found

    names = {
        "X": leaf,
        "w": lambda shape, dtype: leaf(shape, dtype, True),
        "v": lambda shape, dtype: leaf(shape, dtype, False),
        "T": lambda data, dtype=None: library.index(data, dtype),
        "U": lambda data: library.index(data, "uint8"),
    }
    outcome = {"failed": None, "message": "", "shapes": {}, "values": {}}
    for at, line in enumerate(program):
        try:
            exec(line, names)
        except Exception as error:
            outcome["failed"], outcome["message"] = at, f"{type(error).__name__}: {error}"
            break
    tensors = {name: names[name] for name in "xyz" if name in names}
    outcome["shapes"] = {name: list(found.shape) for name, found in tensors.items()}
    if outcome["failed"] is not None:
        return outcome
    outcome["values"] = {name: library.read(found) for name, found in tensors.items()}
    if names["y"].requires_grad:
        try:
            found = library.gradients(names["y"], leaves)
        except Exception as error:
            outcome["values"]["gradients"] = "failed"
            outcome["message"] = f"{type(error).__name__}: {error}"
            return outcome
        for i, gradient in enumerate(found):
            outcome["values"][f"gradient {i}"] = (
                None if gradient is None else library.read(gradient))
    return outcome


def differs(failed, values, got):
    """Returns what differs from the line at which PyTorch failed and its values; None if nothing
    does, and a reason of REFUSED if that is why."""
    if got["failed"] is not None and got["failed"] != failed:
        for words, why in REFUSED.items():
            if words in got["message"]:
                return why
        return f"only Tenon fails, at line {got['failed']}: {got['message']}"
    if got["failed"] != failed:
        return f"only PyTorch fails, at line {failed}"
    for name, found in values.items():
        own = got["values"].get(name)
        if found is None and own is not None and not any(own[2]):
            continue  # no gradient, and one of zeros
        if own is None and found is not None and not any(found[2]):
            continue
        if own != found:
            return f"{name}: {own} {got['message']}, PyTorch's {found}"
    return None
