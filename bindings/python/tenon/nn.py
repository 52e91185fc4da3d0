# SPDX-License-Identifier: MIT
"""Layers: nn.Linear(784, 10) and nn.Sequential(a, b) make modules of these types."""

from ._module import make as _make
from ._train import LAYERS as _LAYERS, names as _names


def __getattr__(name):
    if name.startswith("_") or name not in _names(_LAYERS):
        raise AttributeError(f"nn: no layer has the name {name}")

    def make(*args, **kwargs):
        return _make(name, args, kwargs)

    make.__name__ = make.__qualname__ = name
    return make


def __dir__():
    return _names(_LAYERS)
