"""The metrics that Prometheus reads at `/metrics`.

    Metrics(collectors).render(Snapshot(models, scheduler, settings)) -> text and media type

What happens is counted where it happens, by counters and histograms of `prometheus_client` in `Metrics.registry`. What
the server is like is a function that makes `prometheus_client` metric families of a snapshot, in a module of its own;
it is registered in the list `COLLECTORS`. What counts something new is registered in `OBSERVERS` as well.
"""

from service.scheduling.job import CallObserver
from service.telemetry.metrics.collector import Collector, Snapshot
from service.telemetry.metrics.exposition import Metrics, asks_for_openmetrics
from service.telemetry.metrics.models import collect_models
from service.telemetry.metrics.server import collect_server
from service.telemetry.metrics.traffic import collect_traffic

__all__ = ["COLLECTORS", "OBSERVERS", "Collector", "Metrics", "Snapshot", "asks_for_openmetrics"]

COLLECTORS: list[Collector] = [collect_models, collect_traffic, collect_server]
"""What shows the state of the server; a new metric adds its function here."""
OBSERVERS: list[CallObserver] = []
"""What counts something that the server does not count; gets every job that has ended."""
