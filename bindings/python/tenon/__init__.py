# SPDX-License-Identifier: MIT
"""The neural-network runtime Tenon for Python. docs/guides/python.md shows how to use it.

Operators are functions of this module and methods of tensors: tenon.relu(x), x.relu(). The layers
are in nn, the optimizers and schedulers in optim, datasets and loaders in data; amp and checkpoint
have the scaler of gradients and calls that need less memory."""

from ._library import ERRORS as _ERRORS, TenonError
from ._tensor import Hook, Tensor
from ._dlpack import from_dlpack
from ._make import (arange, empty, empty_like, eye, from_memory, from_numpy, full, full_like, grad,
                    gradcheck, linspace, manual_seed, ones, ones_like, parameter, rand, rand_like,
                    randint, randn, randn_like, randperm, tensor, zeros, zeros_like)
from ._context import (autocast, device, devices, enable_grad, inference_mode,
                       is_autocast_enabled, is_grad_enabled, no_grad, set_default_device,
                       synchronize, version)
from ._module import Module, init, load, save
from ._train import Optimizer, Scheduler
from ._define import Layer, OptimizerRule, option
from ._operator import Meta, Operator, View, kernel
from ._observer import Event, ModuleEvent, Observer
from ._values import DTYPES as _DTYPES
from . import _ops, amp, checkpoint, data, nn, optim

__version__ = version()

globals().update(_ERRORS)
globals().update({name: name for name in _DTYPES.values()})  # tenon.float32 is "float32"
globals().pop("bool", None)  # do not shadow Python's bool


def __getattr__(name):
    found = None if name.startswith("_") else _ops.function(name)
    if found is None:
        raise AttributeError(f"tenon has no attribute {name}, and no operator has this name")
    return found


def __dir__():
    from . import _api, _compose, _signatures

    return sorted(set(globals()) | set(_api.OPERATORS) | set(_compose.FUNCTIONS)
                  | set(_signatures.ROWS))
