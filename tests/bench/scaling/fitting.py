"""What a request takes, from what was measured: times of threads, and one load that the hand-over is fitted to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.bench.scaling.simulation import Demand, Machine, lognormal, simulate_closed

FITTED, BUSY = 4, 16
"""Connections whose rate the hand-over is fitted to, and at which the times of threads are taken; of one process."""
HANDOVERS_ALONE = 4
"""Of a request that is alone: the loop is woken, a worker, the loop, and the client."""
WAKES_ALONE = 3
"""Of these, the server's."""
MOST_WAKES = 0.8
"""Part of the time under the lock that may be that of hand-overs."""
STEPS = 10
"""Halvings of the interval that the time lies in."""
REQUESTS = 6_000
"""Simulated at each step."""


@dataclass(frozen=True, slots=True)
class ThreadTimes:
    """Seconds of the processor for each request, of a server of one process that has many of them.

    Attributes:
        loop: of the event loop's thread.
        others: of all other threads.
        client: of the load generator.
        run: of the layers of a bare run of the model, on one thread, with nothing else to do.
    """

    loop: float
    others: float
    client: float
    run: float


def split(times: Sequence[ThreadTimes]) -> list[Demand]:
    """Return what a request for each model takes, hand-overs counted with Python.

    Workers run the same Python for all models. It is taken from the model with the shortest run: what runs side by side
    cost each other, and what a long run takes more or less from one minute to the next, is more than that Python.
    """
    smallest = min(times, key=lambda one: one.run)
    worker = max(smallest.others - smallest.run, 0.0)
    return [Demand(one.loop, worker, one.others - worker, client=one.client) for one in times]


def fit(demand: Demand, machine: Machine, alone_ms: float, rate: float, spread: float) -> Demand:
    """Return a demand with the hand-over told apart from the Python that each request takes.

    Args:
        demand: of the smallest model, by `split`.
        machine: that was measured, with one process.
        alone_ms: median milliseconds of a client that is alone.
        rate: requests per second of `FITTED` connections.
        spread: standard deviation of the logarithm of a time.
    """
    draw = lognormal(spread)

    def with_wake(wake: float) -> Demand:
        tried = without_wakes(demand, wake, handovers)
        rest = alone_ms / 1e3 - tried.server - tried.client - WAKES_ALONE * wake
        return replace(tried, handover=max(rest / HANDOVERS_ALONE, 0.0))

    low, high, handovers = 0.0, demand.locked, 2.0
    for _ in range(STEPS):
        wake = (low + high) / 2
        if wake * handovers > demand.locked * MOST_WAKES:
            high = wake
            continue
        tried = with_wake(wake)
        found = simulate_closed(tried, machine, FITTED, REQUESTS, draw).per_second
        handovers = simulate_closed(tried, machine, BUSY, REQUESTS, draw).handovers
        low, high = (wake, high) if found > rate else (low, wake)
    return with_wake(low)


def without_wakes(demand: Demand, wake: float, handovers: float) -> Demand:
    """Return a demand whose time under the lock is without that of hand-overs, so many for each request."""
    part = max(1 - wake * handovers / demand.locked, 0.0) if demand.locked else 0.0
    return replace(demand, loop=demand.loop * part, worker=demand.worker * part, wake=wake)


def share(demand: Demand, fitted: Demand, machine: Machine, spread: float) -> Demand:
    """Return what a request for another model takes, with hand-overs as they were fitted: they are the machine's."""
    handovers = 2.0
    tried = demand
    for _ in range(3):
        tried = replace(without_wakes(demand, fitted.wake, handovers), handover=fitted.handover)
        handovers = simulate_closed(tried, machine, BUSY, REQUESTS // 3, lognormal(spread)).handovers
    return tried


def is_predicted(model: str, fitted: str, processes: int, connections: int) -> bool:
    """Return whether nothing was fitted to a load: two of the first model's are what the hand-over comes from."""
    return model != fitted or processes != 1 or connections not in (1, FITTED)
