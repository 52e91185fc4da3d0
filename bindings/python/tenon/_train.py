# SPDX-License-Identifier: MIT
"""Optimizers and schedulers."""

import ctypes as c

from . import _api
from ._library import (NONE, Scope, callback, check, checked, encode, held, hold, lib, owner,
                       release, text_of)
from ._module import Module, State
from ._tensor import addresses, borrow, to_scope


def written(value):
    """Returns a value in the syntax of specs."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(written(v) for v in value) + "]"
    return repr(value)


def spec_of(type_, args, kwargs):
    words = [written(v) for v in args] + [f"{n}={written(v)}" for n, v in kwargs.items()]
    return f"{type_}({', '.join(words)})"


_OptimizerOwner = owner(lib.tn_optimizer_drop)
_SchedulerOwner = owner(lib.tn_scheduler_drop)


@callback(lib.tn_optimizer_step_with.argtypes[1], failed=0)
def _closure(user):
    loss = held(user)()
    return NONE if loss is None else to_scope(loss)


def _given(parameters):
    """Returns the tensors and their names (None: none) of a module, of tensors, or of pairs of a
    name and a tensor."""
    if isinstance(parameters, Module):
        parameters = parameters.named_parameters()
    rows = list(parameters)
    pairs = [row for row in rows if isinstance(row, tuple)]
    if not pairs:
        return addresses(rows), None, len(rows)
    names = (c.c_char_p * len(rows))(
        *[row[0].encode() if isinstance(row, tuple) else None for row in rows])
    tensors = [row[1] if isinstance(row, tuple) else row for row in rows]
    return addresses(tensors), names, len(rows)


def _nested(entries):
    """Returns the entries of a saved optimizer as in PyTorch, {"state": {0: ...}, ...}."""
    state, groups = {}, {}
    for name, value in entries.items():
        kind, index, key = name.split(".", 2)
        where = state if kind == "state" else groups
        where.setdefault(int(index), {})[key] = value
    return {"state": state, "param_groups": [groups[i] for i in sorted(groups)]}


def _flat(values):
    """The opposite of _nested()."""
    if "param_groups" not in values:
        return values
    rows = [(f"state.{i}", row) for i, row in values.get("state", {}).items()]
    rows += [(f"param_groups.{i}", row) for i, row in enumerate(values["param_groups"])]
    return {f"{prefix}.{key}": value for prefix, row in rows for key, value in row.items()}


class Optimizer:
    """An optimizer: Optimizer(module or tensors, "Adam(lr=1e-3)") or optim.Adam(net, lr=1e-3). In
    place of tensors there may be pairs of a name and a tensor, as of named_parameters()."""

    __slots__ = ("_ptr", "_owner", "__weakref__")

    def __init__(self, parameters, spec):
        self._ptr = checked(lib.tn_optimizer_parse_named(*_given(parameters), encode(spec)))
        self._owner = _OptimizerOwner(self._ptr)

    def step(self, closure=None):
        """Takes a step. `closure` computes the loss and its gradients; its first result is then
        returned."""
        with Scope():
            if closure is None:
                check(lib.tn_optimizer_step(self._ptr))
                return None
            number = hold(closure)
            try:
                loss = checked(lib.tn_optimizer_step_with(self._ptr, _closure, number))
                return None if loss == NONE else borrow(loss)
            finally:
                release(number)

    def zero_grad(self, set_to_none=True):
        zero = lib.tn_optimizer_zero_grad if set_to_none else lib.tn_optimizer_zero_grad_in_place
        check(zero(self._ptr))

    def state_dict(self):
        """Returns the state as PyTorch's optimizers do: {"state": {0: {"exp_avg": ...}, ...},
        "param_groups": [{"lr": ..., "params": [0, ...]}, ...]}. The tensors share memory with the
        optimizer's."""
        with Scope(), State(checked(lib.tn_optimizer_save_state(self._ptr))) as state:
            return _nested(state.read())

    def load_state_dict(self, values):
        """Loads a state of state_dict(), or a file of PyTorch that tenon.load() has read."""
        with Scope(), State(checked(lib.tn_state_new())) as state:
            state.write(_flat(values))
            check(lib.tn_optimizer_load_state(self._ptr, state.pointer))

    @property
    def param_groups(self):
        """The options of each group with its parameters, as dictionaries. They are copies: options
        are changed by optimizer["lr"] = 0.1, or set()."""
        parameters = self.parameters
        groups = self.state_dict()["param_groups"]
        for group in groups:
            group["params"] = [parameters[i] for i in group["params"]]
        return groups

    def __getitem__(self, option):
        """Returns a numeric option of the first group: optimizer["lr"], optimizer["betas[1]"]."""
        return self.get(option)

    def __setitem__(self, option, value):
        """Sets a numeric option in all groups."""
        check(lib.tn_optimizer_set(self._ptr, -1, option.encode(), value))

    def get(self, option, group=0):
        found = c.c_double()
        check(lib.tn_optimizer_get(self._ptr, group, option.encode(), c.byref(found)))
        return found.value

    def set(self, option, value, group):
        check(lib.tn_optimizer_set(self._ptr, group, option.encode(), value))

    def add_group(self, parameters, **options):
        """Adds a group of parameters. Options that are not given have the optimizer's defaults."""
        words = ", ".join(f"{n}={written(v)}" for n, v in options.items())
        check(lib.tn_optimizer_add_group_named(self._ptr, *_given(parameters), encode(words)))

    @property
    def groups(self):
        """The options of each group, as text."""
        return [text_of(lib.tn_optimizer_options, self._ptr, i)
                for i in range(lib.tn_optimizer_group_count(self._ptr))]

    @property
    def parameters(self):
        return [borrow(lib.tn_optimizer_parameter(self._ptr, i))
                for i in range(lib.tn_optimizer_count(self._ptr))]

    def state(self, index):
        """Returns the state tensors of a parameter by name."""
        names = [lib.tn_optimizer_state_name(self._ptr, index, i)
                 for i in range(lib.tn_optimizer_state_count(self._ptr, index))]
        return {n.decode(): borrow(lib.tn_optimizer_state(self._ptr, index, n)) for n in names}

    def steps(self, index):
        return lib.tn_optimizer_steps(self._ptr, index)

    def __repr__(self):
        return text_of(lib.tn_optimizer_spec, self._ptr)


class Scheduler:
    """A scheduler of learning rates: Scheduler(optimizer, "StepLR(step_size=10)") or
    optim.StepLR(optimizer, step_size=10)."""

    __slots__ = ("_ptr", "_owner", "_type", "_takes_number", "__weakref__")

    def __init__(self, optimizer, spec):
        self._ptr = checked(lib.tn_scheduler_parse(optimizer._ptr, encode(spec)))
        self._type = spec.split("(")[0].strip()
        found = lib.tn_registry_find(SCHEDULERS, encode(self._type))
        flags = c.cast(found, c.POINTER(_api.tn_scheduler_def)).contents.flags if found else 0
        # The second goes to the step that the number names.
        self._takes_number = bool(flags & _api.TN_SCHEDULER_METRIC) or (
            self._type == "CosineAnnealingWarmRestarts")
        self._owner = _SchedulerOwner(self._ptr)

    def step(self, metric=None):
        """Sets the learning rates of the next step. `metric` is the number that some schedulers
        watch, such as the validation loss, or a tensor that has it. Schedulers that watch none
        refuse it, such as the number of an epoch."""
        if metric is None:
            check(lib.tn_scheduler_step(self._ptr))
        elif not self._takes_number:
            raise TypeError(f"{self._type}: step: the scheduler uses no number, got {metric}; "
                            "expected step(), once for each epoch or step")
        else:
            check(lib.tn_scheduler_step_with(self._ptr, float(metric)))


def names(kind):
    """Returns the names of everything that is registered of a kind of descriptor."""
    return [lib.tn_registry_name(kind, i).decode() for i in range(lib.tn_registry_count(kind))]


LAYERS = _api.TN_KIND_tn_layer_def
OPTIMIZERS = _api.TN_KIND_tn_optimizer_def
SCHEDULERS = _api.TN_KIND_tn_scheduler_def
