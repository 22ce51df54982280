"""What is fitted to loads of a server that is known is what that server takes."""

from dataclasses import replace

import pytest

from tests.bench.scaling import fitting
from tests.bench.scaling.fitting import BUSY, FITTED, ThreadTimes, fit, is_predicted, share, split
from tests.bench.scaling.simulation import Demand, Machine, lognormal, simulate_closed

KNOWN = Demand(90e-6, 15e-6, 100e-6, 45e-6, 60e-6, 12e-6)
MACHINE = Machine(1, 2, 2)
SPREAD = 0.2


def busy_times(demand: Demand) -> Demand:
    """Return what the threads of a busy server would be seen to take: hand-overs and Python together."""
    found = simulate_closed(demand, MACHINE, BUSY, 8_000, lognormal(SPREAD), 7)
    python = demand.locked + found.handovers * demand.wake
    part = demand.worker / demand.locked
    return Demand(python * (1 - part), python * part, demand.run, client=demand.client)


def test_hand_over_of_a_known_server_is_found_again() -> None:
    alone, few = (
        simulate_closed(KNOWN, MACHINE, connections, 8_000, lognormal(SPREAD), 7)
        for connections in (1, FITTED)
    )
    found = fit(busy_times(KNOWN), MACHINE, alone.p50, few.per_second, SPREAD)
    assert found.wake == pytest.approx(KNOWN.wake, rel=0.25)
    assert found.handover == pytest.approx(KNOWN.handover, rel=0.25)
    assert found.locked == pytest.approx(KNOWN.locked, rel=0.3)
    # and with it a load that nothing was fitted to
    on = Machine(2, 1, 2)
    expected, predicted = (simulate_closed(one, on, 16, 8_000, lognormal(SPREAD)) for one in (KNOWN, found))
    assert predicted.per_second == pytest.approx(expected.per_second, rel=0.1)


def test_other_models_take_the_hand_over_that_was_fitted() -> None:
    large = replace(KNOWN, loop=1e-3, run=18e-3)
    found = share(busy_times(large), KNOWN, MACHINE, SPREAD)
    assert (found.wake, found.handover) == (KNOWN.wake, KNOWN.handover)
    assert found.locked == pytest.approx(large.locked, rel=0.1)


def test_rates_that_no_hand_over_explains_still_give_a_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "REQUESTS", 1000)
    for alone, rate in ((0.01, 1e6), (50.0, 1.0)):
        found = fit(busy_times(KNOWN), MACHINE, alone, rate, SPREAD)
        assert min(found.loop, found.worker) > 0
        assert min(found.handover, found.wake) >= 0


def test_python_of_workers_is_that_of_the_model_with_the_shortest_run() -> None:
    small = ThreadTimes(loop=150e-6, others=130e-6, client=10e-6, run=100e-6)
    large = ThreadTimes(loop=400e-6, others=23e-3, client=90e-6, run=20e-3)
    first, second = split([small, large])
    assert (first.worker, second.worker) == pytest.approx((30e-6, 30e-6))
    # runs beside each other take longer than a bare one
    assert (first.run, second.run) == pytest.approx((100e-6, 23e-3 - 30e-6))
    assert (first.loop, second.client) == (150e-6, 90e-6)
    # a bare run was slower than those of a server
    assert split([small, replace(large, run=24e-3)]) == [first, second]


def test_only_two_loads_of_the_first_model_are_fitted() -> None:
    loads = [
        (model, processes, at_once) for model in "ab" for processes in (1, 2) for at_once in (1, FITTED, BUSY)
    ]
    fitted = [load for load in loads if not is_predicted(load[0], "a", *load[1:])]
    assert fitted == [("a", 1, 1), ("a", 1, FITTED)]
