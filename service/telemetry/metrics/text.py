"""Families of metrics as text, in either format that Prometheus reads. Imported when metrics are first shown."""

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client import registry as prometheus
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Media type of Prometheus' own text format."""


class ProcessFamilies:
    """What `prometheus_client` itself tells of a process of Python."""

    def __init__(self) -> None:
        self._collectors = (
            ProcessCollector(registry=None),
            PlatformCollector(registry=None),
            GCCollector(registry=CollectorRegistry()),  # it takes no None
        )

    def collect(self) -> Iterator[Metric]:
        """Yield its families."""
        for collector in self._collectors:
            yield from collector.collect()


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
