"""The capacity of a replica, and the plan that follows from it."""

import pytest

from tests.bench.scaling import capacity
from tests.bench.scaling.capacity import REPLICA, find_capacity, plan
from tests.bench.scaling.measure import MOST_SPREAD, Load, middle, spread_of
from tests.bench.scaling.results import Capacity, Profile
from tests.bench.scaling.simulation import Demand, Outcome

DEMAND = Demand(90e-6, 15e-6, 100e-6, 45e-6, 60e-6, 12e-6)


def profile(spread: float) -> Profile:
    """Return a profile of a small model."""
    return Profile("small", DEMAND, 320e-6, spread, 100_000_000, 500_000, 2.0, 1.0)


def load(rate: float, p50: float, p99: float) -> Load:
    """Return a round of one client."""
    return Load(Outcome(rate, p50, p99), 0.0, 0.0, 0.0)


def test_capacity_is_below_the_cores_and_hardly_depends_on_the_spread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(capacity, "REQUESTS", 2000)
    narrow, wide = (find_capacity(profile(spread), 4.0) for spread in (0.1, MOST_SPREAD))
    # what the cores could do without hand-overs is more, and a spread that was measured badly changes little
    assert 0.2 < narrow.per_second * DEMAND.server / REPLICA.cores < 0.9
    assert wide.per_second == pytest.approx(narrow.per_second, rel=0.3)
    for found in (narrow, wide):
        assert 0 < found.busy < 1
        assert found.outcome.per_second == pytest.approx(found.per_second, rel=0.1)


def test_capacity_is_where_the_99th_percentile_reaches_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "REQUESTS", 2000)
    strict, lax = (find_capacity(profile(0.2), slowdown) for slowdown in (2.5, 6.0))
    assert strict.per_second < lax.per_second
    assert strict.outcome.p99 < lax.outcome.p99


def test_a_disturbed_round_does_not_widen_the_spread() -> None:
    quiet, disturbed = load(1500, 0.6, 1.2), load(900, 0.7, 70.0)
    assert spread_of([disturbed, quiet]) == spread_of([quiet]) < MOST_SPREAD
    assert spread_of([disturbed]) == MOST_SPREAD
    assert middle([quiet, disturbed, load(1400, 0.6, 1.3)]).outcome.per_second == 1400


def test_plan_has_a_spare_replica_and_all_that_follows_from_the_number() -> None:
    found = plan(
        profile(0.2), Capacity("small", 4000.0, Outcome(4000.0, 1.0, 3.0), 0.8), 10_000, 50e-6, 30_000
    )
    assert (found.replicas, found.core_hours, found.memory_bytes) == (4, 8, 400_000_000)
    assert found.balancer_cores == pytest.approx(0.5)
    assert found.scrape_bytes_per_second == pytest.approx(8000)
    assert found.cost(0.04) == pytest.approx(8 * 0.04 / 36)
