"""The compiled programs of the loaded models: how many were made, are awaited, and are not worth it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from service.telemetry.metrics import prometheus
from service.telemetry.metrics.families import MODEL_LABELS
from service.telemetry.metrics.snapshot import Snapshot

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class ProgramMetrics:
    """`kuiper_program_compiled`, `kuiper_program_waiting`, `kuiper_program_shapes_not_compiled`."""

    def collect(self, snapshot: Snapshot) -> "Iterator[Metric]":
        """Yield the counter and the gauges of all loaded models."""
        compiled = prometheus.CounterMetricFamily(
            "kuiper_program_compiled",
            "programs compiled, at load and in the background",
            labels=MODEL_LABELS,
        )
        waiting = prometheus.GaugeMetricFamily(
            "kuiper_program_waiting",
            "shapes of requests waiting for the compiler or for memory",
            labels=MODEL_LABELS,
        )
        not_compiled = prometheus.GaugeMetricFamily(
            "kuiper_program_shapes_not_compiled",
            "shapes of recent requests that were too seldom or too quick in numpy for a program to be compiled",
            labels=MODEL_LABELS,
        )
        for model in snapshot.models:
            compiled.add_metric(model.labels, model.compilation.compiled)
            waiting.add_metric(model.labels, model.compilation.waiting)
            not_compiled.add_metric(model.labels, model.compilation.not_compiled)
        yield from (compiled, waiting, not_compiled)
