"""The traffic of a model, as clients are shown it."""

from typing import Any

from service.codec.json_text import json_number
from service.repository.traffic_schemas import (
    DivergenceView,
    ShadowRunView,
    ShadowView,
    TrafficDetail,
    TrafficView,
    VersionTraffic,
)
from service.traffic.model_traffic import ModelTraffic
from service.traffic.shadow_statistics import Divergence, ShadowRun


def describe_traffic(traffic: ModelTraffic) -> TrafficView:
    """Return what `GET /models` shows of the traffic of a model."""
    return TrafficView(**_fields(traffic))


def describe_traffic_in_detail(traffic: ModelTraffic) -> TrafficDetail:
    """Return what `GET /models/NAME/traffic` shows."""
    runs = [] if traffic.shadow is None else traffic.shadow.newest_first()
    return TrafficDetail(
        **_fields(traffic),
        model=traffic.name,
        runs=[describe_shadow_run(run) for run in runs],
    )


def describe_shadow_run(run: ShadowRun) -> ShadowRunView:
    """Return a shadow run as it is shown."""
    difference = run.difference
    return ShadowRunView.model_validate(
        {
            "request_id": run.request_id,
            "version": run.version,
            "shadow": run.shadow,
            "outcome": run.outcome.value,
            "run_ms": round(run.seconds * 1e3, 4),
            "shadow_ms": round(run.shadow_seconds * 1e3, 4),
            "max_abs": None if difference is None else json_number(difference.absolute),
            "max_rel": None if difference is None else json_number(difference.relative),
            "labels": 0 if difference is None else difference.labels,
            "divergence": _divergence(run.divergence),
            "error": run.error,
            "at_ms": round(run.epoch_ms, 3),
        }
    )


def _fields(traffic: ModelTraffic) -> dict[str, Any]:
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
    return {
        "stable": traffic.stable,
        "sticky": traffic.config.sticky,
        "versions": versions,
        "shadow": _shadow(traffic),
    }


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
        divergence=_divergence(statistics.divergence),
        refusals=dict(statistics.refusals),
    )


def _divergence(found: Divergence | None) -> DivergenceView | None:
    if found is None:
        return None
    return DivergenceView.model_validate(
        {
            "operator": found.operator,
            "type": found.type,
            "max_abs": json_number(found.absolute),
            "max_rel": json_number(found.relative),
            "group": list(found.group),
        }
    )
