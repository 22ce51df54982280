"""The metrics of one application, as text in either format that Prometheus reads."""

from collections.abc import Iterable, Iterator
from itertools import chain
from math import isnan

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    values,
)
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector as Source

from service.telemetry.metrics.collector import Collector, Snapshot
from service.telemetry.metrics.mirror import Mirror
from service.telemetry.metrics.triton import triton_families

_HIDDEN = "statistics_"
"""Begins the names of metrics that only `/stats` and Triton's statistics show."""

disable_created_metrics()  # type: ignore[no-untyped-call]  # theirs


def asks_for_openmetrics(accept: str) -> bool:
    """Return whether an `Accept` header, empty where a request has none, asks for OpenMetrics."""
    # not prometheus_client's choose_encoder: it fails on some headers, and repeats what they say
    accepted = {media_range.partition(";")[0].strip() for media_range in accept.split(",")}
    return "application/openmetrics-text" in accepted


class Metrics:
    """The metrics of one application; to be made before anything counts.

    One process keeps its counters in memory. Several, each with a number of its own, keep them in the folder
    `PROMETHEUS_MULTIPROC_DIR`, in files by number: counters of a process that has ended stay, and those of the next one
    with its number go on. Gauges are distinguished by the label `process`.

    Args:
        collectors: show the state of the server.
        process: number of this process; None where there is one.

    Attributes:
        registry: where what counts is registered.
        source: all that was counted, in all processes together.
    """

    def __init__(self, collectors: Iterable[Collector], process: int | None = None) -> None:
        self._collectors = tuple(collectors)
        self._python = CollectorRegistry()
        for python in (ProcessCollector, PlatformCollector, GCCollector):
            python(registry=self._python)
        self.registry = CollectorRegistry()
        self.source: Source = self.registry
        self._mirror: Mirror | None = None
        if process is not None:
            values.ValueClass = values.MultiProcessValue(lambda: process)  # type: ignore[no-untyped-call]
            self.source = MultiProcessCollector(None)  # type: ignore[no-untyped-call]
            self._mirror = Mirror()

    def publish(self, snapshot: Snapshot) -> None:
        """Show the state of this process to all processes, where there are several."""
        if self._mirror is not None:
            self._mirror.take(self._state(snapshot))

    def render(self, snapshot: Snapshot, *, wants_openmetrics: bool = False) -> tuple[bytes, str]:
        """Return the metrics in Prometheus' own format or as OpenMetrics, and the format's media type.

        Args:
            snapshot: the server at this moment.
            wants_openmetrics: what `asks_for_openmetrics` says of the request.
        """
        families = _Families(self._families(snapshot))
        if wants_openmetrics:
            text: bytes = openmetrics.generate_latest(families)  # type: ignore[no-untyped-call]  # theirs
            return text, openmetrics.CONTENT_TYPE_LATEST
        return generate_latest(families), CONTENT_TYPE_PLAIN_0_0_4

    def _state(self, snapshot: Snapshot) -> Iterator[Metric]:
        for collector in self._collectors:
            yield from collector(snapshot)
        yield from self._python.collect()

    def _families(self, snapshot: Snapshot) -> Iterator[Metric]:
        """Yield the families that are shown, by name."""
        self.publish(snapshot)
        state = self._state(snapshot) if self._mirror is None else ()
        families = {family.name: family for family in chain(self.source.collect(), state)}
        shown = [family for name, family in families.items() if not name.startswith(_HIDDEN)]
        for family in sorted((*shown, *triton_families(families)), key=lambda family: family.name):
            if self._mirror is not None:
                _trim(family, snapshot)
            yield family


def _trim(family: Metric, snapshot: Snapshot) -> None:
    """Drop the series of a family that have ended, as nothing is removed from files; name the process of gauges."""
    versions = snapshot.identities
    names = {name for name, _ in versions}
    samples, family.samples = family.samples, []
    for sample in samples:
        labels, model = dict(sample.labels), sample.labels.get("model")
        is_gone = model is not None and (
            (model, labels["version"]) not in versions if "version" in labels else model not in names
        )
        if is_gone or isnan(sample.value):
            continue
        if "pid" in labels:
            labels["process"] = labels.pop("pid")
        family.samples.append(sample._replace(labels=labels))


class _Families(Source):
    """What `prometheus_client` asks for the families that it writes."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families
