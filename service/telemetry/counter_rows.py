"""Statistics as rows of numbers that can be added up, for processes that count apart and show the sum."""

from collections.abc import Iterator, Sequence
from itertools import islice

from service.telemetry.statistics import BatchStatistics, Duration, ModelStatistics

_DURATIONS = (
    *("success", "fail", "queue", "compute_input", "compute_infer", "compute_output"),
    *("cache_hit", "cache_miss"),
)
_BATCH_DURATIONS = ("compute_input", "compute_infer", "compute_output")
_HISTOGRAMS = ("request_seconds", "queue_seconds", "compute_seconds", "batch_sizes", "observed_seconds")


def numbers_of_model(model: ModelStatistics) -> list[float]:
    """Return what was counted of a model, but for its batches and layers."""
    numbers: list[float] = [model.last_inference, model.inference_count, model.execution_count]
    for name in _DURATIONS:
        duration: Duration = getattr(model, name)
        numbers += (duration.count, duration.ns)
    numbers += model.failures.values()
    for name in _HISTOGRAMS:
        numbers += getattr(model, name).numbers()
    return numbers


def add_to_model(model: ModelStatistics, numbers: Sequence[float]) -> None:
    """Add what `numbers_of_model` returned of the same model in another process."""
    left = iter(numbers)
    last, items, runs = _take(left, 3)
    model.last_inference = max(model.last_inference, last)
    model.inference_count += items
    model.execution_count += runs
    for name in _DURATIONS:
        _add_duration(getattr(model, name), left)
    for status, count in zip(list(model.failures), _take(left, len(model.failures)), strict=True):
        model.failures[status] += count
    for name in _HISTOGRAMS:
        histogram = getattr(model, name)
        histogram.add(list(islice(left, len(histogram.numbers()))))


def numbers_of_batch(batch: BatchStatistics) -> list[float]:
    """Return what was counted of runs of one batch size."""
    durations: list[Duration] = [getattr(batch, name) for name in _BATCH_DURATIONS]
    return [number for duration in durations for number in (duration.count, duration.ns)]


def add_to_batch(batch: BatchStatistics, numbers: Sequence[float]) -> None:
    """Add what `numbers_of_batch` returned of the same size in another process."""
    left = iter(numbers)
    for name in _BATCH_DURATIONS:
        _add_duration(getattr(batch, name), left)


def _add_duration(duration: Duration, left: Iterator[float]) -> None:
    count, ns = _take(left, 2)
    duration.count += count
    duration.ns += ns


def _take(left: Iterator[float], count: int) -> list[int]:
    return [int(number) for number in islice(left, count)]
