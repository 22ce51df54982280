"""The statistics of one version of a model, as they are read from the metrics."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from prometheus_client.utils import floatToGoString

from service.histogram import REQUEST_SECONDS

Samples = Mapping[str, Mapping[tuple[str, ...], float]]
"""Name of a sample -> values of its labels but model and version, in their order -> its value."""

RUN_STAGES = ("input", "infer", "output")
"""Stages of a run that batches have times of, in their order."""


@dataclass(frozen=True, slots=True)
class Duration:
    """How often something was done, and how many nanoseconds it took altogether."""

    count: int
    ns: int


@dataclass(frozen=True, slots=True)
class BatchStatistics:
    """Runs of one batch size. Each run is counted once, with the times of the call that leads it."""

    batch_size: int
    compute_input: Duration
    compute_infer: Duration
    compute_output: Duration


@dataclass(frozen=True, slots=True)
class ModelStatistics:
    """What was counted of one version of a model. The time of a request is from the end of its body to its response's.

    Attributes:
        name: name of the model.
        version: its version.
        last_inference: when its last run ended, in milliseconds since the epoch; 0 where it never ran.
        inference_count: items (rows) of successful requests.
        execution_count: runs; a batch is one.
        success: times of successful requests.
        fail: times of other requests.
        queue: times that successful requests waited.
        compute_input: times that decoding them took.
        compute_infer: times of their runs.
        compute_output: times that encoding their responses took.
        failures: reason -> number of failed requests.
        observed: successful requests whose run was observed.
        request_counts: successful requests by time: up to each of `REQUEST_SECONDS` and above the one before, and above
            the last.
        batches: batch size -> statistics of its runs, smallest first.
    """

    name: str
    version: str
    last_inference: int
    inference_count: int
    execution_count: int
    success: Duration
    fail: Duration
    queue: Duration
    compute_input: Duration
    compute_infer: Duration
    compute_output: Duration
    failures: dict[str, int]
    observed: int
    request_counts: list[int]
    batches: dict[int, BatchStatistics]


def read_statistics(name: str, version: str, samples: Samples) -> ModelStatistics:
    """Return the statistics of one version of a model from the samples of its series."""

    def value(of: str, *labels: str) -> float:
        return samples.get(of, {}).get(labels, 0.0)

    def duration(count: str, seconds: str, *labels: str) -> Duration:
        return Duration(int(value(count, *labels)), round(value(seconds, *labels) * 1e9))

    answered, run = "kuiper_request_seconds_count", "statistics_run_seconds"
    bounds = map(floatToGoString, (*REQUEST_SECONDS, inf))
    up_to = [0.0, *(value("kuiper_request_seconds_bucket", bound) for bound in bounds)]
    failures = samples.get("statistics_failures_total", {})
    sizes = sorted({int(size) for size, _ in samples.get(f"{run}_count", {})})
    return ModelStatistics(
        name,
        version,
        last_inference=int(value("statistics_last_run") * 1e3),
        inference_count=int(value("statistics_items_total")),
        execution_count=int(value("kuiper_batch_size_count")),
        success=duration(answered, "kuiper_request_seconds_sum"),
        fail=duration("statistics_failed_seconds_count", "statistics_failed_seconds_sum"),
        queue=duration(answered, "kuiper_queue_seconds_sum"),
        compute_input=duration(answered, "statistics_input_seconds_total"),
        compute_infer=duration(answered, "kuiper_compute_seconds_sum"),
        compute_output=duration(answered, "statistics_output_seconds_total"),
        failures={reason: int(count) for (reason,), count in failures.items()},
        observed=int(value("kuiper_observed_request_seconds_count")),
        request_counts=[int(count - before) for before, count in pairwise(up_to)],
        batches={
            size: BatchStatistics(
                size, *(duration(f"{run}_count", f"{run}_sum", str(size), stage) for stage in RUN_STAGES)
            )
            for size in sizes
        },
    )
