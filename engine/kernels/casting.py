"""Changing the dtype of an array: as PyTorch casts, and to the dtype that kernels compute in.

float16 is computed in float32, and integers where only floats will do too.
"""

from typing import Any

import numpy as np

from engine.dtypes import Array
from engine.kernels.promotion import Dtype, computing_dtype, floating


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


def widen(x: Array) -> Array:
    """Return `x` in the dtype that arithmetic on it is done in: itself, or float32 for float16."""
    return np.asarray(x, computing_dtype(x.dtype))


def to_float(x: Array) -> Array:
    """Return `x` itself if it is float or complex, else as float32."""
    return np.asarray(x, floating(x.dtype))


def narrow(result: Array, dtype: Dtype) -> Array:
    """Return a result in the dtype that it should have, as an array even if numpy made it a scalar.

    Raises:
        TypeError: that would cut off imaginary or fractional parts.
    """
    return np.asarray(result).astype(dtype, casting="same_kind", copy=False)
