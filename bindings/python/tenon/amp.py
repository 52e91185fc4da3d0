# SPDX-License-Identifier: MIT
"""Mixed precision: autocast, and GradScaler with the rules and texts of torch.amp.GradScaler."""

import ctypes as c
import math

from ._context import autocast, is_autocast_enabled, no_grad
from ._ops import operator
from ._tensor import Tensor

__all__ = ["autocast", "is_autocast_enabled", "GradScaler"]


def _single(value):
    """Rounds to float32, the type of the factor."""
    return c.c_float(value).value


class GradScaler:
    """Multiplies the loss by a factor, so that small gradients in float16 do not become zero, and
    divides the gradients by it before the step. A step with infinite or NaN gradients is left out,
    and the factor becomes smaller.

        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    """

    def __init__(self, device="cuda", init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5,
                 growth_interval=2000, enabled=True):
        if enabled and not growth_factor > 1.0:
            raise ValueError(f"GradScaler: The growth factor must be > 1.0, got {growth_factor}")
        if enabled and not backoff_factor < 1.0:
            raise ValueError(f"GradScaler: The backoff factor must be < 1.0, got {backoff_factor}")
        self._device, self._enabled = device, bool(enabled)
        self._scale, self._started = _single(init_scale), False
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval, self._growth_tracker = growth_interval, 0
        self._rows = {}  # since the last update: optimizer -> [state, found an infinity or NaN]

    # ---- one iteration ---------------------------------------------------------------------

    def scale(self, outputs):
        """Returns a tensor, or a list or tuple of tensors, multiplied by the factor."""
        if not self._enabled:
            return outputs
        self._started = True
        if isinstance(outputs, Tensor):
            return operator("mul_scalar").call((outputs, self._scale), {})
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(output) for output in outputs])
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer):
        """Divides the gradients of an optimizer by the factor, for example to clip them before
        step(), which otherwise does this."""
        if not self._enabled:
            return
        self._check("unscale_")
        row = self._rows.setdefault(optimizer, ["ready", False])
        if row[0] == "unscaled":
            raise RuntimeError("unscale_() has already been called on this optimizer since the "
                               "last update().")
        if row[0] == "stepped":
            raise RuntimeError("unscale_() is being called after step().")
        gradients = {}  # by device
        for parameter in optimizer.parameters:
            gradient = parameter.grad
            if gradient is None:
                continue
            if gradient.dtype == "float16":
                raise ValueError("Attempting to unscale FP16 gradients.")
            gradients.setdefault(gradient.device, []).append(gradient)
        with no_grad():
            for rows in gradients.values():
                largest = operator("total_norm").call((rows,), {"p": math.inf})
                row[1] = row[1] or not math.isfinite(largest.item())
                for gradient in rows:
                    gradient.mul_scalar_(1.0 / self._scale)
        row[0] = "unscaled"

    def step(self, optimizer, closure=None):
        """Takes a step of the optimizer with the unscaled gradients, unless one of them is infinite
        or NaN. Returns what the step returned."""
        if not self._enabled:
            return optimizer.step(closure)
        if closure is not None:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check("step")
        row = self._rows.setdefault(optimizer, ["ready", False])
        if row[0] == "stepped":
            raise RuntimeError("step() has already been called since the last update().")
        if row[0] == "ready":
            self.unscale_(optimizer)
        found = None if row[1] else optimizer.step()
        row[0] = "stepped"
        return found

    def update(self, new_scale=None):
        """Sets the factor for the next iteration: reduces it if a step was left out, and increases
        it after growth_interval steps in a row. `new_scale` is a factor to use instead."""
        if not self._enabled:
            return
        self._check("update")
        if new_scale is not None:
            value = new_scale.item() if isinstance(new_scale, Tensor) else new_scale
            self._scale = _single(value)
        else:
            found = [row[1] for row in self._rows.values() if row[0] != "ready"]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(found):
                self._scale = _single(self._scale * self._backoff_factor)
                self._growth_tracker = 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    grown = _single(self._scale * self._growth_factor)
                    if math.isfinite(grown):
                        self._scale = grown
                    self._growth_tracker = 0
        self._rows = {}

    def _check(self, name):
        if not self._started:
            raise AssertionError(f"Attempted {name} but _scale is None.  This may indicate your "
                                 "script did not use scaler.scale(loss or outputs) earlier in the "
                                 "iteration.")

    # ---- settings and state ----------------------------------------------------------------

    def is_enabled(self):
        return self._enabled

    def get_scale(self):
        """Returns the factor; 1.0 if the scaler is not enabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self):
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        self._growth_interval = new_interval

    def state_dict(self):
        """Returns the state, as PyTorch's scaler does; {} if the scaler is not enabled."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor,
                "backoff_factor": self._backoff_factor, "growth_interval": self._growth_interval,
                "_growth_tracker": self._growth_tracker}

    def load_state_dict(self, values):
        """Loads a state of this class, or of PyTorch's scaler."""
        if not self._enabled:
            return
        if not values:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from "
                               "a disabled instance of GradScaler.")
        self._scale = _single(values["scale"])
        self._growth_factor = values["growth_factor"]
        self._backoff_factor = values["backoff_factor"]
        self._growth_interval = values["growth_interval"]
        self._growth_tracker = values["_growth_tracker"]
