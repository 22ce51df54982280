"""Histogram of a tensor's values over all examples."""

from dataclasses import dataclass

import numpy as np

from engine.dtypes import Array
from engine.quantization.tensor_scale import TensorScale, scale_of

_BINS = 4096
_SHRINKS = 80
"""Ranges that are tried for the least squared error, from the whole one down to a part of it."""
_LEAST_SHRINK = 0.1


@dataclass(slots=True)
class Extent:
    """The least and the greatest finite value of a tensor so far."""

    low: float = np.inf
    high: float = -np.inf

    def add(self, array: Array) -> bool:
        """Take the values of one example; returns whether all of them are finite."""
        finite = array[np.isfinite(array)]
        if finite.size:
            self.low = min(self.low, float(finite.min()))
            self.high = max(self.high, float(finite.max()))
        return finite.size == array.size

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest value, and 0 where there are none."""
        return (self.low, self.high) if self.low <= self.high else (0.0, 0.0)

    @property
    def width(self) -> float:
        """The range to quantize: from the least value to the greatest, 0 included."""
        low, high = self.bounds
        return max(high, 0.0) - min(low, 0.0)

    def joined(self, other: "Extent") -> "Extent":
        """Return the extent of the values of both."""
        return Extent(min(self.low, other.low), max(self.high, other.high))


class Histogram:
    """How many values of a tensor lie in each of many even parts of its extent.

    Args:
        extent: extent of the values.
    """

    def __init__(self, extent: Extent) -> None:
        self._low, self._high = extent.bounds
        self._counts = np.zeros(_BINS)

    def add(self, array: Array) -> None:
        """Count the values of one example."""
        if self._high > self._low:
            # float32 has too few numbers between the ends of a narrow extent for so many parts
            finite = array[np.isfinite(array)].astype(np.float64)
            self._counts += np.histogram(finite, _BINS, (self._low, self._high))[0]

    def scale(self, method: str, percentile: float) -> TensorScale:
        """Return the integers for the tensor.

        Args:
            method: "minmax" for all values, "percentile" for that part of them, in the middle, "mse" for the least
                mean squared error.
            percentile: percentage of the values within the range of the method "percentile".
        """
        if method == "minmax" or self._high <= self._low:
            return scale_of(self._low, self._high)
        if method == "percentile":
            return scale_of(*self._middle(percentile / 100))
        return self._least_error()

    def _middle(self, part: float) -> tuple[float, float]:
        sums = np.cumsum(self._counts) / max(self._counts.sum(), 1.0)
        rest = (1 - part) / 2
        first = int(np.searchsorted(sums, rest, side="right"))
        last = int(np.searchsorted(sums, 1 - rest))
        step = (self._high - self._low) / _BINS
        return self._low + min(first, _BINS - 1) * step, self._low + (min(last, _BINS - 1) + 1) * step

    def _least_error(self) -> TensorScale:
        """Return the scale whose integers give the values back with the least mean squared error."""
        step = (self._high - self._low) / _BINS
        middles = (self._low + (np.arange(_BINS) + 0.5) * step).astype(np.float32)
        best, least = scale_of(self._low, self._high), np.inf
        largest = max(-self._low, self._high)
        for most in np.geomspace(largest, _LEAST_SHRINK * largest, _SHRINKS).tolist():
            scale = scale_of(max(self._low, -most), min(self._high, most))
            # rounding within the range has a mean squared error of scale² / 12: bins may be wider than steps
            off = np.abs(scale.rounded(middles) - middles).astype(np.float64)
            errors = np.where(off <= scale.scale, scale.scale**2 / 12, off**2)
            total = float((self._counts * errors).sum())
            if total < least:
                best, least = scale, total
        return best
