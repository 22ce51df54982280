"""How the versions of a model share the requests that name none."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from service.telemetry.metrics.families import MODEL_LABELS
from service.telemetry.metrics.snapshot import Snapshot


class TrafficMetrics:
    """`kuiper_traffic_…`, of models whose `model.toml` has a `[traffic]` table."""

    def collect(self, snapshot: Snapshot) -> Iterator[Metric]:
        """Yield the shares that versions are to get, and what they got."""
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
        for name, traffic in snapshot.traffic.items():
            for version, share in traffic.shares.items():
                wanted.add_metric((name, version), share)
                requests.add_metric((name, version), traffic.chosen[version])
        yield wanted
        yield requests
