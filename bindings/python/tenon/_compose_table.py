# SPDX-License-Identifier: MIT
"""What the modules _compose_* share: the tables of their functions, by name, and calls."""

import builtins
import operator as _operator

FUNCTIONS = {}  # by name: functions of the module and methods of tensors
METHODS = {}    # methods only
NOT_METHODS = set()


def _named(*names, table=FUNCTIONS):
    def add(made):
        for name in names:
            table[name] = made
        return made

    return add


def _method(*names):
    return _named(*names, table=METHODS)


def _function(*names):
    NOT_METHODS.update(names)
    return _named(*names)


def _call(name, *args, **kwargs):
    from ._ops import function

    return function(name)(*args, **kwargs)


def _own(name, *args, **kwargs):
    """Calls an operator with its own arguments."""
    from ._ops import operator

    return operator(name).call(args, kwargs)


def _row_of(values):
    """Whole numbers that were given one by one or as a list."""
    if len(values) == 1 and not hasattr(values[0], "__index__"):
        values = values[0]
    return [_operator.index(v) for v in values]


def _dim(x, dim):
    count = builtins.max(x.ndim, 1)
    if not -count <= _operator.index(dim) < count:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, "
                         f"{count - 1}], but got {dim})")
    return dim % count
