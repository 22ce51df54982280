"""In which precision kernels compute: float16 is computed in float32, and integers where only floats will do too."""

import numpy as np

from engine.dtypes import Array
from engine.kernels.promotion import Dtype, computing_dtype, floating


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
