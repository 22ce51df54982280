"""Counters of inference requests and runs, under Triton's names."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from service.telemetry.metrics import prometheus
from service.telemetry.metrics.families import MODEL_LABELS
from service.telemetry.metrics.snapshot import Snapshot
from service.telemetry.statistics import Duration, ModelStatistics

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_COUNTS: tuple[tuple[str, str, Callable[[ModelStatistics], int]], ...] = (
    ("nv_inference_request_success", "answered requests", lambda model: model.success.count),
    ("nv_inference_count", "items (rows) of answered requests", lambda model: model.inference_count),
    ("nv_inference_exec_count", "runs; a batch is one run", lambda model: model.execution_count),
)
_DURATIONS: tuple[tuple[str, str, Callable[[ModelStatistics], Duration]], ...] = (
    ("request", "from the end of a request's body to the end of its answer", lambda model: model.success),
    ("queue", "waiting in the queue and for a batch", lambda model: model.queue),
    ("compute_input", "decoding inputs", lambda model: model.compute_input),
    ("compute_infer", "running the model", lambda model: model.compute_infer),
    ("compute_output", "encoding answers", lambda model: model.compute_output),
)


class InferenceMetrics:
    """`nv_inference_…`: requests, rows, runs, and the time that each stage of a request took.

    Triton's names lack the `_total` with which both text formats want a counter's name to end. Their type is therefore
    left open (`untyped` or `unknown`), which makes no difference to Prometheus.
    """

    def collect(self, snapshot: Snapshot) -> "Iterator[Metric]":
        """Yield the counters of all loaded models."""
        for name, text, count_of in _COUNTS:
            counter = prometheus.UnknownMetricFamily(name, text, labels=MODEL_LABELS)
            for model in snapshot.models:
                counter.add_metric(model.labels, count_of(model.statistics))
            yield counter
        yield self._failures(snapshot)
        for part, text, duration_of in _DURATIONS:
            name = f"nv_inference_{part}_duration_us"
            counter = prometheus.UnknownMetricFamily(
                name, f"microseconds of answered requests, altogether: {text}", labels=MODEL_LABELS
            )
            for model in snapshot.models:
                counter.add_metric(model.labels, duration_of(model.statistics).ns // 1000)
            yield counter

    def _failures(self, snapshot: Snapshot) -> "Metric":
        family = prometheus.UnknownMetricFamily(
            "nv_inference_request_failure",
            "requests that were not answered, by reason",
            labels=(*MODEL_LABELS, "reason"),
        )
        for model in snapshot.models:
            for reason, count in model.statistics.failures.items():
                family.add_metric((*model.labels, reason.value), count)
        return family
