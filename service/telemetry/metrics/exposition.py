"""Metrics as text, in either format that Prometheus reads."""

from collections.abc import Iterable, Iterator
from itertools import chain

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client import registry as prometheus
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

from service.scheduling.call_record import CallObserver
from service.telemetry.metrics.collector import Collector
from service.telemetry.metrics.collectors import SUMMED
from service.telemetry.metrics.snapshot import Snapshot

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Media type of Prometheus' own text format."""


def asks_for_openmetrics(accept: str) -> bool:
    """Tell whether an `Accept` header, empty where a request has none, asks for OpenMetrics."""
    # not prometheus_client's choose_encoder: it fails on some headers, and repeats what they say
    return any(
        accepted.partition(";")[0].strip() == "application/openmetrics-text" for accepted in accept.split(",")
    )


class Metrics:
    """The metrics of one application.

    Nothing is counted here: each reading asks the collectors, so that the series of a model end when it is unloaded.

    Args:
        collectors: the sources of all metrics but those of the process.
    """

    def __init__(self, collectors: Iterable[Collector]) -> None:
        self._collectors = tuple(collectors)
        self._process = (
            ProcessCollector(registry=None),
            PlatformCollector(registry=None),
            GCCollector(registry=CollectorRegistry()),  # it takes no None
        )

    @property
    def observers(self) -> list[CallObserver]:
        """The collectors that count something themselves, and therefore get the record of every call."""
        return [collector for collector in self._collectors if isinstance(collector, CallObserver)]

    def render(self, snapshot: Snapshot, *, wants_openmetrics: bool = False) -> tuple[bytes, str]:
        """Return the metrics in Prometheus' own format or as OpenMetrics, and the format's media type.

        Args:
            snapshot: the server at this moment.
            wants_openmetrics: what `asks_for_openmetrics` says of the request.
        """
        collected = (collector.collect(snapshot) for collector in self._collectors)
        families = chain(*collected, *(process.collect() for process in self._process))
        return write_families(families, wants_openmetrics)

    def summed(self, snapshot: Snapshot) -> Iterator[Metric]:
        """Yield the families that are of all processes together, where there are several."""
        for collector in self._collectors:
            if isinstance(collector, SUMMED):
                yield from collector.collect(snapshot)

    def own(self, snapshot: Snapshot) -> Iterator[Metric]:
        """Yield the families that are of this process alone."""
        for collector in self._collectors:
            if not isinstance(collector, SUMMED):
                yield from collector.collect(snapshot)
        for process in self._process:
            yield from process.collect()


def write_families(families: Iterable[Metric], wants_openmetrics: bool) -> tuple[bytes, str]:
    """Return families as text, and its media type."""
    registry = CollectorRegistry()
    registry.register(_Families(families))
    if wants_openmetrics:
        text: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]  # theirs
        return text, openmetrics.CONTENT_TYPE_LATEST
    return generate_latest(registry), TEXT_TYPE


class _Families(prometheus.Collector):
    """What a registry of `prometheus_client` asks for the families."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families

    def describe(self) -> list[Metric]:
        """Return nothing: the registry would collect to find names that come twice."""
        return []
