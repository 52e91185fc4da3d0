# SPDX-License-Identifier: MIT
"""Functions that fill a tensor with initial values: init.kaiming_uniform_(x, a=5 ** 0.5). They have
the names of the registered initializers, with _ at the end."""

from .. import _api
from .._module import init as _init
from .._train import names as _names, spec_of as _spec_of

_INITS = _api.TN_KIND_tn_init_def


def __getattr__(name):
    kind = name[:-1]
    if name.startswith("_") or not name.endswith("_") or kind not in _names(_INITS):
        raise AttributeError(f"nn.init: no function has the name {name}; there are "
                             + ", ".join(__dir__()))

    def fill(tensor, *args, **kwargs):
        return _init(tensor, _spec_of(kind, args, kwargs))

    fill.__name__ = fill.__qualname__ = name
    return fill


def __dir__():
    return sorted(name + "_" for name in _names(_INITS))
