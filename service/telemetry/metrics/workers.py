"""The worker threads, and those for heavy requests."""

from collections.abc import Iterator

import prometheus_client.core as prometheus
from prometheus_client.core import Metric

from service.telemetry.metrics.collector import Snapshot


class WorkerMetrics:
    """`kuiper_workers` and `kuiper_heavy_workers`, and how many of each are busy."""

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
        yield prometheus.GaugeMetricFamily(
            "kuiper_heavy_workers", "threads for heavy requests", value=snapshot.settings.heavy_worker_count
        )
        yield prometheus.GaugeMetricFamily(
            "kuiper_heavy_workers_busy",
            "threads that are at work on a heavy request now",
            value=snapshot.scheduler.busy_heavy_workers(),
        )
