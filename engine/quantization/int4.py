"""Weights as 4-bit integers: symmetric, with a scale for each group of inputs of a filter."""

import numpy as np

from engine.dtypes import Array

GROUP = 32
"""Input features that share a scale."""
LARGEST_WEIGHT = 7
"""-8 is left out, so that the integers are symmetric."""
_SCALES = 2.0**-100, 146 * 2.0**118
"""Least and largest scale: products with 4-bit integers are normal numbers. They are numbers of bfloat16 themselves."""


def int4_weights(weight: Array) -> tuple[Array, Array]:
    """Return float32 weights as integers: w / scale, rounded half to even.

    The scale is max |w| / 7 of a group, rounded up to bfloat16. So integers times scale are exact in float32, and to
    quantize them again gives the same integers and scales.

    Args:
        weight: finite float32 (filters, features), the features a multiple of 32.

    Returns:
        The integers, int8 (filters, features), -7 to 7; and the scales, float32 (filters, features / 32).
    """
    groups = weight.reshape(len(weight), -1, GROUP)
    bits = (np.abs(groups).max(axis=2) / np.float32(LARGEST_WEIGHT)).view(np.uint32)
    scales = ((bits + np.uint32(0xFFFF)) & np.uint32(0xFFFF0000)).view(np.float32)
    scales = np.clip(scales, *map(np.float32, _SCALES))
    return np.rint(groups / scales[..., None]).astype(np.int8).reshape(weight.shape), scales


def rounded_to_int4(weight: Array) -> Array:
    """Return float32 weights (filters, features) quantized and dequantized; see `int4_weights`."""
    integers, scales = int4_weights(weight)
    groups = integers.reshape(*scales.shape, GROUP).astype(np.float32)
    groups *= scales[..., None]
    return groups.reshape(weight.shape)
