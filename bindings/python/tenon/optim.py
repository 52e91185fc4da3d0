# SPDX-License-Identifier: MIT
"""Optimizers and schedulers: optim.Adam(net, lr=1e-3), optim.StepLR(optimizer, 10)."""

from ._train import (OPTIMIZERS as _OPTIMIZERS, SCHEDULERS as _SCHEDULERS, Optimizer as _Optimizer,
                     Scheduler as _Scheduler, names as _names, spec_of as _spec_of)


def __getattr__(name):
    for kind, class_ in ((_OPTIMIZERS, _Optimizer), (_SCHEDULERS, _Scheduler)):
        if not name.startswith("_") and name in _names(kind):
            break
    else:
        raise AttributeError(f"optim: no optimizer and no scheduler has the name {name}")

    def make(target, *args, **kwargs):
        return class_(target, _spec_of(name, args, kwargs))

    make.__name__ = make.__qualname__ = name
    return make


def __dir__():
    return _names(_OPTIMIZERS) + _names(_SCHEDULERS)
