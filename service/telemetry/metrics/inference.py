"""Counters of inference requests and runs, under Triton's names."""

from collections.abc import Callable, Iterator

from prometheus_client.core import Metric, UnknownMetricFamily

from service.telemetry.metrics.families import MODEL_LABELS
from service.telemetry.metrics.snapshot import Snapshot
from service.telemetry.statistics import Duration, ModelStatistics

_COUNTS: tuple[tuple[str, str, Callable[[ModelStatistics], int]], ...] = (
    ("nv_inference_request_success", "requests that were answered", lambda model: model.success.count),
    ("nv_inference_count", "items (rows) of answered requests", lambda model: model.inference_count),
    ("nv_inference_exec_count", "runs; a batch is one", lambda model: model.execution_count),
)
_DURATIONS: tuple[tuple[str, str, Callable[[ModelStatistics], Duration]], ...] = (
    ("request", "answered requests, whole", lambda model: model.success),
    ("queue", "waiting of answered requests", lambda model: model.queue),
    ("compute_input", "decoding of answered requests", lambda model: model.compute_input),
    ("compute_infer", "runs of answered requests", lambda model: model.compute_infer),
    ("compute_output", "encoding of answered requests", lambda model: model.compute_output),
)


class InferenceMetrics:
    """`nv_inference_…`: requests by their end, rows, runs, and the time that each part of a request took.

    Triton's names lack the `_total` that both text formats expect of a counter, so that the type is left open
    (`untyped`, `unknown`). Prometheus computes the same of it.
    """

    def collect(self, snapshot: Snapshot) -> Iterator[Metric]:
        """Yield the counters of all loaded models."""
        for name, text, count_of in _COUNTS:
            counter = UnknownMetricFamily(name, text, labels=MODEL_LABELS)
            for model in snapshot.models:
                counter.add_metric(model.labels, count_of(model.statistics))
            yield counter
        yield self._failures(snapshot)
        for part, text, duration_of in _DURATIONS:
            name = f"nv_inference_{part}_duration_us"
            counter = UnknownMetricFamily(name, f"microseconds together: {text}", labels=MODEL_LABELS)
            for model in snapshot.models:
                counter.add_metric(model.labels, duration_of(model.statistics).ns // 1000)
            yield counter

    def _failures(self, snapshot: Snapshot) -> Metric:
        family = UnknownMetricFamily(
            "nv_inference_request_failure",
            "requests that were not answered, by reason",
            labels=(*MODEL_LABELS, "reason"),
        )
        for model in snapshot.models:
            for reason, count in model.statistics.failures.items():
                family.add_metric((*model.labels, reason.value), count)
        return family
