"""How the versions of a model share the requests that name none, and how their responses differ."""

from collections.abc import Iterable, Iterator

from prometheus_client import Histogram
from prometheus_client.core import Metric

from service.telemetry.metrics.collector import Snapshot, counter, gauge
from service.telemetry.statistics import MODEL_LABELS
from service.traffic.shadow_statistics import differences_histogram, seconds_histogram


def collect_traffic(snapshot: Snapshot) -> Iterator[Metric]:
    """Yield `kuiper_traffic_…` and `kuiper_shadow_…`, of models whose `model.toml` has a `[traffic]` table.

    They are the shares that versions are to get, what they got, and what shadow runs have shown.
    """
    models = snapshot.traffic.items()
    yield gauge(
        "kuiper_traffic_share",
        "part of the requests without a version that a version is to get",
        {(name, version): share for name, one in models for version, share in one.shares.items()},
        MODEL_LABELS,
    )
    yield counter(
        "kuiper_traffic_requests",
        "requests without a version that a version was chosen for",
        {(name, version): count for name, one in models for version, count in one.chosen.items()},
        MODEL_LABELS,
    )
    shadows = {name: one.shadow for name, one in models if one.shadow is not None}
    yield counter(
        "kuiper_shadow_requests",
        "requests that were to be run on another version as well, by what became of them",
        {(name, end.value): count for name, one in shadows.items() for end, count in one.outcomes.items()},
        ("model", "outcome"),
    )
    yield counter(
        "kuiper_shadow_label_differences",
        "items whose most probable label is another one on the shadow version",
        {(name,): shadow.labels for name, shadow in shadows.items()},
        ("model",),
    )
    yield _family(seconds_histogram(), (shadow.seconds for shadow in shadows.values()))
    yield _family(differences_histogram(), (shadow.differences for shadow in shadows.values()))


def _family(empty: Histogram, histograms: Iterable[Histogram]) -> Metric:
    """Return the samples of histograms as one family, which has the name of an empty one."""
    (family,) = empty.collect()
    family.samples = [
        sample for histogram in histograms for one in histogram.collect() for sample in one.samples
    ]
    return family
