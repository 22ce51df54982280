"""The traffic of a model, as clients are shown it."""

from service.repository.traffic_schemas import TrafficView, VersionTraffic
from service.traffic.model_traffic import ModelTraffic


def describe_traffic(traffic: ModelTraffic) -> TrafficView:
    """Return what `GET /models` shows of the traffic of a model."""
    chosen = dict(traffic.chosen)
    total = sum(chosen.values())
    return TrafficView(
        stable=traffic.stable,
        sticky=traffic.config.sticky,
        versions=[
            VersionTraffic(
                version=version,
                wanted=share,
                seen=chosen[version] / total if total else None,
                requests=chosen[version],
            )
            for version, share in traffic.shares.items()
        ],
    )
