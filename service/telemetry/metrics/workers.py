"""The worker threads."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from service.telemetry.metrics import prometheus
from service.telemetry.metrics.snapshot import Snapshot

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class WorkerMetrics:
    """`kuiper_workers`, and how many of them are busy."""

    def collect(self, snapshot: Snapshot) -> "Iterator[Metric]":
        """Yield the gauges."""
        yield prometheus.GaugeMetricFamily(
            "kuiper_workers", "threads that run models", value=snapshot.workers
        )
        yield prometheus.GaugeMetricFamily(
            "kuiper_workers_busy", "threads that are running a model now", value=snapshot.busy_workers
        )
