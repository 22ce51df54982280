"""How many replicas a load takes."""

from types import SimpleNamespace
from typing import Any

import pytest

from service.ray.autoscaling import LoadPolicy


def _context(metrics: Any, target: int = 1) -> SimpleNamespace:
    return SimpleNamespace(aggregated_metrics=metrics, target_num_replicas=target)


@pytest.mark.parametrize(
    ("load", "wanted"),
    [([4, 4], 4), ([0, 0], 0), ([12, 4], 8), ([1, 0], 0.5)],
)
def test_each_worker_gets_the_wanted_load(load: list[float], wanted: float) -> None:
    """Two replicas of four workers, of which each is to have half a request."""
    metrics = {
        "load": dict(enumerate(load)),
        "workers": {0: 4.0, 1: 4.0},
        "running_requests": {0: 1e6, 1: 1e6},  # those that wait for something else than a worker
    }
    assert LoadPolicy(target_load=0.5)(_context(metrics)) == (wanted, {})


@pytest.mark.parametrize("metrics", [None, {}, {"load": {0: 9.0}}, {"workers": {}}])
def test_nothing_changes_before_replicas_have_reported(metrics: Any) -> None:
    assert LoadPolicy(0.7)(_context(metrics, target=3)) == (3, {})
