# SPDX-License-Identifier: MIT
"""libtenon as ctypes sees it, and what comes of its failures."""

import atexit
import builtins
import ctypes as c
import os
import threading
import time

from . import _api

NONE = _api.TN_NONE


def _open():
    """$TENON_LIBRARY, else what the loader finds."""
    named = os.environ.get("TENON_LIBRARY")
    names = [named] if named else [f"libtenon.so.{_api.ABI_MAJOR}", "libtenon.so"]
    reasons = []
    for name in names:
        try:
            return c.CDLL(name)
        except OSError as error:
            reasons.append(str(error))
    raise ImportError("libtenon cannot be loaded (TENON_LIBRARY names a file): "
                      + "; ".join(reasons))


class _Functions:
    """Every function of api.json, with its types."""


def _bind(library):
    functions = _Functions()
    for name, (result, parameters) in _api.FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"{library._name} has no {name}: it is another version of Tenon "
                              "than this module was generated for") from None
        function.restype = result
        function.argtypes = parameters
        setattr(functions, name, function)
    return functions


lib = _bind(_open())

# Not empty once Python ends: what is freed then stays with the process, and nothing is called back,
# as the order in which Python clears its modules is not known.
closing = []
_busy = []  # an entry for each thread that is in a call of the library which may call back, or
            # that gives a reference back


class _Nested(threading.local):
    depth = 0  # of scopes


_nested = _Nested()


def _end():
    """Python ends a daemon thread where it next takes the lock, which must not be in a callback:
    that would leave the library in the middle of a call."""
    closing.append(threading.get_ident())
    limit = time.monotonic() + 5
    while _busy and time.monotonic() < limit:
        time.sleep(0.001)


def _park():
    """Where daemon threads wait for the end of the process."""
    while closing and closing[0] != threading.get_ident():
        time.sleep(3600)


atexit.register(_end)


def dropper(drop):
    """A __del__ that gives back the reference of an object."""

    def __del__(self, drop=drop, closing=closing, _busy=_busy):
        pointer = getattr(self, "_ptr", None)
        if pointer and not closing:
            _busy.append(None)  # Python's end waits for it: the library must not end meanwhile
            try:
                if not closing:
                    drop(pointer)
            finally:
                _busy.pop()

    return __del__


# ---- failures --------------------------------------------------------------------------------


class TenonError(Exception):
    """A call failed. `code` is its status, `plugin` the plugin that failed ("" for the library),
    `native` the code of a lower library (errno, CUresult)."""

    code = _api.TN_ERR_RUNTIME

    def __init__(self, message, plugin="", native=0, code=None):
        super().__init__(message)
        self.message = message
        self.plugin = plugin
        self.native = native
        if code is not None:
            self.code = code


# One class for each status; each is also what Python calls such a failure, where it has a word.
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

# What a callback raised, until the call that led to it returns.
_raised = threading.local()


def record(exception):
    """Makes a failure of this thread from an exception in a callback; returns its code."""
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
    """The exception for the failure that a call has just reported."""
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
    """The result of a function that returns NULL where it fails."""
    if not pointer:
        raise failure()
    return pointer


def text_of(function, *arguments):
    """The text that a function writes as tn_snprint does."""
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
    """What calls leave to the innermost scope ends with the block, but for what was kept."""

    __slots__ = ("number",)

    def __enter__(self):
        if not _nested.depth:
            _busy.append(None)  # before the look at `closing`, which is set before the look at this
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
    """A number for `value`, as the `user` of a callback; it lives until `release`."""
    with _users_lock:
        number = _next_user[0]
        _next_user[0] = number + 1
    _users[number] = value
    return number


def held(number):
    return _users[number]


_immortal = c.PYFUNCTYPE(None, c.py_object)(("Py_IncRef", c.pythonapi))


def forever(pointer):
    """What C was given stays until the process ends."""
    _immortal(pointer)
    return pointer


def callback(type_, failed=None):
    """A function for C. What it raises becomes a failure: its status, or `failed`."""

    ended = _api.TN_ERR_CANCELLED if failed is None else failed

    def wrap(function):
        def run(*arguments):
            if closing:
                return ended
            try:
                result = function(*arguments)
            except BaseException as exception:  # it cannot pass through C
                code = record(exception)
                return code if failed is None else failed
            return _api.TN_OK if result is None and failed is None else result

        return forever(type_(run))

    return wrap


@callback(c.CFUNCTYPE(None, c.c_void_p), failed=0)
def release(number):
    _users.pop(number, None)


def member(struct, name):
    """The type of a callback that is a member of a struct."""
    return dict(struct._fields_)[name]


def head(struct):
    """The head of a descriptor."""
    kind = getattr(_api, "TN_KIND_" + struct.__name__)
    return _api.tn_head(c.sizeof(struct), kind, 0, _api.ABI_MAJOR, _api.ABI_MINOR, 0)


def register(descriptor):
    """Contributes a descriptor, which must live as long as the process."""
    check(lib.tn_register_contribution(c.byref(descriptor)))
    _registered.append(descriptor)


_registered = []


def encode(text):
    return None if text is None else builtins.str(text).encode()
