"""Softmax and its logarithm along one axis."""

import numpy as np

from engine.dtypes import Array
from engine.kernels.precision import narrow, widen
from engine.kernels.sums import total


def softmax(x: Array, axis: int) -> Array:
    """Compute exp(x) / sum(exp(x)) along `axis`, float16 in float32. A new array of `x`'s shape and dtype."""
    if x.size == 0:
        return x.copy()
    shifted = _shifted(x, axis)
    np.exp(shifted, out=shifted)
    shifted /= total(shifted, (axis,), keepdims=True)
    return narrow(shifted, x.dtype)


def log_softmax(x: Array, axis: int) -> Array:
    """Compute x - log(sum(exp(x))) along `axis`, float16 in float32. A new array of `x`'s shape and dtype."""
    if x.size == 0:
        return x.copy()
    shifted = _shifted(x, axis)
    shifted -= np.log(total(np.exp(shifted), (axis,), keepdims=True))
    return narrow(shifted, x.dtype)


def _shifted(x: Array, axis: int) -> Array:
    """Draw the largest element along `axis` to 0, so that no exponential overflows."""
    computed = widen(x)
    shifted: Array = np.subtract(computed, computed.max(axis=axis, keepdims=True))
    return shifted
