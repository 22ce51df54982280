"""A metric: `kuiper_worker_load`, the share of the worker threads that run a model at the moment."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from service.telemetry.metrics import COLLECTORS, Snapshot


def collect_worker_load(snapshot: Snapshot) -> Iterator[Metric]:
    """Yield `kuiper_worker_load`, 0 to 1."""
    load = snapshot.scheduler.busy_workers() / snapshot.settings.worker_count
    yield GaugeMetricFamily("kuiper_worker_load", "share of the workers that run a model now", value=load)


COLLECTORS.append(collect_worker_load)
