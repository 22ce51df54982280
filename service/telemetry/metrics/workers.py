"""The worker threads."""

from collections.abc import Iterator

import prometheus_client.core as prometheus
from prometheus_client.core import Metric

from service.telemetry.metrics.collector import Snapshot


class WorkerMetrics:
    """`kuiper_workers`, and how many of them are busy."""

    def collect(self, snapshot: Snapshot) -> Iterator[Metric]:
        """Yield the gauges."""
        yield prometheus.GaugeMetricFamily(
            "kuiper_workers", "threads that run models", value=snapshot.settings.worker_count
        )
        yield prometheus.GaugeMetricFamily(
            "kuiper_workers_busy",
            "threads that are running a model now",
            value=snapshot.scheduler.busy_workers(),
        )
