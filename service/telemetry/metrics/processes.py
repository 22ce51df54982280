"""Metrics of several processes in one text: counters are added up, gauges are told apart by the label `process`."""

import json
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from service.telemetry.metrics import prometheus
from service.telemetry.metrics.exposition import Metrics
from service.telemetry.metrics.snapshot import Snapshot
from service.telemetry.process_statistics import Counters

if TYPE_CHECKING:
    from prometheus_client.core import Metric

PROCESS = "process"
"""Label of gauges: the number of the process's slot."""
_COUNTED = frozenset({"counter", "histogram", "summary", "unknown"})
"""Types of families whose samples are added up."""

Labels = tuple[tuple[str, str], ...]
Samples = dict[tuple[str, Labels], float]
"""Name and labels of each sample -> its value."""


class ProcessMetrics:
    """The metrics of a process among several, which answers for all.

    Each process leaves a document of its families in its counter memory when it is asked for it and when it ends. A
    process that takes over the slot of one that has ended adds what that has counted to its own.

    Args:
        metrics: the metrics of this process.
        counters: where all processes count.
    """

    def __init__(self, metrics: Metrics, counters: Counters) -> None:
        self._metrics = metrics
        self._counters = counters
        self._before = _Families()
        self._before.add(counters.own.published(), None)
        self._before.drop_gauges()

    def publish(self, snapshot: Snapshot) -> None:
        """Leave the families of this process where all processes see them."""
        families = _Families()
        families.add_metrics(self._metrics.own(snapshot))
        families.merge(self._before)
        self._counters.own.publish(families.dump())

    def render(
        self, snapshot: Snapshot, alive: Collection[int], *, wants_openmetrics: bool = False
    ) -> tuple[bytes, str]:
        """Return the metrics of all processes as text, and its media type.

        Args:
            snapshot: the server at this moment, as this process sees it.
            alive: slots of the processes whose gauges are shown: those that have just published them.
            wants_openmetrics: whether they are wanted in that format.
        """
        from service.telemetry.metrics.text import write_families  # noqa: PLC0415  # shown later than a start

        self.publish(snapshot)
        families = _Families()
        for number, memory in enumerate(self._counters.memories):
            families.add(memory.published(), number if number in alive else None)
        return write_families(chain(self._metrics.summed(snapshot), families.metrics()), wants_openmetrics)


class _Families:
    """Families by name."""

    def __init__(self) -> None:
        self._types: dict[str, tuple[str, str]] = {}
        self._samples: dict[str, Samples] = {}

    def add_metrics(self, metrics: "Iterable[Metric]") -> None:
        """Add families of `prometheus_client`."""
        for metric in metrics:
            samples = self._begin(metric.name, metric.type, metric.documentation)
            for sample in metric.samples:
                key = (sample.name, tuple(sample.labels.items()))
                samples[key] = samples.get(key, 0.0) + sample.value

    def add(self, document: bytes | None, process: int | None) -> None:
        """Add what `dump` returned in a process.

        Args:
            document: None for nothing.
            process: the process that gauges are labelled with; None: they are left out.
        """
        for name, kind, text, lines in json.loads(document or b"[]"):
            is_counted = kind in _COUNTED
            if not is_counted and process is None:
                continue
            samples = self._begin(name, kind, text)
            for sample_name, labels, value in lines:
                told = () if is_counted else ((PROCESS, str(process)),)
                key = (sample_name, (*((label, shown) for label, shown in labels), *told))
                samples[key] = samples.get(key, 0.0) + value

    def merge(self, other: "_Families") -> None:
        """Add the families of others to these."""
        for name, (kind, text) in other._types.items():
            samples = self._begin(name, kind, text)
            for key, value in other._samples[name].items():
                samples[key] = samples.get(key, 0.0) + value

    def drop_gauges(self) -> None:
        """Leave only what counts up."""
        for name, (kind, _) in list(self._types.items()):
            if kind not in _COUNTED:
                del self._types[name], self._samples[name]

    def dump(self) -> bytes:
        """Return the families as JSON."""
        lines: list[Any] = [
            [name, *self._types[name], [[key[0], key[1], value] for key, value in samples.items()]]
            for name, samples in self._samples.items()
        ]
        return json.dumps(lines).encode()

    def metrics(self) -> "Iterator[Metric]":
        """Yield the families for `prometheus_client`."""
        for name, (kind, text) in self._types.items():
            metric = prometheus.Metric(name, text, kind)
            for (sample_name, labels), value in self._samples[name].items():
                metric.add_sample(sample_name, dict(labels), value)
            yield metric

    def _begin(self, name: str, kind: str, text: str) -> Samples:
        self._types[name] = (kind, text)
        return self._samples.setdefault(name, {})
