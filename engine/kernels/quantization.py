"""Integers for real numbers and back, as PyTorch's quantized CPU kernels compute them.

An integer q represents the real number (q - zero point) * scale. Scales are float32 in computations.
"""

from typing import Any

import numpy as np

from engine.dtypes import Array
from engine.errors import ArgumentError


def check_quantization(scale: float, zero_point: int, dtype: np.dtype[Any]) -> None:
    """Check the quantization parameters of integers of `dtype`.

    Raises:
        ArgumentError: the scale is not above zero, or the dtype cannot hold the zero point.
    """
    floats = np.finfo(np.float32)
    if not float(floats.tiny) <= scale <= float(floats.max):
        raise ArgumentError("scale", f"got {scale}", "a float32 above 0")
    limits = np.iinfo(dtype)
    if not limits.min <= zero_point <= limits.max:
        raise ArgumentError("zero_point", f"got {zero_point}", f"{limits.min} to {limits.max}")


def quantize(real: Array, scale: float, zero_point: int, dtype: np.dtype[Any]) -> Array:
    """Quantize real numbers to `dtype`: rounded half to even, saturated; NaN is the largest.

    x / scale + zero point is rounded once to float32, as a fused multiply-add by 1 / scale does, then to an integer.
    """
    inverse = np.float32(1) / np.float32(scale)
    scaled = np.asarray(real, np.float64) * float(inverse) + zero_point
    return saturate(np.rint(scaled.astype(np.float32)), dtype)


def saturate(whole: Array, dtype: np.dtype[Any]) -> Array:
    """Return whole numbers, given as floats, as integers of `dtype`, those out of range as its nearest; NaN last."""
    limits = np.iinfo(dtype)
    bounded = np.fmax(np.fmin(whole.astype(np.float64), limits.max), limits.min)
    return np.asarray(bounded, dtype)


def dequantize(values: Array, scale: float, zero_point: int) -> Array:
    """Dequantize integers to float32."""
    real: Array = (values.astype(np.int64) - zero_point).astype(np.float32) * np.float32(scale)
    return np.asarray(real)


def requantize(
    sums: Array,
    bias: Array | None,
    sum_scales: Array,
    scale: float,
    zero_point: int,
    dtype: np.dtype[Any],
    relu: bool = False,
) -> Array:
    """Return the integers of `dtype` for sums of products of integers.

    Args:
        sums: whole numbers.
        bias: real numbers that are added, broadcastable to `sums`, or None.
        sum_scales: float32, broadcastable to `sums`: their scales.
        scale: scale of the result.
        zero_point: zero point of the result.
        dtype: dtype of the result.
        relu: whether negative numbers become zero.
    """
    scaled = sums.astype(np.float32)
    if bias is not None:
        scaled += bias * (np.float32(1) / sum_scales)
    scaled *= sum_scales / np.float32(scale)
    whole = np.rint(scaled, out=scaled) + np.float64(zero_point)
    return saturate(np.fmax(whole, zero_point) if relu else whole, dtype)
