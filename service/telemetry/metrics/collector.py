"""What a function of metrics is, what it looks at when metrics are shown, and how it makes families."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from service.config.settings import Settings
from service.repository.loaded_model import LoadedModel
from service.repository.poller import Poller
from service.scheduling.scheduler import Scheduler
from service.traffic.model_traffic import ModelTraffic

Values = Mapping[tuple[str, ...], float]
"""Values of a metric by those of its labels."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The server when its metrics are shown.

    Attributes:
        models: every version of every loaded model.
        scheduler: the queues and workers.
        settings: the server's settings.
        traffic: of each model that has one, by name.
        polls: looks for changes of models; None where nobody does.
    """

    models: Sequence[LoadedModel]
    scheduler: Scheduler
    settings: Settings
    traffic: Mapping[str, ModelTraffic] = field(default_factory=dict)
    polls: Poller | None = None

    @property
    def identities(self) -> set[tuple[str, str]]:
        """Name and version of each model."""
        return {(model.name, model.version) for model in self.models}


Collector = Callable[[Snapshot], Iterable[Metric]]
"""Yields metric families with their samples. Labels must never hold what a client typed.

Called once for each request to `/metrics`, on any thread. With several processes, gauges and counters are copied for
all of them, and histograms of `prometheus_client` are shared by themselves.
"""


def gauge(name: str, text: str, values: Values, labels: Sequence[str] = ()) -> Metric:
    """Return a gauge from its name, its help, its values, and the names of its labels."""
    return _filled(GaugeMetricFamily(name, text, labels=labels), values)


def counter(name: str, text: str, values: Values, labels: Sequence[str] = ()) -> Metric:
    """Return a counter, as `gauge` does; its samples have the suffix `_total`."""
    return _filled(CounterMetricFamily(name, text, labels=labels), values)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, values: Values) -> Metric:
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family
