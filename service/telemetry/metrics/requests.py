"""Histograms of inference requests: how long their parts took, and how large the runs were."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from service.histogram import Histogram
from service.telemetry.metrics import prometheus
from service.telemetry.metrics.families import MODEL_LABELS, add_histogram
from service.telemetry.metrics.snapshot import Snapshot
from service.telemetry.statistics import ModelStatistics

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_HISTOGRAMS: tuple[tuple[str, str, Callable[[ModelStatistics], Histogram]], ...] = (
    (
        "kuiper_request_seconds",
        "seconds from the end of an answered request's body to the end of its answer",
        lambda model: model.request_seconds,
    ),
    (
        "kuiper_queue_seconds",
        "seconds that answered requests waited, in the queue and for a batch",
        lambda model: model.queue_seconds,
    ),
    (
        "kuiper_compute_seconds",
        "seconds that the runs of answered requests took",
        lambda model: model.compute_seconds,
    ),
    (
        "kuiper_observed_request_seconds",
        "the same as kuiper_request_seconds, for requests that asked for captured operands or statistics",
        lambda model: model.observed_seconds,
    ),
    ("kuiper_batch_size", "number of items (rows) of each run", lambda model: model.batch_sizes),
)


class RequestMetrics:
    """`kuiper_request_seconds`, `kuiper_queue_seconds` and the like, for each model."""

    def collect(self, snapshot: Snapshot) -> "Iterator[Metric]":
        """Yield the histograms of all loaded models."""
        for name, text, histogram_of in _HISTOGRAMS:
            family = prometheus.HistogramMetricFamily(name, text, labels=MODEL_LABELS)
            for model in snapshot.models:
                add_histogram(family, model.labels, histogram_of(model.statistics))
            yield family
