"""Histograms, as Prometheus reads them."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from math import inf

REQUEST_SECONDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
"""Bounds for the times of a request, in seconds: a small model takes a tenth of a millisecond, a large one seconds."""
LAYER_SECONDS = (1e-6, 5e-6, 1e-5, 5e-5, 1e-4, 5e-4, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0)
"""Bounds for the time of one layer, in seconds."""
BATCH_SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
"""Bounds for the number of items of a run."""
HTTP_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Bounds that OpenTelemetry's semantic conventions state for `http.server.request.duration`, in seconds."""


class Histogram:
    """Counts how many values were no larger than each bound.

    Written by one thread; others may read meanwhile.

    Args:
        bounds: upper bounds, in ascending order; infinity is added as the last one.
    """

    __slots__ = ("_counts", "bounds", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.total = 0.0
        self._counts = [0] * (len(bounds) + 1)

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        """Number of values that were counted."""
        return sum(self._counts)

    def counts(self) -> list[int]:
        """Return the number of values of each class: up to each bound and above the one before, and above the last."""
        return list(self._counts)

    def numbers(self) -> list[float]:
        """Return the number of values of each class, and at the end the sum of all values."""
        return [*self._counts, self.total]

    def add(self, numbers: Sequence[float]) -> None:
        """Add what `numbers` returned of another histogram with the same bounds."""
        *counts, total = numbers
        self._counts = [own + int(other) for own, other in zip(self._counts, counts, strict=True)]
        self.total += total

    def cumulative(self) -> list[tuple[float, int]]:
        """Return each bound with the number of values up to it; the last bound is infinity."""
        return list(zip((*self.bounds, inf), accumulate(self._counts), strict=True))
