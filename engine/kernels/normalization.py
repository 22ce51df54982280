"""Normalisation of groups of elements to mean 0 and variance 1, or to mean square 1."""

import math
from collections.abc import Sequence

import numpy as np

from engine.dtypes import Array
from engine.kernels.casting import narrow, widen
from engine.kernels.sums import total


def scale_and_shift(
    x: Array, mean: Array, variance: Array, weight: Array | None, bias: Array | None, eps: float
) -> Array:
    """Normalise each channel (axis 1) by given statistics: (x - mean) / √(variance + eps) · weight + bias.

    Folded to one multiplication and one addition per element. Statistics and parameters are (channels).
    """
    computed = widen(x)
    scale = 1 / np.sqrt(widen(variance) + eps)
    if weight is not None:
        scale = scale * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    per_channel = (-1,) + (1,) * (x.ndim - 2)
    out = np.multiply(computed, scale.reshape(per_channel), dtype=computed.dtype)
    out += shift.reshape(per_channel)
    return narrow(out, x.dtype)


def channel_statistics(x: Array) -> tuple[Array, Array]:
    """Return mean and (biased) variance of each channel (axis 1) of an array, as vectors."""
    computed = widen(x)
    axes = (0, *range(2, x.ndim))
    count = x.size // max(x.shape[1], 1)
    mean = total(computed, axes, keepdims=True) / count
    variance = total(np.square(computed - mean), axes) / count
    return mean.reshape(-1), variance


def standardize(rows: Array, eps: float) -> Array:
    """Give every row of (…, elements) mean 0 and variance 1: (x - mean) / √(variance + eps). A new array."""
    count = np.float32(rows.shape[-1])
    centred: Array = np.subtract(rows, rows.sum(axis=-1, keepdims=True) / count)
    variance = np.vecdot(centred, centred)[..., np.newaxis] / count
    centred *= 1 / np.sqrt(variance + eps)
    return centred


def layer_norm(x: Array, axes: int, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """Standardise over the last `axes` axes, then multiply by `weight` and add `bias`, both of those axes' shape."""
    return narrow(_affine(standardize(_rows(widen(x), axes), eps).reshape(x.shape), weight, bias), x.dtype)


def rms_norm(x: Array, axes: int, weight: Array | None, eps: float) -> Array:
    """Divide by √(mean(x²) + eps) over the last `axes` axes, then multiply by `weight`, of those axes' shape."""
    rows = _rows(widen(x), axes)
    mean_square = np.vecdot(rows.conj() if rows.dtype.kind == "c" else rows, rows)[
        ..., np.newaxis
    ] / np.float32(rows.shape[-1])
    out = np.multiply(rows, 1 / np.sqrt(mean_square + eps))
    return narrow(_affine(out.reshape(x.shape), weight, None), x.dtype)


def group_norm(x: Array, groups: int, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """Standardise (batch, channels, …) over each of so many groups of channels, then scale and shift channels."""
    batch, channels = x.shape[:2]
    size = math.prod(x.shape[1:]) // max(groups, 1)
    out = standardize(widen(x).reshape(batch, groups, size), eps).reshape(x.shape)
    per_channel = (channels,) + (1,) * (x.ndim - 2)
    return narrow(_affine(out, _shaped(weight, per_channel), _shaped(bias, per_channel)), x.dtype)


def _rows(x: Array, axes: int) -> Array:
    leading = x.shape[: x.ndim - axes]
    return x.reshape(*leading, math.prod(x.shape[x.ndim - axes :]))


def _shaped(vector: Array | None, shape: Sequence[int]) -> Array | None:
    return None if vector is None else vector.reshape(shape)


def _affine(out: Array, weight: Array | None, bias: Array | None) -> Array:
    """Multiply and add in place."""
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias
    return out


def local_response_norm(x: Array, size: int, alpha: float, beta: float, k: float) -> Array:
    """Divide (batch, channels, …) by (k + alpha · mean)^beta.

    The mean is of the squares in the `size` channels around each; channels beyond the ends count as 0.
    """
    computed = widen(x)
    before = size // 2
    margins = [(0, 0), (before, size - 1 - before)] + [(0, 0)] * (x.ndim - 2)
    squares = np.pad(np.square(computed), margins)
    total = squares[:, : x.shape[1]].copy()
    for offset in range(1, size):
        total += squares[:, offset : offset + x.shape[1]]
    total *= alpha / size
    total += k
    return narrow(computed / np.power(total, beta, out=total), x.dtype)
