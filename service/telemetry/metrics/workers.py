"""The worker threads."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from service.telemetry.metrics.snapshot import Snapshot


class WorkerMetrics:
    """`kuiper_workers` and `kuiper_workers_busy`."""

    def collect(self, snapshot: Snapshot) -> Iterator[Metric]:
        """Yield both gauges."""
        yield GaugeMetricFamily("kuiper_workers", "threads that run models", value=snapshot.workers)
        yield GaugeMetricFamily(
            "kuiper_workers_busy", "threads that are running a model now", value=snapshot.busy_workers
        )
