"""From the clock that times things to the one that dates them."""

from time import perf_counter_ns, time_ns


def epoch_offset_ns() -> int:
    """Return what to add to a reading of `time.perf_counter_ns` to have nanoseconds since the epoch."""
    return time_ns() - perf_counter_ns()
