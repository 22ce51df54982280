"""What collectors yield, where all processes see it."""

from collections.abc import Iterable
from functools import partial
from math import nan
from threading import Lock

from prometheus_client import Counter, Gauge, Metric

_Series = tuple[str, tuple[str, ...]]


class Mirror:
    """Copies gauges and counters into those of `prometheus_client`, whose values all processes share.

    Gauges are those of a living process; counters go on where a process of the same number has stopped.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._metrics: dict[str, Gauge | Counter] = {}
        self._values: dict[_Series, float] = {}

    def take(self, families: Iterable[Metric]) -> None:
        """Copy families; a series that is not among them any more is not shown. Any thread may call this."""
        with self._lock:
            before, self._values = self._values, {}
            for family in families:
                for sample in family.samples:
                    series = family.name, tuple(sample.labels.values())
                    self._values[series] = sample.value
                    metric = self._child(family, sample.labels)
                    if isinstance(metric, Gauge):
                        metric.set(sample.value)
                    elif metric is not None:
                        counted = before.get(series, 0.0)
                        metric.inc(sample.value - counted if sample.value >= counted else sample.value)
            for name, values in before.keys() - self._values.keys():
                metric = self._metrics.get(name)
                if isinstance(metric, Gauge):
                    (metric.labels(*values) if values else metric).set(nan)

    def _child(self, family: Metric, labels: dict[str, str]) -> Gauge | Counter | None:
        """Return the gauge or counter of a sample; None for families of other types."""
        metric = self._metrics.get(family.name)
        if metric is None and family.type in ("gauge", "counter"):
            make = Counter if family.type == "counter" else partial(Gauge, multiprocess_mode="liveall")
            metric = make(family.name, family.documentation, tuple(labels), registry=None)
            self._metrics[family.name] = metric
        return metric.labels(**labels) if metric is not None and labels else metric
