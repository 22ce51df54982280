"""How long runs of many rows take, as far as earlier ones tell."""

from typing import Any

from service.scheduling.job import Job

LIGHT_ROWS = 16
"""Runs of so many rows, or of a whole batch, are light whatever they take: any request may ask for them."""
_LIGHT_SECONDS = 0.05
"""Most seconds that a run of more rows may be expected to take which any worker does."""
_WEIGHT = 0.25
"""Weight of the latest run in the moving average."""


class RunEstimate:
    """Estimates how long the runs of one model take that have more rows than requests usually bring.

    Threads use it side by side; what they may spoil is an estimate.

    Args:
        max_batch_size: most rows of a run of several calls.
    """

    __slots__ = ("_row_seconds", "light_rows")

    def __init__(self, max_batch_size: int) -> None:
        self.light_rows = max(LIGHT_ROWS, max_batch_size)
        self._row_seconds: float | None = None

    def is_large(self, job: Job[Any]) -> bool:
        """Return whether the run of a decoded call has many rows, and is not known to be short for all that."""
        rows = job.rows
        if rows <= self.light_rows:
            return False
        seconds = self._row_seconds
        return seconds is None or job.is_observed or rows * seconds > _LIGHT_SECONDS

    def observe(self, job: Job[Any]) -> None:
        """Take in how long a run took."""
        times = job.timestamps
        if job.rows <= self.light_rows or job.is_observed or not times.forward_end:
            return
        latest = (times.forward_end - times.forward_start) / 1e9 / job.rows
        known = self._row_seconds
        self._row_seconds = latest if known is None else known + _WEIGHT * (latest - known)
