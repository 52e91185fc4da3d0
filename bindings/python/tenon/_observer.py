# SPDX-License-Identifier: MIT
"""Observers that are written in Python. This module registers a single observer with the library,
when the first Python observer becomes active; it calls all active Python observers."""

import threading

from . import _api
from ._library import callback, head, lib, member, register
from ._module import borrow_module
from ._tensor import borrow


class Event:
    """A call of an operator, with the attributes `op`, `device`, `inputs` and `module`. After the
    call also `outputs`, `status` and `kernel`; `kernel` is None for views and decompositions."""

    def __init__(self, event, done):
        self.op = event.op.contents.name.decode()
        self.device = lib.tn_device_name(event.device).decode()
        self.inputs = _tensors(event.in_, event.n_in)
        self.module = borrow_module(event.module) if event.module else None
        self.outputs = _tensors(event.out, event.n_out) if done else []
        self.status = event.status if done else None
        self.kernel = (event.kernel.contents.name.decode() if done and event.kernel else None)


def _tensors(row, count):
    return [borrow(row[i]) if row[i] else None for i in range(count)]


class ModuleEvent:
    """A call of a module, with the attributes `module` and `path` ("" for the outermost module);
    after the call also `status`."""

    def __init__(self, event):
        self.module = borrow_module(event.module)
        self.path = (event.path or b"").decode()
        self.status = event.status


class Observer:
    """Is called for all operators and modules that run in any thread while it is active:

        class Times(tenon.Observer):
            def op_end(self, event): ...

        with Times() as times: ...
    """

    def op_begin(self, event):
        """Called before an operator runs, with an Event."""

    def op_end(self, event):
        """Called after an operator has run, with an Event."""

    def module_begin(self, event):
        """Called before a module runs, with a ModuleEvent."""

    def module_end(self, event):
        """Called after a module has run, with a ModuleEvent."""

    def memory(self, device, nbytes):
        """Called when memory of a device is allocated (`nbytes` > 0) or freed (`nbytes` < 0)."""

    def __enter__(self):
        global _active
        with _lock:
            if not _registered:
                _register()
            _active = _active + (self,)
        return self

    def __exit__(self, *unused):
        global _active
        with _lock:
            _active = tuple(o for o in _active if o is not self)


_lock = threading.Lock()
_active = ()
_registered = []
_inside = threading.local()  # .now: an observer runs in this thread; its calls are not observed


def _tell(name, make):
    """Calls the method `name` of all active observers that define it. An observer cannot make the
    observed call fail: its exceptions go to sys.unraisablehook."""
    if not _active or getattr(_inside, "now", False):
        return
    import sys

    _inside.now = True
    try:
        event = None
        for observer in _active:
            if getattr(type(observer), name) is getattr(Observer, name):
                continue
            event = event or make()
            try:
                getattr(observer, name)(*event)
            except Exception:
                sys.unraisablehook(_Unraisable(observer))
    finally:
        _inside.now = False


class _Unraisable:
    def __init__(self, observer):
        import sys

        self.exc_type, self.exc_value, self.exc_traceback = sys.exc_info()
        self.err_msg, self.object = "in an observer", observer


def _member(name):
    return callback(member(_api.tn_observer_def, name), failed=0)


@_member("op_begin")
def _op_begin(user, event):
    _tell("op_begin", lambda: (Event(event.contents, False),))
    return 0


@_member("op_end")
def _op_end(user, token, event):
    _tell("op_end", lambda: (Event(event.contents, True),))


@_member("module_begin")
def _module_begin(user, event):
    _tell("module_begin", lambda: (ModuleEvent(event.contents),))
    return 0


@_member("module_end")
def _module_end(user, token, event):
    _tell("module_end", lambda: (ModuleEvent(event.contents),))


@_member("memory")
def _memory(user, event):
    _tell("memory", lambda: (lib.tn_device_name(event.contents.device).decode(),
                             event.contents.bytes))


def _register():
    def_ = _api.tn_observer_def(head(_api.tn_observer_def), b"python")
    def_.op_begin, def_.op_end = _op_begin, _op_end
    def_.module_begin, def_.module_end = _module_begin, _module_end
    def_.memory = _memory
    register(def_)
    _registered.append(def_)
