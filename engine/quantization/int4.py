"""Weights as 4-bit integers: symmetric, with a scale for each group of inputs of a filter."""

import math

import numpy as np

from engine.dtypes import Array

GROUP = 32
"""Input features that share a scale."""
LARGEST_WEIGHT = 7
"""-8 is left out, so that the integers are symmetric."""
_AT_ONCE = 1 << 16
"""Weights that are rounded at a time."""
_SCALES = 2.0**-100, 146 * 2.0**118
"""Least and largest scale: products with 4-bit integers are normal numbers. They are numbers of bfloat16 themselves."""


def int4_scales(weight: Array) -> Array:
    """Return the scales of weights: max |w| / 7 of a group, rounded up to bfloat16.

    So 4-bit integers times scale are exact in float32, and to quantize them again gives the same integers and scales.

    Args:
        weight: finite float32 (filters, features), the features a multiple of 32.

    Returns:
        float32 (filters, features / 32).
    """
    groups = weight.reshape(len(weight), -1, GROUP)
    bits = (np.abs(groups).max(axis=2) / np.float32(LARGEST_WEIGHT)).view(np.uint32)
    scales = ((bits + np.uint32(0xFFFF)) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.clip(scales, *map(np.float32, _SCALES))


def int4_weights(weight: Array) -> tuple[Array, Array]:
    """Return float32 weights as integers, w / scale rounded half to even, and scales; see `int4_scales`.

    Returns:
        int8 (filters, features), -7 to 7; and float32 (filters, features / 32).
    """
    scales = int4_scales(weight)
    groups = weight.reshape(*scales.shape, GROUP)
    return np.rint(groups / scales[..., None]).astype(np.int8).reshape(weight.shape), scales


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
    return difference / max(math.hypot(*(float(np.linalg.norm(row)) for row in weight)), _SCALES[0])
