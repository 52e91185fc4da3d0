# SPDX-License-Identifier: MIT
"""Modules: trees of parameters, buffers and children with a forward function."""

import ctypes as c
import json
import os
import weakref

from . import _api
from ._library import (NONE, Scope, adopting, callback, check, checked, encode, failure, held, hold,
                       lib, owner, release, text_of)
from ._tensor import Hook, Tensor, borrow, device_of
from ._values import Pack, dtype_number, is_dtype, value_of

_alive = weakref.WeakValueDictionary()
_Owner = owner(lib.tn_module_drop)
layers = {}  # classes of layers that are written in Python, by the `user` of their descriptors
IN_COPY = "tenon: attributes of a module are being copied"  # key of the memo of such a deepcopy
states = {}  # attributes of modules of these classes, by address; they live as long as the module


def adopt_module(pointer, class_=None):
    """Returns the Python object for a module. Takes over one reference of the caller. A new object
    has the class, unless it is that of a layer written in Python."""
    with adopting:
        found = _alive.get(pointer)
        if found is None:
            class_ = class_ or Module
            if pointer in states:
                class_ = layers[lib.tn_module_user(pointer)]
            found = object.__new__(class_)
            object.__setattr__(found, "_ptr", pointer)
            object.__setattr__(found, "_owner", _Owner(pointer))
            if pointer in states:
                object.__setattr__(found, "__dict__", states[pointer])
            _alive[pointer] = found
            return found
    lib.tn_module_drop(pointer)
    return found


def borrow_module(pointer):
    return adopt_module(checked(lib.tn_module_keep(checked(pointer))))


def make(type_, args, kwargs):
    """Makes a module of a layer type from its options."""
    keep = []
    values = [value_of(v, keep) for v in list(args) + list(kwargs.values())]
    names = [None] * len(args) + [name.encode() for name in kwargs]
    count = len(values)
    with Scope():
        return adopt_module(checked(lib.tn_module_make(
            type_.encode(), (_api.tn_value * max(count, 1))(*values),
            (c.c_char_p * max(count, 1))(*names), count)))


@callback(lib.tn_module_each_tensor.argtypes[3])
def _collect_tensor(user, path, tensor):
    held(user).append((path.decode(), borrow(tensor)))


@callback(lib.tn_module_each.argtypes[2])
def _collect_module(user, path, module):
    held(user).append((path.decode(), borrow_module(module)))


def _collect(call, *arguments):
    rows = []
    number = hold(rows)
    try:
        check(call(*arguments, number))
    finally:
        release(number)
    return rows


@callback(_api.cb_tn_forward_hook)
def _forward_hook(user, module, inputs, outputs, replacement, outcome):
    args, _ = Pack(inputs).read()
    result = held(user)(borrow_module(module), tuple(args), Pack(outputs).result())
    if result is not None:
        Pack(replacement).add(result if isinstance(result, tuple) else (result,), {})
        outcome[0] = _api.TN_OUTCOME_REPLACED


@callback(lib.tn_module_set_call.argtypes[1])
def _forward(pointer, given, found):
    args, kwargs = Pack(given).read()
    result = held(lib.tn_module_user(pointer))(borrow_module(pointer), *args, **kwargs)
    names = isinstance(result, dict)
    Pack(found).add(() if names else result if isinstance(result, tuple) else (result,),
                    result if names else {})


class Module:
    """A module of any type. Module("Sequential(Linear(4, 8), ReLU())") makes one from a spec;
    nn.Linear(4, 8) makes one of a given type."""

    __slots__ = ("_ptr", "_owner", "__weakref__")

    def __new__(cls, spec=None, *args, **kwargs):
        if not isinstance(spec, str) or args or kwargs:
            raise TypeError("Module: spec: expected one argument, the text of a spec; "
                            "nn.Linear(4, 3) makes a module of a given type")
        return adopt_module(checked(lib.tn_module_parse(spec.encode())))

    def __init__(self, *args, **kwargs):
        pass

    # ---- calls -----------------------------------------------------------------------------

    def __call__(self, *args, **kwargs):
        with Scope(), Pack() as given, Pack() as found:
            given.add(args, kwargs)
            check(lib.tn_module_call_pack(self._ptr, given.pointer, found.pointer))
            return found.result()

    def set_forward(self, function, type=None):
        """Sets the forward of a module that was read from printed text, or of all such modules of
        that type in it: net.set_forward(forward, "Block"). A call of the module calls
        function(module, *args)."""
        found = [self] if type is None else [m for m in self.modules() if m.type == type]
        if not found:
            known = ", ".join(sorted({m.type for m in self.modules()}))
            raise KeyError(f"set_forward: no module has the type {type}; there are {known}")
        for module in found:
            number = hold(function)
            if lib.tn_module_set_call(module._ptr, _forward, number, release) != _api.TN_OK:
                error = failure()
                release(number)
                raise error
        return self

    def register_forward_hook(self, function):
        """Calls function(module, args, result) after forward. If it returns something other than
        None, that replaces the result."""
        number = hold(function)
        handle = lib.tn_module_hook_forward(self._ptr, _forward_hook, 0, number, release)
        if not handle:
            release(number)
            raise failure()
        return Hook(handle)

    # ---- properties ------------------------------------------------------------------------

    @property
    def type(self):
        return lib.tn_module_type(self._ptr).decode()

    @property
    def spec(self):
        """The spec of the module: text that makes an equal module."""
        return text_of(lib.tn_module_spec, self._ptr)

    def __repr__(self):
        return text_of(lib.tn_module_repr, self._ptr)

    @property
    def training(self):
        return lib.tn_module_is_training(self._ptr)

    def train(self, mode=True):
        check(lib.tn_module_train(self._ptr, bool(mode)))
        return self

    def eval(self):
        return self.train(False)

    # ---- slots -----------------------------------------------------------------------------

    def _slot(self, name):
        kind = lib.tn_module_slot_kind(self._ptr, name.encode())
        if kind == _api.TN_SLOT_CHILD:
            found = lib.tn_module_child(self._ptr, name.encode())
            return borrow_module(found) if found else None
        with Scope():
            return borrow(lib.tn_module_get(self._ptr, name.encode()))

    def _option(self, name):
        """The value of an option of the layer, in a list; an empty list if there is none."""
        with Pack() as pack:
            if lib.tn_module_option_get(self._ptr, name.encode(), pack.pointer) != _api.TN_OK:
                lib.tn_error_clear()
            return list(pack.read()[1].values())

    def __getattr__(self, name):
        if not name.startswith("__"):
            if lib.tn_module_slot_kind(self._ptr, name.encode()):
                return self._slot(name)
            for value in self._option(name):
                return value
        raise AttributeError(f"{self.type}: {name}: no such parameter, buffer, child or option")

    def __setattr__(self, name, value):
        pointer, key = self._ptr, name.encode()
        if lib.tn_module_slot_kind(pointer, key):
            keep = []
            check(lib.tn_module_assign(pointer, key, value_of(value, keep)))
        elif isinstance(value, Module):
            check(lib.tn_module_add_child(pointer, key, value._ptr))
        elif isinstance(value, Tensor) and lib.tn_tensor_is_parameter(value._ptr):
            check(lib.tn_module_add_parameter(pointer, key, value._ptr))
        elif type(self) in (Module, LoadedModule) and self._option(name):
            keep = []
            check(lib.tn_module_option_set(pointer, key, value_of(value, keep)))
        else:
            object.__setattr__(self, name, value)

    def register_buffer(self, name, tensor, persistent=True):
        check(lib.tn_module_add_buffer(self._ptr, name.encode(),
                                       NONE if tensor is None else tensor._ptr,
                                       0 if persistent else _api.TN_SLOT_FLAG_NOT_PERSISTENT))

    def __delattr__(self, name):
        if lib.tn_module_slot_kind(self._ptr, name.encode()):
            check(lib.tn_module_remove(self._ptr, name.encode()))
        else:
            object.__delattr__(self, name)

    def named_parameters(self):
        return _collect(lib.tn_module_each_tensor, self._ptr, _api.TN_SLOT_PARAMETER, False,
                        _collect_tensor)

    def parameters(self):
        return [tensor for _, tensor in self.named_parameters()]

    def named_buffers(self):
        return _collect(lib.tn_module_each_tensor, self._ptr, _api.TN_SLOT_BUFFER, False,
                        _collect_tensor)

    def buffers(self):
        return [tensor for _, tensor in self.named_buffers()]

    def named_modules(self):
        return _collect(lib.tn_module_each, self._ptr, False, _collect_module)

    def modules(self):
        return [module for _, module in self.named_modules()]

    def named_children(self):
        found = []
        for i in range(lib.tn_module_child_count(self._ptr)):
            child = lib.tn_module_child_at(self._ptr, i)
            if child:
                name = lib.tn_module_child_name(self._ptr, i).decode()
                found.append((name, borrow_module(child)))
        return found

    def children(self):
        return [module for _, module in self.named_children()]

    def __len__(self):
        return lib.tn_module_child_count(self._ptr)

    def __bool__(self):
        return True

    def __getitem__(self, index):
        if isinstance(index, str):
            return borrow_module(checked(lib.tn_module_child(self._ptr, index.encode())))
        return borrow_module(checked(lib.tn_module_child_at(self._ptr, index)))

    def __iter__(self):
        return iter(self.children())

    def append(self, module):
        check(lib.tn_list_append(self._ptr, module._ptr))
        return self

    # ---- changes ---------------------------------------------------------------------------

    def zero_grad(self, set_to_none=True):
        """Removes the gradients of the parameters, or fills them with 0."""
        if not set_to_none:
            for tensor in self.parameters():
                if tensor.grad is not None:
                    tensor.grad.zero_()
            return
        check(lib.tn_module_zero_grad(self._ptr))

    def requires_grad_(self, value=True):
        check(lib.tn_module_set_requires_grad(self._ptr, bool(value)))
        return self

    def to(self, *where, device=None, dtype=None):
        """Moves and converts parameters and buffers in place: to("cuda:0"), to("float64"), to(x),
        to(device=None, dtype="float16")."""
        for word in where:
            if isinstance(word, Tensor):
                device, dtype = word.device, word.dtype
            elif word is not None and is_dtype(word):
                dtype = word
            elif word is not None:
                device = word
        check(lib.tn_module_to(self._ptr, device_of(device), dtype_number(dtype)))
        return self

    def float(self):
        return self.to(dtype="float32")

    def double(self):
        return self.to(dtype="float64")

    def half(self):
        return self.to(dtype="float16")

    def bfloat16(self):
        return self.to(dtype="bfloat16")

    def cpu(self):
        return self.to(device="cpu:0")

    def cuda(self, device=0):
        return self.to(device=f"cuda:{device}" if isinstance(device, int) else device)

    def apply(self, function):
        """Calls function(module) for all modules below this one, then for this one."""
        for child in self.children():
            child.apply(function)
        function(self)
        return self

    def add_module(self, name, module):
        check(lib.tn_module_add_child(self._ptr, name.encode(),
                                      NONE if module is None else module._ptr))

    register_module = add_module

    def register_parameter(self, name, tensor):
        check(lib.tn_module_add_parameter(self._ptr, name.encode(),
                                          NONE if tensor is None else tensor._ptr))

    def get_submodule(self, path):
        """Returns the module at a path such as "layers.0"; "" is this module."""
        found = self
        for name in path.split(".") if path else ():
            found = found[name]
        return found

    def __deepcopy__(self, memo):
        if IN_COPY in memo:
            return self  # an attribute of a copied module refers to this module: keep it
        return adopt_module(checked(lib.tn_module_copy(self._ptr)))

    def copy(self):
        return self.__deepcopy__({})

    # ---- state -----------------------------------------------------------------------------

    def state_dict(self):
        """Returns a dictionary from names to tensors (and other values). The tensors share memory
        with the module's."""
        with State(checked(lib.tn_module_state(self._ptr))) as state:
            return state.read()

    def load_state_dict(self, values, strict=True):
        with State(checked(lib.tn_state_new())) as state:
            state.write(values)
            check(lib.tn_module_load_state(self._ptr, state.pointer, strict))

    def save(self, path):
        check(lib.tn_module_save(self._ptr, os.fsencode(path)))

    def load(self, path):
        check(lib.tn_module_load(self._ptr, os.fsencode(path)))
        return self


class LoadedModule(Module):
    """A module of a file, see load()."""

    __slots__ = ("classes", "transform")


class State:
    """A tn_state that lives as long as a `with` block."""

    def __init__(self, pointer):
        self.pointer = pointer

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        lib.tn_state_drop(self.pointer)

    def read(self):
        from ._values import python_of

        found = {}
        for i in range(lib.tn_state_count(self.pointer)):
            name = lib.tn_state_name(self.pointer, i)
            found[name.decode()] = python_of(lib.tn_state_value(self.pointer, i))
        return found

    def write(self, values):
        for name, value in values.items():
            keep = []
            check(lib.tn_state_set_value(self.pointer, name.encode(), value_of(value, keep)))


def _note(state, key):
    """Returns a text of a file: of its metadata or, of a checkpoint, of its values."""
    from ._values import python_of

    text = lib.tn_state_meta(state, b"tenon." + key)
    at = lib.tn_state_find(state, b"value." + key)
    if text is not None:
        return text.decode()
    value = python_of(lib.tn_state_value(state, at)) if at >= 0 else None
    return value if isinstance(value, str) else None


def _is_program(name):
    """Returns whether a file, or that of the folder of a run, is a program of PyTorch or ONNX."""
    ends = (b".pt2", b".onnx")
    files = [os.path.join(name, stem + end) for stem in (b"best", b"model") for end in ends]
    return any(file.endswith(ends) and os.path.isfile(file) for file in [name, *files])


def load(path):
    """Returns what a file has: the module if it names one, as the files of `tenon train` and `tenon
    prune`, scripts, and programs of PyTorch (.pt2) and ONNX do; else its tensors by name. A module
    has the attributes `classes`, the names of the classes, and `transform`, the spec of the
    transform of its inputs; None where the file has none. `path` may be the folder of a run."""
    name = os.fsencode(path)
    with Scope(), State(checked(lib.tn_state_load(name))) as state:
        notes = {key: _note(state.pointer, key) for key in (b"spec", b"script")}
        if notes == {b"spec": None, b"script": None} and not _is_program(name):
            return state.read()
        classes, transform = _note(state.pointer, b"classes"), _note(state.pointer, b"transform")
    module = adopt_module(checked(lib.tn_module_from_file(name)), LoadedModule)
    object.__setattr__(module, "classes", None if classes is None else json.loads(classes))
    object.__setattr__(module, "transform", transform)
    return module


def save(values, path):
    """Writes tensors, given by name, to a file. The extension of `path` determines the format."""
    with State(checked(lib.tn_state_new())) as state:
        state.write(values)
        check(lib.tn_state_save(state.pointer, os.fsencode(path)))


def init(tensor, spec):
    """Fills a tensor with initial values by a spec: init(x, "kaiming_uniform(a=2.0)")."""
    check(lib.tn_init_parse(tensor._ptr, encode(spec)))
    return tensor
