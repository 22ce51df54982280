"""The metrics that Prometheus reads at `/metrics`.

    Metrics(collectors).render(Snapshot(models, scheduler, settings)) -> text and media type

What happens is counted where it happens, by counters and histograms of `prometheus_client` in `Metrics.registry`. What
the server is like is a class with a method `collect(snapshot)` that yields `prometheus_client` metric families, in a
module of its own; it is registered in the list `COLLECTORS`. One that has to count something new also has a method
`observe(job)`, which gets every job that has ended.
"""

from collections.abc import Callable

from service.telemetry.metrics.collector import Collector, Snapshot
from service.telemetry.metrics.exposition import Metrics, asks_for_openmetrics
from service.telemetry.metrics.models import ModelMetrics
from service.telemetry.metrics.server import ServerMetrics
from service.telemetry.metrics.traffic import TrafficMetrics

__all__ = [
    "COLLECTORS",
    "Collector",
    "Metrics",
    "Snapshot",
    "asks_for_openmetrics",
    "make_collectors",
]

COLLECTORS: list[Callable[[], Collector]] = [
    ModelMetrics,
    TrafficMetrics,
    ServerMetrics,
]
"""Every application makes one collector of each; a new metric adds its class here."""


def make_collectors() -> list[Collector]:
    """Return a new collector of each registered class."""
    return [make() for make in COLLECTORS]
