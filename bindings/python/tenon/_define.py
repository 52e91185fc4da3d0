# SPDX-License-Identifier: MIT
"""Layers and optimizers that are written in Python, and options of all classes that Python
registers. Each class becomes a descriptor, which is registered once. All descriptors of a kind have
the same callbacks; the member `user` of the descriptor is a number that identifies the class."""

import copy
import ctypes as c
import inspect

from . import _api, _module
from ._library import callback, check, head, held, hold, lib, member, register
from ._module import Module, borrow_module, make
from ._tensor import borrow
from ._values import OPTION_KINDS, Pack

# ---- options -------------------------------------------------------------------------------------


class option:
    """An option of a layer, operator or optimizer, declared as an attribute of its class:
    `beta = option(1.0, "slope")`. option(int) has no default and is required;
    option(None, kind=int) may be None, which is its default."""

    def __init__(self, default, help="", kind=None):
        self.required = isinstance(default, type)
        python = default if self.required else type(default) if kind is None else kind
        self.default = None if self.required else default
        self.help = help
        self.kind = next((k for k in OPTION_KINDS if python in k.python), None)
        if self.kind is None:
            raise TypeError(f"option: wrong type, got {python.__name__}; expected bool, int, "
                            "float, complex, str, list or tuple")

    def written(self):
        """Returns the default in the syntax of specs."""
        from ._train import written

        return None if self.required else written(self.default).encode()


class Options:
    """The options of a class: their table for the library, and the struct that it describes."""

    def __init__(self, class_, with_size=False):
        self.rows = {name: value for base in reversed(class_.__mro__)
                     for name, value in vars(base).items() if isinstance(value, option)}
        fields = [("size", c.c_uint32)] if with_size else []
        fields += [("o_" + name, row.kind.ctype) for name, row in self.rows.items()]
        self.struct = type("Options", (c.Structure,), {"_fields_": fields or [("none", c.c_char)]})
        self.size = c.sizeof(self.struct) if self.rows else 0
        self.table = (_api.tn_option * (len(self.rows) + 1))()
        for place, (name, row) in zip(self.table, self.rows.items()):
            place.name = name.encode()
            place.def_ = row.written()
            place.help = row.help.encode()
            place.kind = row.kind.number
            place.flags = (_api.TN_OPTION_REQUIRED if row.required
                           else _api.TN_OPTION_OPTIONAL if row.default is None else 0)
            place.offset = getattr(self.struct, "o_" + name).offset

    def pointer(self):
        return c.cast(self.table, c.POINTER(_api.tn_option)) if self.rows else None

    def read(self, address):
        """Reads a struct of options in the library's memory; returns names and values."""
        if not self.rows:
            return {}
        if not address:
            return {name: row.default for name, row in self.rows.items()}
        stored = self.struct.from_address(address)
        return {name: row.kind.read(getattr(stored, "o_" + name))
                for name, row in self.rows.items()}

    def defaults(self, keep):
        made = self.struct()
        if self.rows:
            made.size = self.size
        for name, row in self.rows.items():
            if not row.required:
                setattr(made, "o_" + name, row.kind.write(row.default, keep))
        keep.append(made)
        return made


def _overrides(class_, base, name):
    return getattr(class_, name) is not getattr(base, name)


def _text(words):
    return (inspect.cleandoc(words).split("\n")[0] if words else "").encode()


# ---- layers --------------------------------------------------------------------------------------


class Layer(Module):
    """A layer that is written in Python. Each subclass is registered under its name, so that specs,
    files and copies can use it:

        class Scaled(tenon.Layer):
            features = tenon.option(int, "size of the last dimension")

            def build(self):
                self.scale = tenon.parameter(tenon.ones(self.features))

            def forward(self, x):
                return x * self.scale

    Scaled(3) makes a module. Its options are attributes. Parameters, buffers and children belong to
    the library's module; other attributes live as long as that module."""

    def __init_subclass__(cls, name=None, register=True, **kwargs):
        super().__init_subclass__(**kwargs)
        if register:
            _register_layer(cls, name or cls.__name__)

    def __new__(cls, *args, **kwargs):
        return make(cls._layer_name, args, kwargs)

    def build(self):
        """Makes parameters, buffers and children from the options."""

    def forward(self, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__}: the class does not define forward")

    def reset(self):
        """Fills parameters and buffers with their initial values, in place."""

    def extra_repr(self):
        """Returns the text between the parentheses of repr. If a class does not define it, repr
        shows the options."""


class _NetworkType(type):
    """isinstance(x, nn.Module) holds for every module, as layers of the library have no class of
    Python's."""

    def __instancecheck__(cls, value):
        return isinstance(value, Module) if cls is Network else type.__instancecheck__(cls, value)


class Network(Layer, metaclass=_NetworkType, register=False):
    """The class nn.Module: a network that is written in Python as in PyTorch:

        class Net(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.fc = nn.Linear(4, width)

            def forward(self, x):
                return self.fc(x).relu()

    Parameters, buffers and children are assigned to attributes. What __init__ was given is not
    known to specs and files: save the state, and load it into a new Net(width)."""

    _printed = None

    def __init_subclass__(cls, **kwargs):
        name, count = cls.__name__, 1
        taken = {row.decode() for row in _registry_names()}
        while name in taken:  # another class of this name, or a layer of a plugin
            count += 1
            name = f"{cls.__name__}_{count}"
        cls._printed = cls.__name__.encode()
        super().__init_subclass__(name=name, **kwargs)

    def __new__(cls, *args, **kwargs):
        if cls is Network:
            raise TypeError("nn.Module: cannot be called; derive a class from it, with __init__ "
                            "and forward")
        return make(cls._layer_name, (), {})

    def __init__(self):
        pass

    def extra_repr(self):
        return ""


def _registry_names():
    kind = _api.TN_KIND_tn_layer_def
    return [lib.tn_registry_name(kind, i) for i in range(lib.tn_registry_count(kind))]


def _register_layer(class_, name):
    class_._layer_name = name
    class_._options = Options(class_)
    number = hold(class_)
    _module.layers[number] = class_
    def_ = _api.tn_layer_def(head(_api.tn_layer_def), name.encode(), _text(class_.__doc__), number)
    def_.options = class_._options.pointer()
    def_.data_size = class_._options.size
    def_.printed = getattr(class_, "_printed", None)
    def_.build, def_.destroy, def_.call, def_.copy = _build, _destroy, _call, _copy
    if _overrides(class_, Layer, "extra_repr"):
        def_.repr = _repr
    if _overrides(class_, Layer, "reset"):
        def_.reset = _reset
    try:
        register(def_)
    except BaseException:
        del _module.layers[number]
        raise


def _layer_member(name, **how):
    return callback(member(_api.tn_layer_def, name), **how)


@_layer_member("build")
def _build(pointer):
    class_ = _module.layers[lib.tn_module_user(pointer)]
    _module.states[pointer] = class_._options.read(lib.tn_module_data(pointer))
    borrow_module(pointer).build()


@_layer_member("destroy", failed=0)
def _destroy(pointer):
    _module.states.pop(pointer, None)


@_layer_member("call")
def _call(pointer, given, found):
    args, kwargs = Pack(given).read()
    result = borrow_module(pointer).forward(*args, **kwargs)
    with_names = isinstance(result, dict)
    Pack(found).add(() if with_names else result if isinstance(result, tuple) else (result,),
                    result if with_names else {})


@_layer_member("copy")
def _copy(pointer, source):
    memo = {_module.IN_COPY: True}
    _module.states[pointer] = copy.deepcopy(_module.states[source], memo)


@_layer_member("reset")
def _reset(pointer):
    borrow_module(pointer).reset()


@_layer_member("repr", failed=-1)
def _repr(pointer, out, size):
    text = str(borrow_module(pointer).extra_repr()).encode()
    if size:
        short = text[:size - 1] + b"\0"
        c.memmove(out, short, len(short))
    return len(text)


# ---- optimizers ----------------------------------------------------------------------------------


class OptimizerRule:
    """An optimizer that is written in Python. Each subclass is registered under its name:

        class SignSGD(tenon.OptimizerRule):
            lr = tenon.option(1e-3)

            def step(self, parameter, gradient, state):
                parameter -= gradient.sign() * self.lr

    `state` holds the tensors that the optimizer keeps for a parameter, by name (ParameterState).
    optim.SignSGD(net, lr=0.1) makes an optimizer."""

    def __init_subclass__(cls, name=None, **kwargs):
        super().__init_subclass__(**kwargs)
        cls._options = Options(cls)
        def_ = _api.tn_optimizer_def(head(_api.tn_optimizer_def),
                                     (name or cls.__name__).encode(), _text(cls.__doc__),
                                     hold(cls))
        def_.options, def_.data_size = cls._options.pointer(), cls._options.size
        def_.step = _step
        register(def_)

    def step(self, parameter, gradient, state):
        raise NotImplementedError(f"{type(self).__name__}: the class does not define step")


class ParameterState:
    """The tensors that an optimizer keeps for a parameter, and the number of the parameter's
    steps, `steps`."""

    def __init__(self, optimizer, index):
        self._optimizer, self._index = optimizer, index
        self.steps = lib.tn_optimizer_steps(optimizer, index)

    def __getitem__(self, name):
        """Returns the tensor with that name, None if it was never set."""
        found = lib.tn_optimizer_state(self._optimizer, self._index, name.encode())
        return borrow(found) if found else None

    def __setitem__(self, name, tensor):
        check(lib.tn_optimizer_set_state(self._optimizer, self._index, name.encode(), tensor._ptr))


@callback(member(_api.tn_optimizer_def, "step"))
def _step(pointer, args):
    args = args.contents
    class_ = held(lib.tn_optimizer_user(pointer))
    rule = object.__new__(class_)
    rule.__dict__.update(class_._options.read(args.options))
    for i in range(args.count):
        rule.step(borrow(args.parameters[i]), borrow(args.gradients[i]),
                  ParameterState(pointer, args.index[i]))
