"""The metrics that Prometheus reads at `/metrics`.

    Metrics(collectors).render(Snapshot(models, scheduler, settings)) -> text and media type

What happens is counted where it happens, by counters and histograms of `prometheus_client` in `Metrics.registry`. What
the server is like is a class with a method `collect(snapshot)` that yields `prometheus_client` metric families, in a
module of its own; it is registered in the list `COLLECTORS`. One that has to count something new also has a method
`observe(record)`, which gets the record of every call that has ended.
"""

from service.telemetry.metrics.collector import Collector
from service.telemetry.metrics.collectors import COLLECTORS, make_collectors
from service.telemetry.metrics.exposition import PUBLISH_SECONDS, Metrics, asks_for_openmetrics
from service.telemetry.metrics.snapshot import Snapshot

__all__ = [
    "COLLECTORS",
    "PUBLISH_SECONDS",
    "Collector",
    "Metrics",
    "Snapshot",
    "asks_for_openmetrics",
    "make_collectors",
]
