"""Interleaved timing: contenders take turns, so that whatever else the machine does meets them all alike."""

from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter


def interleave(
    contenders: Mapping[str, Callable[[], object]], rounds: int, warmup: int = 3
) -> dict[str, float]:
    """Return the median seconds of each contender over `rounds` turns."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(warmup + rounds):
        for name, call in contenders.items():
            started = perf_counter()
            call()
            if turn >= warmup:
                times[name].append(perf_counter() - started)
    return {name: median(taken) for name, taken in times.items()}
