"""Weights as 4-bit integers, with a scale for each group of inputs of a filter, as ggml's Q4_0."""

import math

import numpy as np

from engine.dtypes import Array

GROUP = 32
"""Input features that share a scale."""
_LEAST, _MAX = -8, 7
_LEAST_SCALE = 2.0**-100
"""Least magnitude of a scale: products with it are normal numbers."""
_AT_ONCE = 1 << 16
"""Weights that are rounded at a time."""


def int4_scales(weight: Array) -> Array:
    """Return the scales of weights: w / -8 of the weight of the largest magnitude of a group.

    That weight becomes -8, and stays as it is. So weights that were rounded before have the same scale again.

    Args:
        weight: finite float32 (filters, features), the features a multiple of 32.

    Returns:
        float32 (filters, features / 32), of either sign.
    """
    groups = weight.reshape(len(weight), -1, GROUP)
    lowest, highest = groups.min(axis=2), groups.max(axis=2)
    scales = np.where(-lowest > highest, lowest, highest) / np.float32(_LEAST)
    bounded: Array = np.copysign(np.maximum(np.abs(scales), np.float32(_LEAST_SCALE)), scales)
    return bounded


def int4_weights(weight: Array) -> tuple[Array, Array]:
    """Return float32 weights as integers, w / scale rounded half to even, and scales; see `int4_scales`.

    Returns:
        int8 (filters, features), -8 to 7; and float32 (filters, features / 32).
    """
    scales = int4_scales(weight)
    steps = np.rint(weight.reshape(*scales.shape, GROUP) / scales[..., None])
    return np.minimum(steps, _MAX).astype(np.int8).reshape(weight.shape), scales


def rounded_to_int4(weight: Array) -> Array:
    """Return float32 weights (filters, features) quantized and dequantized; see `int4_scales`."""
    rounded = np.empty(weight.shape, np.float32)
    few = max(1, _AT_ONCE // weight.shape[1])
    for first in range(0, len(weight), few):  # all at once would take the memory of three more such weights
        integers, scales = int4_weights(weight[first : first + few])
        groups = rounded[first : first + few].reshape(*scales.shape, GROUP)
        np.multiply(integers.reshape(groups.shape), scales[..., None], out=groups)
    return rounded


def rounding_error(weight: Array, rounded: Array) -> float:
    """Return how far rounded weights are from weights, in Euclidean norms, relative to the weights."""
    pairs = zip(weight, rounded, strict=True)
    difference = math.hypot(*(float(np.linalg.norm(one - other)) for one, other in pairs))
    return difference / max(math.hypot(*(float(np.linalg.norm(row)) for row in weight)), _LEAST_SCALE)
