"""The simulation agrees with what queueing theory proves of the cases that it has formulas for."""

import math

import pytest

from tests.bench.scaling.simulation import (
    Demand,
    Machine,
    exponential,
    lognormal,
    simulate_closed,
    simulate_open,
)

MANY = 30_000
ALWAYS = lognormal(0.0)


def erlang_c(servers: int, load: float) -> float:
    """Return the probability that a request of M/M/c waits (Erlang, 1917); load in busy servers."""
    waits = load**servers / math.factorial(servers) * servers / (servers - load)
    return waits / (sum(load**count / math.factorial(count) for count in range(servers)) + waits)


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_as_many_constant_times_wait_as_the_server_is_busy(load: float) -> None:
    time = 1e-3
    found = simulate_open(Demand(0.0, time), Machine(1, 1, 2), load / time, MANY, ALWAYS)
    # M/D/1: the share of requests that do not wait is 1 - load, so below that share no time is longer than the service
    assert found.per_second == pytest.approx(load / time, rel=0.02)
    assert (found.p50 > time * 1.001e3) == (load > 0.5)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.6), (2, 1.6), (4, 3.4)])
def test_percentiles_of_exponential_times_are_those_of_erlang(servers: int, load: float) -> None:
    time = 1e-3
    found = simulate_open(
        Demand(0.0, time), Machine(1, servers, servers), load / time, 4 * MANY, exponential, 1
    )
    # M/M/c: P(T > t) from P(wait) and the two rates, solved for 1 % and 50 %
    waits, rate, gap = erlang_c(servers, load), 1 / time, (servers - load) / time

    def longer(seconds: float) -> float:
        if math.isclose(gap, rate):
            return math.exp(-rate * seconds) * (1 + waits * rate * seconds)
        factor = waits * rate / (rate - gap)
        return (1 - factor) * math.exp(-rate * seconds) + factor * math.exp(-gap * seconds)

    assert longer(found.p50 / 1e3) == pytest.approx(0.5, rel=0.05)
    assert longer(found.p99 / 1e3) == pytest.approx(0.01, rel=0.25)


@pytest.mark.parametrize(
    ("demand", "machine", "connections", "expected"),
    [
        (Demand(1e-3, 3e-3, 1e-3), Machine(1, 1, 4), 1, 200.0),
        (Demand(1e-3, 3e-3, 1e-3), Machine(1, 1, 4), 50, 1 / 3e-3),
        (Demand(1e-3, 3e-3), Machine(1, 8, 8), 50, 1000.0),
        (Demand(1e-3, 3e-3), Machine(1, 8, 2), 50, 500.0),
        (Demand(1e-3, 0.0), Machine(2, 1, 2), 50, 2000.0),
        (Demand(1e-3, 0.0), Machine(2, 1, 1), 50, 1000.0),
        (Demand(1e-4, 0.0, 0.0, 1e-3), Machine(2, 1, 4), 50, 1000.0),
    ],
)
def test_throughput_of_constant_times_is_that_of_the_bottleneck(
    demand: Demand, machine: Machine, connections: int, expected: float
) -> None:
    found = simulate_closed(demand, machine, connections, 20_000, ALWAYS)
    assert found.per_second == pytest.approx(expected, rel=0.03)
    # Little's law: connections = rate x mean time; the times are all but equal here
    assert found.per_second * found.p50 / 1e3 == pytest.approx(connections, rel=0.35)


def test_same_seed_gives_the_same_outcome() -> None:
    demand, machine = Demand(1e-4, 1e-3), Machine(2, 2, 2)
    first = simulate_open(demand, machine, 1000, 5000, lognormal(0.4), 3)
    assert first == simulate_open(demand, machine, 1000, 5000, lognormal(0.4), 3)
    assert first != simulate_open(demand, machine, 1000, 5000, lognormal(0.4), 4)


def test_mean_of_drawn_times_is_the_mean_that_was_asked_for() -> None:
    import random

    source, draw = random.Random(0), lognormal(0.5)
    times = [draw(source, 2.0) for _ in range(MANY)]
    assert sum(times) / MANY == pytest.approx(2.0, rel=0.02)
