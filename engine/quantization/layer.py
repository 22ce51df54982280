"""A convolution or linear layer in 8-bit integers, computed by numpy: what compiled kernels are compared with.

The input becomes integers, products of integers are summed exactly, and the sums become float32 again:

    y = float32(sum of (q - zero point) * w) * (input scale * filter scale) + bias

Each operation is rounded to float32 once, in this order.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.dtypes import Array
from engine.quantization.scheme import Activation
from engine.quantization.tensor_scale import LARGEST, TensorScale
from engine.quantization.weights import LARGEST_MAGNITUDE, QuantizedWeights

_EXACT = 2**24
"""Sums below this are exact in float32, in whichever order they are made."""
_PART_BYTES = 1 << 22
"""Bytes of weights that become floats at a time, if they are of one group."""
DYNAMIC_LEVELS = 127
"""The largest integer that a row's own scale gives, on either side of 0."""
DYNAMIC_BOUNDS = (1e-30, 1e30)
"""Between these the largest magnitude of a row is taken to be: its scale and their products stay normal numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Int8Layer:
    """How an operator computes with integers.

    Attributes:
        forward: the layer's own function, which is given whole numbers as floats.
        static: its arguments that do not change, weight and bias left out.
        weights: the weights as integers.
        bias: float32 (filters,), or None.
        input_scale: scale of its input; None where each row has its own.
        channel_axis: axis of the result that filters lie along, counted from the last, below 0.
        relu: whether results below 0 become 0.
    """

    forward: Callable[..., Array]
    static: Mapping[str, Any]
    weights: QuantizedWeights
    bias: Array | None
    input_scale: TensorScale | None
    channel_axis: int
    relu: bool = False

    @property
    def activation(self) -> Activation:
        """Source of its input's scale."""
        return Activation.DYNAMIC if self.input_scale is None else Activation.STATIC

    def run(self, input: Array) -> Array:
        """Compute the layer, in float32 whatever the input's dtype is; returns that."""
        x = input
        if self.input_scale is None:
            steps, row_scales = dynamic_steps(x)
            real = self._sums(steps) * self._per_channel(self.weights.scales) * row_scales
        else:
            steps = self.input_scale.integers(x).astype(np.float32) - self.input_scale.zero_point
            factors = np.float32(self.input_scale.scale) * self.weights.scales
            real = self._sums(steps) * self._per_channel(factors)
        real = real if self.bias is None else real + self._per_channel(self.bias)
        return np.asarray(np.maximum(real, 0) if self.relu else real, input.dtype)

    def _sums(self, steps: Array) -> Array:
        """Return the sums of products of whole numbers, exact, then rounded to float32."""
        dtype = np.float32 if self.weights.terms * LARGEST * LARGEST_MAGNITUDE < _EXACT else np.float64
        steps = steps.astype(dtype)
        parts = []
        for weight in self._parts(dtype().itemsize):
            sums = self.forward(input=steps, weight=weight.astype(dtype), bias=None, **self.static)
            parts.append(sums.astype(np.float32))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=self.channel_axis)

    def _parts(self, width: int) -> Iterator[Array]:
        """Yield the filters, some at a time: as floats all would take eight times their memory.

        Args:
            width: bytes of an element when it is multiplied.
        """
        weight = self.weights.integers
        few = max(1, _PART_BYTES // (self.weights.terms * width))
        if self.static.get("groups", 1) != 1:  # a filter knows its channels by its place among all of them
            few = len(weight)
        yield from (weight[first : first + few] for first in range(0, len(weight), few))

    def _per_channel(self, values: Array) -> Array:
        return values.reshape(-1, *(1,) * (-1 - self.channel_axis))


def dynamic_steps(x: Array) -> tuple[Array, Array]:
    """Return rows of the last axis as whole numbers of -127 to 127, and the scale of each row.

    The scale of a row that holds an infinity or NaN is NaN, and so are its results.

    Args:
        x: float32 (…, elements).

    Returns:
        The whole numbers as float32 in the same shape, and the scales, float32 (…, 1).
    """
    least, greatest = map(np.float32, DYNAMIC_BOUNDS)
    magnitude = np.fmax.reduce(np.abs(x), axis=-1, keepdims=True, initial=0)
    magnitude = np.fmin(np.fmax(magnitude, least), greatest)
    levels = np.float32(DYNAMIC_LEVELS)
    scaled = x * (levels / magnitude)
    bounded = np.fmin(np.fmax(np.where(np.isnan(scaled), 0, scaled), -levels), levels)
    zero = np.where(np.isfinite(x).all(axis=-1, keepdims=True), np.float32(0), np.float32(np.nan))
    return np.rint(bounded), magnitude * (np.float32(1) / levels) + zero
