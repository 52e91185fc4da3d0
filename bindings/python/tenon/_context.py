# SPDX-License-Identifier: MIT
"""Context managers: gradients, inference mode, the device of new tensors."""

import functools

from . import _api
from ._library import check, checked, encode, lib


class _Context:
    """A pair of begin and end; also a decorator."""

    def __enter__(self):
        check(self._begin())
        return self

    def __exit__(self, *unused):
        self._end()

    def __call__(self, function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return run


class no_grad(_Context):
    """Records nothing for backward."""

    def _begin(self):
        return lib.tn_grad_begin(False)

    def _end(self):
        lib.tn_grad_end()


class enable_grad(no_grad):
    """Records again inside of no_grad."""

    def _begin(self):
        return lib.tn_grad_begin(True)


class inference_mode(_Context):
    """Records nothing, and what is made cannot take part in a recording later."""

    def _begin(self):
        return lib.tn_inference_begin(True)

    def _end(self):
        lib.tn_inference_end()


class device(_Context):
    """New tensors go to the device of this name."""

    def __init__(self, name):
        self.name = name
        self._device = checked(lib.tn_device_find(encode(name)))

    def _begin(self):
        status = lib.tn_device_begin(self._device)
        if status:
            lib.tn_device_end()  # it is owed even then
        return status

    def _end(self):
        lib.tn_device_end()


on_device = device


def set_default_device(names):
    """A name, or names in the order of preference: "cuda,cpu"."""
    check(lib.tn_set_default_device(encode(names)))


def is_grad_enabled():
    return lib.tn_grad_enabled()


def devices():
    """The names of all devices."""
    return [lib.tn_device_name(lib.tn_device_at(i)).decode()
            for i in range(lib.tn_device_count())]


def synchronize(name=None):
    """Waits for a device, and raises what failed there."""
    check(lib.tn_device_sync(lib.tn_default_device() if name is None
                             else checked(lib.tn_device_find(encode(name)))))


def version():
    return lib.tn_version().decode()


def abi():
    return (_api.ABI_MAJOR, _api.ABI_MINOR)
