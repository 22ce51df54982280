"""Dates for the readings of a clock that only measures durations."""

from time import perf_counter_ns, time_ns


def epoch_offset_ns() -> int:
    """Return what to add to a reading of `time.perf_counter_ns` to get nanoseconds since the epoch."""
    return time_ns() - perf_counter_ns()
