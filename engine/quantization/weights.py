"""Weights as 8-bit integers: symmetric, with a scale for each filter."""

from dataclasses import dataclass

import numpy as np

from engine.dtypes import Array
from engine.errors import BuildError
from engine.quantization.tensor_scale import LARGEST

_LARGEST_WEIGHT = 127
"""-128 is left out, so that the integers are symmetric."""
LARGEST_MAGNITUDE = 128
"""That of weights which PyTorch quantized: -128 is among them."""
MOST_TERMS = (2**31 - 1) // (LARGEST * LARGEST_MAGNITUDE)
"""Products that a 32-bit sum is sure to hold, whatever they are."""
_LEAST_SCALE = 1e-30


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedWeights:
    """The weights of a convolution or linear layer.

    Attributes:
        integers: int8, in the shape of the weights; filters come first. What `quantize_weights` gives is symmetric.
        scales: float32 (filters,), what 1 stands for in each of them.
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
    if not np.isfinite(weight).all():
        raise BuildError(
            "weights are not all finite; expected finite numbers where a layer is to run in int8"
        )
    if weight[0].size > MOST_TERMS:
        raise BuildError(f"{weight[0].size} products for each result; int8 takes at most {MOST_TERMS}")
    flat = weight.reshape(len(weight), -1)
    largest = np.abs(flat).max(axis=1)
    scales = np.maximum(largest / np.float32(_LARGEST_WEIGHT), np.float32(_LEAST_SCALE)).astype(np.float32)
    steps = np.rint(flat / scales[:, None])
    integers = np.clip(steps, -_LARGEST_WEIGHT, _LARGEST_WEIGHT).astype(np.int8)
    return QuantizedWeights(integers.reshape(weight.shape), scales)
