# SPDX-License-Identifier: MIT
"""Layers: nn.Linear(784, 10) and nn.Sequential(a, b) make modules of these types. Module is the
class from which networks that are written in Python are derived; functional and init have the
functions of these names."""

import inspect as _inspect

from .. import _api
from .._define import Network as Module
from .._library import lib as _lib
from .._make import parameter as Parameter
from .._module import Module as _Any, make as _make
from .._train import LAYERS as _LAYERS, names as _names
from . import functional, init

__all__ = ["Module", "Parameter", "functional", "init"]
_types = {}


class _Type(type):
    """The class of the names of layers: a call makes a module, and isinstance(module, nn.Linear)
    compares the type."""

    def __call__(cls, *args, **kwargs):
        return _make(cls.__name__, args, kwargs)

    def __instancecheck__(cls, value):
        return isinstance(value, _Any) and value.type == cls.__name__

    def __dir__(cls):
        return ["__call__", "__doc__", "__name__"]


class _Default:
    """A default in the words of a layer's options, for help()."""

    def __init__(self, words):
        self.words = words

    def __repr__(self):
        return self.words


def _described(name):
    """Returns the text and the signature that help() shows of a layer."""
    import ctypes as c

    found = _lib.tn_registry_find(_LAYERS, name.encode())
    layer = c.cast(found, c.POINTER(_api.tn_layer_def)).contents
    lines, parameters, i = [(layer.help or b"").decode()], [], 0
    if layer.options:
        lines.append("")
    while layer.options and layer.options[i].kind != _api.TN_OPTION_KIND_END:
        row = layer.options[i]
        option, words = row.name.decode(), (row.help or b"").decode()
        needed = bool(row.flags & _api.TN_OPTION_REQUIRED)
        default = "None" if row.def_ is None else row.def_.decode()
        lines.append(f"    {option}: {words}" + ("" if needed else f" (default {default})"))
        after = bool(parameters) and parameters[-1].default is not _inspect.Parameter.empty
        kind = _inspect.Parameter.POSITIONAL_OR_KEYWORD
        if option.isidentifier() and not (needed and after):
            parameters.append(_inspect.Parameter(
                option, kind, default=_inspect.Parameter.empty if needed else _Default(default)))
        i += 1
    return "\n".join(lines).strip(), _inspect.Signature(parameters)


def __getattr__(name):
    found = _types.get(name)
    if found is None:
        if name.startswith("_") or name not in _names(_LAYERS):
            raise AttributeError(f"nn: no layer has the name {name}")
        text, signature = _described(name)
        found = _types[name] = _Type(name, (), {"__doc__": text, "__signature__": signature,
                                                "__module__": "tenon.nn"})
    return found


def __dir__():
    return sorted(__all__ + _names(_LAYERS))
