"""Changing the dtype of an array as PyTorch does."""

from typing import Any

import numpy as np

from engine.dtypes import Array


def cast(x: Array, dtype: np.dtype[Any]) -> Array:
    """Return the elements in another dtype; `x` itself where it has that dtype already.

    Complex numbers lose their imaginary part, floats are cut off towards zero, integers wrap around. Small integer
    types are reached through int64, as wide values wrap in PyTorch.
    """
    if x.dtype == dtype:
        return x
    if dtype.kind == "b":
        return np.asarray(x != 0)
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    if x.dtype.kind == "f" and dtype.kind in "iu" and dtype.itemsize < 4:
        x = x.astype(np.int64)
    return x.astype(dtype)
