# SPDX-License-Identifier: MIT
"""Less memory in training, like torch.utils.checkpoint: functions whose intermediate tensors are
not kept but computed again by backward."""

from . import _api
from ._library import Scope, callback, check, held, hold, lib, release
from ._tensor import Tensor, addresses, borrow


class _Call:
    """What the callback needs: the function, its arguments with the places of the tensors, and, for
    a moment, the result."""

    __slots__ = ("function", "args", "kwargs", "tensors", "result")

    def __init__(self, function, args, kwargs):
        self.tensors = []
        self.function = function
        self.args = [self._place(value) for value in args]
        self.kwargs = {name: self._place(value) for name, value in kwargs.items()}
        self.result = None

    def _place(self, value):
        """Returns (value, None), or (None, number) for a tensor. The library keeps the tensors."""
        if not isinstance(value, Tensor):
            return value, None
        self.tensors.append(value)
        return None, len(self.tensors) - 1

    def run(self, tensors):
        def given(row):
            return row[0] if row[1] is None else tensors[row[1]]

        return self.function(*[given(row) for row in self.args],
                             **{name: given(row) for name, row in self.kwargs.items()})


@callback(lib.tn_recompute_call.argtypes[0])
def _function(user, inputs, outputs):
    call, count = held(user)
    call.result = call.run([borrow(inputs[i]) for i in range(count)])
    if call.tensors is None:  # the second run: the library has what it needs
        call.result = None


def checkpoint(function, *args, use_reentrant=False, preserve_rng_state=True, **kwargs):
    """Returns function(*args, **kwargs) without keeping the intermediate tensors for backward,
    which calls the function again. It must do the same in both calls. Gradients flow to tensors
    among the arguments, not to those inside of lists, and to tensors that the function uses
    otherwise. In the second call the random numbers are the same unless preserve_rng_state is
    False."""
    if use_reentrant:
        raise ValueError("checkpoint: use_reentrant: not available, got True; expected False")
    call = _Call(function, args, kwargs)
    tensors = call.tensors
    number = hold((call, len(tensors)))
    flags = 0 if preserve_rng_state else _api.TN_RECOMPUTE_NEW_RANDOM
    try:
        with Scope():
            check(lib.tn_recompute_call(_function, number, release, addresses(tensors),
                                         len(tensors), None, 0, flags))
        return call.result
    finally:
        call.tensors = call.result = None  # the graph must not refer to itself


def checkpoint_sequential(functions, segments, input, use_reentrant=False,
                          preserve_rng_state=True):
    """Calls the modules of a Sequential, or functions, one after the other in `segments` parts.
    Only the inputs of the parts, and the last part as a whole, are kept for backward."""
    rows = list(functions)
    if not 1 <= segments <= max(len(rows), 1):
        raise ValueError(f"checkpoint_sequential: segments: out of range, got {segments}; "
                         f"expected 1 to {max(len(rows), 1)}")

    def part(first, end):
        def run(x):
            for row in rows[first:end]:
                x = row(x)
            return x

        return run

    size = len(rows) // segments
    for i in range(segments - 1):
        input = checkpoint(part(i * size, (i + 1) * size), input, use_reentrant=use_reentrant,
                           preserve_rng_state=preserve_rng_state)
    return part(size * (segments - 1), len(rows))(input)
