"""Weights as 8-bit integers: symmetric, with a scale for each filter."""

from dataclasses import dataclass

import numpy as np

from engine.dtypes import Array
from engine.errors import BuildError
from engine.quantization.tensor_scale import LARGEST

_LARGEST_WEIGHT = 127
"""-128 is left out, so that the integers are symmetric."""
LARGEST_MAGNITUDE = 128
"""Largest magnitude of weights quantized by PyTorch: their least integer is -128."""
MAX_TERMS = (2**31 - 1) // (LARGEST * LARGEST_MAGNITUDE)
"""Products that a 32-bit sum is sure to hold, whatever they are."""
_LEAST_SCALE = 1e-30
_AT_ONCE = 1 << 16
"""Weights that become integers at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedWeights:
    """The weights of a convolution or linear layer.

    Attributes:
        integers: int8, in the shape of the weights; filters come first. What `quantize_weights` gives is symmetric.
        scales: float32 (filters,), one per filter.
    """

    integers: Array
    scales: Array

    @property
    def terms(self) -> int:
        """Products that are summed for one result."""
        return int(self.integers[0].size)


def quantize_weights(weight: Array) -> QuantizedWeights:
    """Return float32 weights as integers: w / scale, rounded half to even, where scale is max |w| / 127 of a filter.

    Raises:
        BuildError: a weight is not finite, or a 32-bit sum may overflow.
    """
    if not all(np.isfinite(part).all() for part in weight):
        raise BuildError(
            "weights are not all finite; expected finite numbers where a layer is to run in int8"
        )
    if weight[0].size > MAX_TERMS:
        raise BuildError(f"{weight[0].size} products for each result; int8 takes at most {MAX_TERMS}")
    flat = weight.reshape(len(weight), -1)
    integers = np.empty(flat.shape, np.int8)
    scales = np.empty(len(flat), np.float32)
    few = max(1, _AT_ONCE // flat.shape[1])
    for first in range(0, len(flat), few):  # all at once would take the memory of three more such weights
        part = slice(first, first + few)
        largest = np.abs(flat[part]).max(axis=1)
        scales[part] = np.maximum(largest / np.float32(_LARGEST_WEIGHT), np.float32(_LEAST_SCALE))
        steps = np.rint(flat[part] / scales[part, None])
        integers[part] = np.clip(steps, -_LARGEST_WEIGHT, _LARGEST_WEIGHT)
    return QuantizedWeights(integers.reshape(weight.shape), scales)
