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
    found = simulate_open(Demand(0.0, 0.0, time), Machine(1, 1, 2), load / time, MANY, ALWAYS)
    # M/D/1: the share of requests that do not wait is 1 - load, so below that share no time is longer than the service
    assert found.per_second == pytest.approx(load / time, rel=0.02)
    assert (found.p50 > time * 1.001e3) == (load > 0.5)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.6), (2, 1.6), (4, 3.4)])
def test_percentiles_of_exponential_times_are_those_of_erlang(servers: int, load: float) -> None:
    time = 1e-3
    found = simulate_open(
        Demand(0.0, 0.0, time), Machine(1, servers, servers), load / time, 4 * MANY, exponential, 1
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
        # alone: 1 + 3 ms, and four hand-overs of 0.25 ms: to the loop, a worker, the loop and the client
        (Demand(0.6e-3, 0.4e-3, 2.8e-3, 0.25e-3, client=0.2e-3), Machine(1, 1, 4), 1, 200.0),
        # one worker, whose Python and run do not overlap
        (Demand(0.5e-3, 0.5e-3, 3e-3), Machine(1, 1, 4), 50, 1 / 3.5e-3),
        # the lock
        (Demand(0.5e-3, 0.5e-3, 3e-3), Machine(1, 8, 8), 50, 1000.0),
        # two cores, which Python needs as well
        (Demand(0.5e-3, 0.5e-3, 3e-3), Machine(1, 8, 2), 50, 500.0),
        # the lock of each of two processes, and two processes on one core
        (Demand(1e-3, 0.0, 0.0), Machine(2, 1, 2), 50, 2000.0),
        (Demand(1e-3, 0.0, 0.0), Machine(2, 1, 1), 50, 1000.0),
        # the load generator's only thread
        (Demand(1e-4, 0.0, 0.0, client=1e-3), Machine(2, 1, 4), 50, 1000.0),
    ],
)
def test_throughput_of_constant_times_is_that_of_the_bottleneck(
    demand: Demand, machine: Machine, connections: int, expected: float
) -> None:
    found = simulate_closed(demand, machine, connections, 8_000, ALWAYS)
    # a thread that holds the lock may have to wait for a core, with which a little is lost
    assert expected * 0.9 < found.per_second < expected * 1.01


def test_clients_at_once_are_the_rate_times_the_time_of_each() -> None:
    # Little's law, of the mean time; of a server whose times are all but equal it is the median
    demand = Demand(1e-3, 0.0, 0.0)
    for connections in (1, 5, 40):
        found = simulate_closed(demand, Machine(1, 1, 1), connections, 8_000, ALWAYS)
        assert found.per_second * found.p50 / 1e3 == pytest.approx(connections, rel=0.02)


def test_two_processes_answer_twice_as_much_where_there_are_cores() -> None:
    demand = Demand(150e-6, 30e-6, 100e-6, 40e-6, 50e-6, 10e-6)

    def rate(processes: int, cores: int) -> float:
        machine = Machine(processes, 2, cores)
        return simulate_closed(demand, machine, 16 * processes, 10_000, ALWAYS).per_second

    assert rate(2, 16) == pytest.approx(2 * rate(1, 8), rel=0.05)
    assert rate(2, 2) < 1.8 * rate(1, 2)


def test_requests_that_are_at_hand_share_hand_overs() -> None:
    demand = Demand(100e-6, 20e-6, 100e-6, 40e-6, 60e-6, 1e-6)
    alone, few, many = (
        simulate_closed(demand, Machine(1, 2, 4), connections, 8_000, lognormal(0.2))
        for connections in (1, 4, 64)
    )
    assert alone.handovers == pytest.approx(3, rel=0.01)
    assert many.handovers < 0.8 * few.handovers
    # each hand-over takes the lock from all: more of them, less is answered
    assert few.per_second < many.per_second < 1 / demand.locked


def test_same_seed_gives_the_same_outcome() -> None:
    demand, machine = Demand(5e-5, 5e-5, 1e-3), Machine(2, 2, 2)
    first = simulate_open(demand, machine, 1000, 5000, lognormal(0.4), 3)
    assert first == simulate_open(demand, machine, 1000, 5000, lognormal(0.4), 3)
    assert first != simulate_open(demand, machine, 1000, 5000, lognormal(0.4), 4)


def test_mean_of_drawn_times_is_the_mean_that_was_asked_for() -> None:
    import random

    source, draw = random.Random(0), lognormal(0.5)
    times = [draw(source, 2.0) for _ in range(MANY)]
    assert sum(times) / MANY == pytest.approx(2.0, rel=0.02)
