"""How much one replica takes, and how many replicas a load needs."""

import math
from dataclasses import dataclass, replace

from tests.bench.scaling.results import Capacity, Profile
from tests.bench.scaling.simulation import Demand, Draw, Machine, Outcome, lognormal, simulate_open

REPLICA = Machine(processes=2, workers=1, cores=2)
"""A replica: the two cores of the chart's resources, with a process for each."""
REQUESTS = 10_000
"""Simulated for each rate that is tried, and each run of it."""
RUNS = 3
"""Simulations of each rate; the median one counts."""
STEPS = 7
"""Halvings of the interval that the rate lies in."""
SPARE = 1
"""Replicas beyond those that the load needs, so that one may be gone."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a load needs.

    Attributes:
        rate: requests per second.
        replicas: with the spare one.
        memory_bytes: of all of them.
        core_hours: for each hour.
        balancer_cores: that HAProxy takes to pass the requests on.
        seconds_to_copy: until each replica has the model's files, from one source over 10 Gbit/s.
        scrape_bytes_per_second: of metrics, at one scrape in 15 seconds.
    """

    rate: int
    replicas: int
    memory_bytes: int
    core_hours: int
    balancer_cores: float
    seconds_to_copy: float
    scrape_bytes_per_second: float

    def cost(self, price: float) -> float:
        """Return what 1,000,000 requests cost at a price of a core-hour, in its currency."""
        return self.core_hours * price / 3600 / self.rate * 1e6


def find_capacity(profile: Profile, slowdown: float) -> Capacity:
    """Return the most requests per second that a replica takes, arriving at random, within a limit of the slowest.

    Args:
        profile: what a request takes.
        slowdown: most times that the 99th percentile may be as long as the median of an idle replica.
    """
    demand, draw = replace(profile.demand, client=0.0), lognormal(profile.spread)
    most = min(REPLICA.cores / demand.server, REPLICA.processes / max(demand.locked, demand.run))
    limit = _outcome(demand, most / 1000, draw).p50 * slowdown
    low, high = 0.0, most
    best = None
    for _ in range(STEPS):
        rate = (low + high) / 2
        outcome = _outcome(demand, rate, draw)
        if outcome.p99 <= limit:
            low, best = rate, outcome
        else:
            high = rate
    if best is None:
        raise ValueError(f"{profile.model}: no load keeps 99 of 100 requests within {limit:.2f} ms")
    work = demand.server + best.handovers * demand.wake
    return Capacity(profile.model, low, best, low * work / REPLICA.cores)


def _outcome(demand: Demand, rate: float, draw: Draw) -> Outcome:
    """Simulate a rate several times, and return the median of the 99th percentiles' outcome."""
    found = [simulate_open(demand, REPLICA, rate, REQUESTS, draw, seed) for seed in range(RUNS)]
    return sorted(found, key=lambda outcome: outcome.p99)[RUNS // 2]


def plan(profile: Profile, capacity: Capacity, rate: int, balancer_seconds: float, scrape_bytes: int) -> Plan:
    """Return what `rate` requests per second need."""
    replicas = math.ceil(rate / capacity.per_second) + SPARE
    return Plan(
        rate=rate,
        replicas=replicas,
        memory_bytes=replicas * profile.memory_bytes,
        core_hours=replicas * REPLICA.cores,
        balancer_cores=rate * balancer_seconds,
        seconds_to_copy=replicas * profile.model_bytes / (10e9 / 8),
        scrape_bytes_per_second=replicas * scrape_bytes / 15,
    )
