"""How the versions of a model share the requests that name none, and how their answers differ."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from service.telemetry.metrics import prometheus
from service.telemetry.metrics.families import MODEL_LABELS, add_histogram
from service.telemetry.metrics.snapshot import Snapshot
from service.traffic.model_traffic import ModelTraffic

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class TrafficMetrics:
    """`kuiper_traffic_…` and `kuiper_shadow_…`, of models whose `model.toml` has a `[traffic]` table."""

    def collect(self, snapshot: Snapshot) -> "Iterator[Metric]":
        """Yield the shares that versions are to get, what they got, and what shadow runs have shown."""
        yield from _shares(snapshot.traffic)
        yield from _shadows(snapshot.traffic)


def _shares(models: Mapping[str, ModelTraffic]) -> "Iterator[Metric]":
    wanted = prometheus.GaugeMetricFamily(
        "kuiper_traffic_share",
        "part of the requests without a version that a version is to get",
        labels=MODEL_LABELS,
    )
    requests = prometheus.CounterMetricFamily(
        "kuiper_traffic_requests",
        "requests without a version that a version was chosen for",
        labels=MODEL_LABELS,
    )
    for name, traffic in models.items():
        for version, share in traffic.shares.items():
            wanted.add_metric((name, version), share)
            requests.add_metric((name, version), traffic.chosen[version])
    yield from (wanted, requests)


def _shadows(models: Mapping[str, ModelTraffic]) -> "Iterator[Metric]":
    runs = prometheus.CounterMetricFamily(
        "kuiper_shadow_requests",
        "requests that were to be run on another version as well, by what became of them",
        labels=("model", "outcome"),
    )
    labels = prometheus.CounterMetricFamily(
        "kuiper_shadow_label_differences",
        "items whose most probable label is another one on the shadow version",
        labels=("model",),
    )
    seconds = prometheus.HistogramMetricFamily(
        "kuiper_shadow_compute_seconds",
        "seconds of the runs that were compared, on either side",
        labels=MODEL_LABELS,
    )
    differences = prometheus.HistogramMetricFamily(
        "kuiper_shadow_difference",
        "largest difference of outputs, relative to the largest value that was answered; infinite ones as 1e6",
        labels=("model",),
    )
    for name, traffic in models.items():
        shadow = traffic.shadow
        if shadow is None:
            continue
        for outcome, count in shadow.outcomes.items():
            runs.add_metric((name, outcome.value), count)
        for version, histogram in list(shadow.seconds.items()):
            add_histogram(seconds, (name, version), histogram)
        labels.add_metric((name,), shadow.labels)
        add_histogram(differences, (name,), shadow.differences)
    yield from (runs, labels, seconds, differences)
