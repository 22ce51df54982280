"""The traffic of a model, as clients are shown it."""

from service.repository.traffic_schemas import ShadowView, TrafficDetail, TrafficView, VersionTraffic
from service.traffic.model_traffic import ModelTraffic


def describe_traffic(traffic: ModelTraffic) -> TrafficView:
    """Return what `GET /models` shows of the traffic of a model."""
    chosen = dict(traffic.chosen)
    total = sum(chosen.values())
    versions = [
        VersionTraffic(
            version=version,
            wanted=share,
            seen=chosen[version] / total if total else None,
            requests=chosen[version],
        )
        for version, share in traffic.shares.items()
    ]
    return TrafficView(
        stable=traffic.stable, sticky=traffic.config.sticky, versions=versions, shadow=_shadow(traffic)
    )


def describe_traffic_in_detail(traffic: ModelTraffic) -> TrafficDetail:
    """Return what `GET /models/NAME/traffic` shows."""
    runs = [] if traffic.shadow is None else traffic.shadow.newest_first()
    return TrafficDetail(**dict(describe_traffic(traffic)), model=traffic.name, runs=runs)


def _shadow(traffic: ModelTraffic) -> ShadowView | None:
    config, statistics = traffic.config.shadow, traffic.shadow
    if config is None or statistics is None:
        return None
    return ShadowView(
        version=config.version,
        share=config.share,
        tolerance=config.tolerance,
        outcomes={outcome.value: count for outcome, count in statistics.outcomes.items()},
        labels=statistics.labels,
        divergence=statistics.divergence,
        refusals=dict(statistics.refusals),
    )
