"""Sums and what is made of them, over any dimensions, in the precision that PyTorch computes in."""

from math import prod
from typing import Any

import numpy as np

from engine.dtypes import Array
from engine.kernels.casting import cast
from engine.kernels.promotion import computing_dtype, real_dtype
from engine.kernels.sums import total


def _working(x: Array) -> Array:
    return cast(x, computing_dtype(x.dtype))


def _count(x: Array, axes: tuple[int, ...]) -> float:
    return float(prod(x.shape[axis] for axis in axes))


def mean(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Return the average over `axes`, float32 where `x` is float16; NaN over nothing.

    Unlike `np.mean` it does not warn of that.
    """
    summed = total(_working(x), axes, keepdims)
    return np.asarray(summed / summed.dtype.type(_count(x, axes)))


def variance(x: Array, axes: tuple[int, ...], correction: float, keepdims: bool) -> Array:
    """Return the mean squared distance from the mean, with the count of values reduced by `correction`.

    It is computed in double precision, as in PyTorch, where no square of a float32 overflows, or vanishes.

    Args:
        x: float or complex array.
        axes: dimensions to reduce.
        correction: 1 for an unbiased estimate, 0 for the population's; a count that it uses up makes NaN or infinity.
        keepdims: whether the dimensions stay, with size 1.

    Returns:
        float64 array.
    """
    values = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    centred = values - mean(values, axes, keepdims=True)
    squares = np.square(centred.real) + np.square(centred.imag) if x.dtype.kind == "c" else np.square(centred)
    divisor = squares.dtype.type(max(_count(x, axes) - correction, 0.0))
    return np.asarray(total(squares, axes, keepdims) / divisor)


def norm(x: Array, p: float, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Return the p-norm of vectors that lie along `axes`; p may be infinite, 0 (a count) or negative."""
    sizes = np.abs(_working(x))
    options: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    if np.isposinf(p):
        return np.asarray(np.max(sizes, **options))
    if np.isneginf(p):
        return np.asarray(np.min(sizes, **options))
    if p == 0:
        return np.asarray(np.sum(sizes != 0, dtype=real_dtype(sizes.dtype), **options))
    if p == 1:
        return total(sizes, axes, keepdims)
    if p == 2:
        return np.asarray(np.sqrt(total(np.square(sizes), axes, keepdims)))
    return np.asarray(total(sizes**p, axes, keepdims) ** (1 / p))


def logsumexp(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Return the logarithm of the sum of exponentials, without overflow."""
    values = _working(x)
    if not values.size:
        return np.asarray(np.log(np.sum(np.exp(values), axes, keepdims=keepdims)))
    peak = np.max(values.real, axes, keepdims=True)
    peak = np.where(np.isinf(peak), 0, peak).astype(peak.dtype)
    logarithm = np.log(total(np.exp(values - peak), axes, keepdims=True)) + peak
    return np.asarray(logarithm if keepdims else np.squeeze(logarithm, axes))
