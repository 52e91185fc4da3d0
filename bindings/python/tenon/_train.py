# SPDX-License-Identifier: MIT
"""Optimizers and schedules."""

import ctypes as c

from . import _api
from ._library import Scope, check, checked, encode, lib, owner, text_of
from ._module import Module
from ._tensor import addresses, borrow


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


class Optimizer:
    """An optimizer: Optimizer(module or tensors, "Adam(lr=1e-3)") or optim.Adam(net, lr=1e-3)."""

    __slots__ = ("_ptr", "_owner", "__weakref__")

    def __init__(self, parameters, spec):
        if isinstance(parameters, Module):
            parameters = parameters.parameters()
        parameters = list(parameters)
        self._ptr = checked(lib.tn_optimizer_parse(addresses(parameters), len(parameters),
                                                   encode(spec)))
        self._owner = _OptimizerOwner(self._ptr)

    def step(self):
        with Scope():
            check(lib.tn_optimizer_step(self._ptr))

    def zero_grad(self):
        check(lib.tn_optimizer_zero_grad(self._ptr))

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
        if isinstance(parameters, Module):
            parameters = parameters.parameters()
        parameters = list(parameters)
        words = ", ".join(f"{n}={written(v)}" for n, v in options.items())
        check(lib.tn_optimizer_add_group(self._ptr, addresses(parameters), len(parameters),
                                         encode(words)))

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
    """A schedule of learning rates: Scheduler(optimizer, "StepLR(step_size=10)") or
    optim.StepLR(optimizer, step_size=10)."""

    __slots__ = ("_ptr", "_owner", "__weakref__")

    def __init__(self, optimizer, spec):
        self._ptr = checked(lib.tn_scheduler_parse(optimizer._ptr, encode(spec)))
        self._owner = _SchedulerOwner(self._ptr)

    def step(self, metric=None):
        """Sets the learning rates of the next step. `metric` is the number that some schedules
        watch, such as the validation loss."""
        if metric is None:
            check(lib.tn_scheduler_step(self._ptr))
        else:
            check(lib.tn_scheduler_step_with(self._ptr, float(metric)))


def names(kind):
    """Returns the names of everything that is registered of a kind of descriptor."""
    return [lib.tn_registry_name(kind, i).decode() for i in range(lib.tn_registry_count(kind))]


LAYERS = _api.TN_KIND_tn_layer_def
OPTIMIZERS = _api.TN_KIND_tn_optimizer_def
SCHEDULERS = _api.TN_KIND_tn_scheduler_def
