# SPDX-License-Identifier: MIT
"""Functions and methods with PyTorch's names that are more than one operator, or another one for
other arguments: max(x), max(x, dim), max(x, y)."""

from ._compose_table import FUNCTIONS, METHODS, NOT_METHODS  # noqa: F401
# Importing them fills the tables.
from . import _compose_index, _compose_math, _compose_shape, _compose_tensor  # noqa: F401
