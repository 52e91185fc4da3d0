# SPDX-License-Identifier: MIT
"""Context managers: gradients, inference mode, the device of new tensors."""

import functools

from . import _api
from ._library import check, checked, encode, lib
from ._values import dtype_number


class _Context:
    """A context manager over a begin and an end function of the library; also a decorator."""

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
    """Inside, operators are not recorded for backward."""

    def _begin(self):
        return lib.tn_grad_begin(False)

    def _end(self):
        lib.tn_grad_end()


class enable_grad(no_grad):
    """Inside, operators are recorded again: for use within no_grad."""

    def _begin(self):
        return lib.tn_grad_begin(True)


class inference_mode(_Context):
    """Inside, operators are not recorded, and new tensors can never be part of a recording."""

    def _begin(self):
        return lib.tn_inference_begin(True)

    def _end(self):
        lib.tn_inference_end()


class autocast(_Context):
    """Inside, operators get floating inputs in the dtype that is right for them: products of
    matrices in `dtype` (None: bfloat16 on the cpu, float16 on other devices), losses in float32."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        self.device_type, self.enabled = device_type, enabled
        self.dtype = dtype_number(dtype)
        self.cache_enabled = cache_enabled
        self._before = []

    def _begin(self):
        self._before.append(lib.tn_autocast_cache())
        if self.cache_enabled is not None:
            lib.tn_set_autocast_cache(self.cache_enabled)
        return lib.tn_autocast_begin(encode(self.device_type), self.dtype, self.enabled)

    def _end(self):
        lib.tn_autocast_end()
        lib.tn_set_autocast_cache(self._before.pop())


def is_autocast_enabled(device_type):
    return lib.tn_autocast_enabled(encode(device_type))


class device(_Context):
    """Inside, new tensors are created on the device with this name."""

    def __init__(self, name):
        self.name = name
        self._device = checked(lib.tn_device_find(encode(name)))

    def _begin(self):
        status = lib.tn_device_begin(self._device)
        if status:
            lib.tn_device_end()  # every begin needs an end, even one that failed
        return status

    def _end(self):
        lib.tn_device_end()


on_device = device


def set_default_device(names):
    """Sets the device of new tensors: a name, or names in order of preference, "cuda,cpu"."""
    check(lib.tn_set_default_device(encode(names)))


def is_grad_enabled():
    return lib.tn_grad_enabled()


def devices():
    """Returns the names of all devices."""
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
