"""Metrics of several processes in one text: counters are added up, gauges are told apart by the label `process`."""

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, Any

from service.processes.counter_memory import CounterMemory
from service.telemetry.metrics import prometheus
from service.telemetry.metrics.exposition import Metrics
from service.telemetry.metrics.snapshot import Snapshot
from service.telemetry.process_statistics import Counters

if TYPE_CHECKING:
    from prometheus_client.core import Metric

PUBLISH_SECONDS = 5.0
"""Time between two documents of a process."""
_ALIVE_SECONDS = 4 * PUBLISH_SECONDS
"""Age of a document beyond which the gauges of its process are not shown."""
PROCESS = "process"
"""Label of gauges: the number of the process's slot."""
_COUNTED = frozenset({"counter", "histogram", "summary", "unknown"})
"""Types of families whose samples are added up."""

Labels = tuple[tuple[str, str], ...]
Samples = dict[tuple[str, Labels], float]
"""Name and labels of each sample -> its value."""


class ProcessMetrics:
    """The metrics of a process among several, which answers for all.

    Each process publishes a document of its families in its counter memory every few seconds and when it ends. A
    process that takes over the slot of one that has ended adds its counts to its own.

    Args:
        metrics: the metrics of this process.
        counters: where all processes count.
    """

    def __init__(self, metrics: Metrics, counters: Counters) -> None:
        self._metrics = metrics
        self._counters = counters
        self._before = _Families()
        self._before.add(_families_of(counters.own)[1], None)
        self._before.drop_gauges()

    def publish(self, snapshot: Snapshot, *, is_last: bool = False) -> None:
        """Publish the families of this process for all processes.

        Args:
            snapshot: the server at this moment.
            is_last: whether the process ends now, and its gauges are not shown any more.
        """
        families = _Families()
        families.add_metrics(self._metrics.own(snapshot))
        families.merge(self._before)
        at = None if is_last else monotonic()
        self._counters.own.publish(json.dumps([at, families.dump()]).encode())

    def render(self, snapshot: Snapshot, *, wants_openmetrics: bool = False) -> tuple[bytes, str]:
        """Return the metrics of all processes as text, and its media type.

        Args:
            snapshot: the server at this moment, as this process sees it.
            wants_openmetrics: whether they are wanted in that format.
        """
        from service.telemetry.metrics.text import write_families  # noqa: PLC0415  # shown later than a start

        self.publish(snapshot)
        families = _Families()
        for number, memory in enumerate(self._counters.memories):
            at, lines = _families_of(memory)
            is_alive = at is not None and monotonic() - at < _ALIVE_SECONDS
            families.add(lines, number if is_alive else None)
        return write_families(chain(self._metrics.summed(snapshot), families.metrics()), wants_openmetrics)


def _families_of(memory: CounterMemory) -> tuple[float | None, list[Any]]:
    """Return when a process published its families, on the clock of `monotonic`, and the families."""
    at, lines = json.loads(memory.published() or b"[null, []]")
    return at, lines


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

    def add(self, document: list[Any], process: int | None) -> None:
        """Add what `dump` returned in a process.

        Args:
            document: the families.
            process: the process that gauges are labelled with; None: they are left out.
        """
        for name, kind, text, lines in document:
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

    def dump(self) -> list[Any]:
        """Return the families, ready for JSON."""
        return [
            [name, *self._types[name], [[key[0], key[1], value] for key, value in samples.items()]]
            for name, samples in self._samples.items()
        ]

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
