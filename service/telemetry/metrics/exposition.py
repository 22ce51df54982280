"""Metrics as text, in either format that Prometheus reads."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from service.scheduling.record import CallObserver
from service.telemetry.metrics.collector import Collector
from service.telemetry.metrics.collectors import SUMMED
from service.telemetry.metrics.snapshot import Snapshot

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from service.telemetry.metrics.text import ProcessFamilies


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

    @cached_property
    def _process(self) -> "ProcessFamilies":
        from service.telemetry.metrics.text import ProcessFamilies  # noqa: PLC0415  # shown later than a start

        return ProcessFamilies()

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
        from service.telemetry.metrics.text import write_families  # noqa: PLC0415  # as above

        collected = (collector.collect(snapshot) for collector in self._collectors)
        families = chain(*collected, self._process.collect())
        return write_families(families, wants_openmetrics)

    def summed(self, snapshot: Snapshot) -> "Iterator[Metric]":
        """Yield the families that are of all processes together, where there are several."""
        for collector in self._collectors:
            if isinstance(collector, SUMMED):
                yield from collector.collect(snapshot)

    def own(self, snapshot: Snapshot) -> "Iterator[Metric]":
        """Yield the families that are of this process alone."""
        for collector in self._collectors:
            if not isinstance(collector, SUMMED):
                yield from collector.collect(snapshot)
        yield from self._process.collect()
