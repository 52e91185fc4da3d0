# SPDX-License-Identifier: MIT
"""The functions of libtenon by ctypes, exceptions for its failures, and callbacks from it."""

import atexit
import builtins
import ctypes as c
import os
import threading
import time

from . import _api

NONE = _api.TN_NONE


def _bundled():
    """The library in this package, if it came in a wheel that holds it (bundle.py). What it and its
    plugins link is opened first, in an order in which each finds what it needs: the loader then
    takes these for the libraries of the same names."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
    path = os.path.join(here, f"libtenon.so.{_api.ABI_MAJOR}")
    if not os.path.exists(path):
        return None
    linked = os.path.join(here, "linked")
    left = [os.path.join(linked, name) for name in sorted(os.listdir(linked))
            if not name.endswith(".copyright")] if os.path.isdir(linked) else []
    before = None
    while left and len(left) != before:
        before, failed = len(left), []
        for one in left:
            try:
                c.CDLL(one)
            except OSError:
                failed.append(one)
        left = failed
    return path


def _open():
    """Opens the file that $TENON_LIBRARY names, the library in this package, or else the one that
    the loader finds."""
    named = os.environ.get("TENON_LIBRARY") or _bundled()
    names = [named] if named else [f"libtenon.so.{_api.ABI_MAJOR}", "libtenon.so"]
    reasons = []
    for name in names:
        try:
            return c.CDLL(name)
        except OSError as error:
            reasons.append(str(error))
    raise ImportError("libtenon cannot be loaded (TENON_LIBRARY can name its file): "
                      + "; ".join(reasons))


class _Functions:
    """Has every function of the library (api.json) as an attribute, with its types."""


def _bind(library):
    functions = _Functions()
    for name, (result, parameters) in _api.FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"{library._name} has no function {name}; this module was generated "
                              "for another version of Tenon") from None
        function.restype = result
        function.argtypes = parameters
        setattr(functions, name, function)
    return functions


lib = _bind(_open())

# Not empty once Python begins to end. From then on no reference is given back and no callback runs,
# because the order in which Python clears its modules is not defined.
closing = []
# One entry for each thread that is in a call of the library which may call back, or that is giving
# a reference back.
_busy = []


class _Nested(threading.local):
    depth = 0  # the number of nested Scope blocks


_nested = _Nested()


def _end():
    """Waits at most 5 seconds until no thread is in a call of the library. Afterwards Python ends
    daemon threads when they next take its lock; in a callback, that would leave the library in the
    middle of a call."""
    closing.append(threading.get_ident())
    limit = time.monotonic() + 5
    while _busy and time.monotonic() < limit:
        time.sleep(0.001)


def _park():
    """Lets a daemon thread wait for the end of the process."""
    while closing and closing[0] != threading.get_ident():
        time.sleep(3600)


atexit.register(_end)


def owner(drop):
    """Returns a class whose objects own a reference of the library (an address) and give it back by
    calling `drop`.

    The user's object, such as a Tensor, has an Owner in a slot. The user's object ends first, so
    weak references to it are cleared before the library frees the memory. Otherwise, an object that
    another thread creates at the same address could be mistaken for it.

    There are two classes because of reference cycles. Python's collector calls every __del__ of a
    cycle before it frees any part of the cycle, and a __del__ of the user may still read its
    tensors or store one elsewhere. Therefore Owner.__del__ does not give the reference back, but
    makes an object of the class Last, which the collector does not know yet. Last.__del__ runs when
    the memory of the Owner is freed, and gives the reference back."""

    class Last(int):
        __slots__ = ()

        def __del__(self, drop=drop, closing=closing, _busy=_busy):
            if not closing:
                _busy.append(None)  # _end() waits, so the library does not end during drop()
                try:
                    if not closing:
                        drop(self)
                finally:
                    _busy.pop()

    class Owner:
        __slots__ = ("pointer", "last")

        def __init__(self, pointer):
            self.pointer = pointer

        def __del__(self, Last=Last):
            self.last = Last(self.pointer)

    return Owner


# Held while the object for an address is looked up or made, so that there is one object for each
# address. Recursive, because the garbage collector may run meanwhile and need the lock, too.
adopting = threading.RLock()


# ---- failures --------------------------------------------------------------------------------


class TenonError(Exception):
    """A call of the library failed. `code` is the status, `plugin` the plugin that failed ("" for
    the library itself), `native` the error code of the system or of the library that the plugin
    calls (errno, CUresult)."""

    code = _api.TN_ERR_RUNTIME

    def __init__(self, message, plugin="", native=0, code=None):
        super().__init__(message)
        self.message = message
        self.plugin = plugin
        self.native = native
        if code is not None:
            self.code = code


# There is one exception class for each status. It is also a subclass of the corresponding built-in
# exception, if there is one.
_BUILTIN = {
    "TYPE": TypeError, "KEY": KeyError, "ATTR": AttributeError, "VALUE": ValueError,
    "RUNTIME": RuntimeError, "INDEX": IndexError, "NOT_IMPLEMENTED": NotImplementedError,
    "ASSERT": AssertionError, "MEMORY": MemoryError, "IO": OSError, "TIMEOUT": TimeoutError,
}
_classes = {}


def _make_classes():
    for name, code in _api.ENUMS["tn_status"].items():
        if name in ("TN_OK", "TN_ERR_COUNT"):
            continue
        word = name[len("TN_ERR_"):]
        bases = (TenonError,) + ((_BUILTIN[word],) if word in _BUILTIN else ())
        title = "Tenon" + word.title().replace("_", "") + "Error"
        _classes[code] = type(title, bases, {
            "code": code, "__module__": "tenon", "__str__": lambda self: self.message,
            "__doc__": f"{name}."})


_make_classes()
ERRORS = {found.__name__: found for found in _classes.values()}

# The exception that a callback raised, until the call of the library that ran the callback returns.
_raised = threading.local()


def record(exception):
    """Records an exception in a callback as a failure of this thread; returns the status."""
    if isinstance(exception, TenonError):
        code, text = exception.code, exception.message
    else:
        code = next((getattr(_api, "TN_ERR_" + word) for word, kind in _BUILTIN.items()
                     if isinstance(exception, kind)), _api.TN_ERR_RUNTIME)
        text = f"{type(exception).__name__}: {exception}"
    _raised.exception = exception
    lib.tn_fail_text(code, getattr(exception, "native", 0) or 0, text.encode())
    return code


def failure():
    """Returns the exception for the failure that a call has just reported."""
    found = lib.tn_error_last().contents
    code, native = found.code, found.native
    plugin = found.plugin.decode(errors="replace")
    message = found.message.decode(errors="replace")
    lib.tn_error_clear()
    cause, _raised.exception = getattr(_raised, "exception", None), None
    if cause is not None and not isinstance(cause, Exception):
        return cause  # KeyboardInterrupt, SystemExit
    error = _classes.get(code, TenonError)(message, plugin, native, code)
    if cause is not None:
        error.__cause__ = cause
    return error


def check(status):
    if status != _api.TN_OK:
        raise failure()


def checked(pointer):
    """Returns `pointer`, the result of a function that returns NULL if it fails; raises then."""
    if not pointer:
        raise failure()
    return pointer


def interface(name, table):
    """Returns the functions of an interface that a plugin provides: a struct of pointers
    (docs/plugins/bindings.md). Finds and activates the plugin."""
    need = _api.tn_interface_need(name.encode(), 0, 0, c.sizeof(table), 0)
    found = checked(lib.tn_interface_find(None, c.byref(need), None))
    return c.cast(found, c.POINTER(table)).contents


def text_of(function, *arguments):
    """Returns the text of a function that writes to a buffer as tn_snprint does."""
    size = 512
    while True:
        buffer = c.create_string_buffer(size)
        length = function(*arguments, buffer, size)
        if length < 0:
            raise failure()
        if length < size:
            return buffer.value.decode()
        size = length + 1


class Scope:
    """A scope of the library: tensors that calls in the block create are dropped at its end, unless
    someone has kept a reference."""

    __slots__ = ("number",)

    def __enter__(self):
        if not _nested.depth:
            # This thread writes _busy before it reads `closing`; _end() writes `closing` before it
            # reads _busy. So at least one of the two sees the other.
            _busy.append(None)
            if closing:
                _busy.pop()
                _park()
                _busy.append(None)
        _nested.depth += 1
        self.number = lib.tn_scope_begin()
        return self

    def __exit__(self, *unused):
        lib.tn_scope_end(self.number)
        _nested.depth -= 1
        if not _nested.depth:
            _busy.pop()
            if closing:
                _park()


# ---- callbacks ---------------------------------------------------------------------------------

_users = {}
_next_user = [1]
_users_lock = threading.Lock()


def hold(value):
    """Stores `value` until release() and returns a number for it: the `user` of a callback."""
    with _users_lock:
        number = _next_user[0]
        _next_user[0] = number + 1
    _users[number] = value
    return number


def held(number):
    return _users[number]


_immortal = c.PYFUNCTYPE(None, c.py_object)(("Py_IncRef", c.pythonapi))


def forever(pointer):
    """Keeps an object that C code refers to until the process ends; returns the object."""
    _immortal(pointer)
    return pointer


def callback(type_, failed=None):
    """A decorator that makes a C callback of a function. If the function raises an exception, the
    callback records a failure and returns its status, or `failed` if that is given."""

    ended = _api.TN_ERR_CANCELLED if failed is None else failed

    def wrap(function):
        def run(*arguments):
            if closing:
                return ended
            try:
                result = function(*arguments)
            except BaseException as exception:  # exceptions cannot propagate through C code
                code = record(exception)
                return code if failed is None else failed
            return _api.TN_OK if result is None and failed is None else result

        return forever(type_(run))

    return wrap


@callback(c.CFUNCTYPE(None, c.c_void_p), failed=0)
def release(number):
    _users.pop(number, None)


def member(struct, name):
    """Returns the type of the member `name` of a struct, such as a callback."""
    return dict(struct._fields_)[name]


def head(struct):
    """Returns the head of a descriptor, a tn_head."""
    kind = getattr(_api, "TN_KIND_" + struct.__name__)
    return _api.tn_head(c.sizeof(struct), kind, 0, _api.ABI_MAJOR, _api.ABI_MINOR, _api.ABI_MINOR)


def register(descriptor):
    """Registers a descriptor with the library, and keeps it as long as the process lives."""
    check(lib.tn_register_contribution(c.byref(descriptor)))
    _registered.append(descriptor)


_registered = []


def encode(text):
    return None if text is None else builtins.str(text).encode()
