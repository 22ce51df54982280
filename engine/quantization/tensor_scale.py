"""Per-tensor quantization of float32 to 8-bit integers.

An integer q of 0 to 255 represents the real number (q - zero point) * scale. Everything here is computed in float32, in
the order in which compiled kernels compute it, so that both give the same integers to the bit.
"""

from dataclasses import dataclass

import numpy as np

from engine.dtypes import Array

LARGEST = 255
"""The largest quantized value; the smallest is 0."""


@dataclass(frozen=True, slots=True)
class TensorScale:
    """Quantization parameters of one tensor.

    Attributes:
        scale: the scale; a positive float32 whose reciprocal is finite.
        zero_point: the integer of 0, 0 to 255.
        rounds_sum: whether the zero point is added before the number is rounded, as PyTorch's `quantize` does, rather
            than after, as its convolutions do: it decides how a number half-way between two integers is rounded.
        lowest: the integer that PyTorch has where 0 is here, -128 for its int8: such a sum is rounded to float32 before
            it is rounded to an integer, and how coarsely depends on how large it is there.
    """

    scale: float
    zero_point: int
    rounds_sum: bool = False
    lowest: int = 0

    @property
    def inverse(self) -> float:
        """The factor 1 / scale, rounded to float32."""
        return float(np.float32(1) / np.float32(self.scale))

    @property
    def is_of_zeros(self) -> bool:
        """Whether it is the scale of an all-zero tensor: any other number saturates to about 0."""
        return self.scale <= float(np.float32(_LEAST_SCALE))

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the greatest representable number."""
        low, high = self.real(np.array([0, LARGEST], np.uint8)).tolist()
        return low, high

    def integers(self, real: Array) -> Array:
        """Quantize numbers to uint8: rounded half to even, saturated.

        NaN counts as the least number, and where the sum is rounded, as in PyTorch, as the largest one.
        """
        if self.rounds_sum:
            # in double precision: the sum is rounded to float32 once, as a fused multiply-add does
            product = np.asarray(real, np.float32).astype(np.float64) * self.inverse
            summed = (product + (self.zero_point + self.lowest)).astype(np.float32)
            bounded = np.fmax(np.fmin(summed, self.lowest + LARGEST), self.lowest)
            return np.asarray(np.rint(bounded) - self.lowest, np.uint8)
        scaled = np.asarray(real, np.float32) * np.float32(self.inverse)
        bounded = np.fmin(np.fmax(scaled, -self.zero_point), LARGEST - self.zero_point)
        return np.asarray(np.rint(bounded) + self.zero_point, np.uint8)

    def real(self, integers: Array) -> Array:
        """Dequantize integers to float32."""
        steps = integers.astype(np.int32) - self.zero_point
        return np.asarray(steps.astype(np.float32) * np.float32(self.scale))

    def rounded(self, real: Array) -> Array:
        """Quantize and dequantize numbers."""
        return self.real(self.integers(real))


def scale_of(low: float, high: float) -> TensorScale:
    """Return the finest integers that reach from one number to another, and to 0, which is one of them exactly.

    Args:
        low: the least number.
        high: the greatest one.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    scale = float(np.float32(max((high - low) / LARGEST, _LEAST_SCALE)))
    return TensorScale(scale, int(np.clip(round(-low / scale), 0, LARGEST)))


_LEAST_SCALE = 1e-30
"""Least scale, of tensors of zeros: its reciprocal is far from the end of float32."""
