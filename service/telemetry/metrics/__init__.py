"""The metrics that Prometheus reads at `/metrics`.

    take_snapshot(models, scheduler, settings, statistics, http_durations) -> Snapshot
    Metrics(collectors).render(snapshot) -> text and media type

A metric is a class with a method `collect(snapshot)` that yields `prometheus_client` metric families, in a module of
its own; it is registered in the list `COLLECTORS`. Most collectors count nothing themselves: they turn what the server
has counted anyway into samples, for the models that are loaded at that moment. One that has to count something new
also has a method `observe(record)`, which gets the record of every call that has ended.
"""

from service.telemetry.metrics.collector import Collector
from service.telemetry.metrics.collectors import COLLECTORS, make_collectors
from service.telemetry.metrics.exposition import Metrics, asks_for_openmetrics
from service.telemetry.metrics.snapshot import ModelSnapshot, Snapshot, take_snapshot

__all__ = [
    "COLLECTORS",
    "Collector",
    "Metrics",
    "ModelSnapshot",
    "Snapshot",
    "asks_for_openmetrics",
    "make_collectors",
    "take_snapshot",
]
