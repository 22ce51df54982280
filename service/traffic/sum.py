"""Adds up what several processes tell of the traffic of one model."""

from collections import Counter
from collections.abc import Sequence

from service.repository.traffic_schemas import ShadowView, TrafficDetail, TrafficView, VersionTraffic

_RUNS = 32
"""Shadow runs that are shown; each process keeps as many."""


def sum_views(own: TrafficView, others: Sequence[TrafficView]) -> TrafficView:
    """Return what all processes together have counted.

    Shares, versions and the reasons of rollbacks are those of this process: the others have the same, but for a moment.

    Args:
        own: what this process tells.
        others: what the others tell.
    """
    return own.model_copy(
        update={"versions": _sum_versions(own, others), "shadow": _sum_shadows([own, *others])}
    )


def sum_details(own: TrafficDetail, others: Sequence[TrafficDetail]) -> TrafficDetail:
    """Return the same for `TrafficDetail`; its shadow runs are the newest of all."""
    details = [own, *others]
    runs = sorted((run for one in details for run in one.runs), key=lambda run: run.at_ms, reverse=True)
    rollbacks = {cause: sum(one.rollbacks.get(cause, 0) for one in details) for cause in own.rollbacks}
    update = {"rollbacks": rollbacks, "runs": runs[:_RUNS]}
    view = sum_views(own, others)
    return own.model_copy(update={"versions": view.versions, "shadow": view.shadow, **update})


def _sum_versions(own: TrafficView, others: Sequence[TrafficView]) -> list[VersionTraffic]:
    chosen = Counter({version.version: version.requests for version in own.versions})
    for other in others:
        chosen.update({one.version: one.requests for one in other.versions if one.version in chosen})
    total = chosen.total()
    return [
        version.model_copy(
            update={
                "requests": chosen[version.version],
                "seen": chosen[version.version] / total if total else None,
            }
        )
        for version in own.versions
    ]


def _sum_shadows(views: Sequence[TrafficView]) -> ShadowView | None:
    own, shadows = views[0].shadow, [view.shadow for view in views if view.shadow is not None]
    if own is None:
        return None
    return own.model_copy(
        update={
            "outcomes": {name: sum(one.outcomes.get(name, 0) for one in shadows) for name in own.outcomes},
            "labels": sum(one.labels for one in shadows),
            "divergence": next((one.divergence for one in shadows if one.divergence is not None), None),
        }
    )
