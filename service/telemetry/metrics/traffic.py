"""How the versions of a model share the requests that name none, and how their responses differ."""

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from service.telemetry.metrics.collector import Snapshot
from service.telemetry.statistics import MODEL_LABELS
from service.traffic.model_traffic import ModelTraffic
from service.traffic.shadow_statistics import ShadowStatistics, differences_histogram, seconds_histogram


class TrafficMetrics:
    """`kuiper_traffic_…` and `kuiper_shadow_…`, of models whose `model.toml` has a `[traffic]` table."""

    def collect(self, snapshot: Snapshot) -> Iterator[Metric]:
        """Yield the shares that versions are to get, what they got, and what shadow runs have shown."""
        shadows = {name: one.shadow for name, one in snapshot.traffic.items() if one.shadow is not None}
        yield from _shares(snapshot.traffic)
        yield from _shadows(shadows)
        yield _family(seconds_histogram(), (shadow.seconds for shadow in shadows.values()))
        yield _family(differences_histogram(), (shadow.differences for shadow in shadows.values()))


def _shares(models: Mapping[str, ModelTraffic]) -> Iterator[Metric]:
    wanted = GaugeMetricFamily(
        "kuiper_traffic_share",
        "part of the requests without a version that a version is to get",
        labels=MODEL_LABELS,
    )
    requests = CounterMetricFamily(
        "kuiper_traffic_requests",
        "requests without a version that a version was chosen for",
        labels=MODEL_LABELS,
    )
    for name, traffic in models.items():
        for version, share in traffic.shares.items():
            wanted.add_metric((name, version), share)
            requests.add_metric((name, version), traffic.chosen[version])
    yield from (wanted, requests)


def _shadows(shadows: Mapping[str, ShadowStatistics]) -> Iterator[Metric]:
    runs = CounterMetricFamily(
        "kuiper_shadow_requests",
        "requests that were to be run on another version as well, by what became of them",
        labels=("model", "outcome"),
    )
    labels = CounterMetricFamily(
        "kuiper_shadow_label_differences",
        "items whose most probable label is another one on the shadow version",
        labels=("model",),
    )
    for name, shadow in shadows.items():
        for outcome, count in shadow.outcomes.items():
            runs.add_metric((name, outcome.value), count)
        labels.add_metric((name,), shadow.labels)
    yield from (runs, labels)


def _family(name: Histogram, histograms: Iterable[Histogram]) -> Metric:
    """Return the samples of histograms as one family."""
    (family,) = name.collect()
    family.samples = [
        sample for histogram in histograms for one in histogram.collect() for sample in one.samples
    ]
    return family
