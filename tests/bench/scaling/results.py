"""What was measured and simulated, as data and as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from tests.bench.scaling.simulation import Demand, Outcome

BUILD = Path("build/bench-scaling.json")
"""Where every run writes to."""
SAVED = Path("docs/bench/scaling.json")
"""Where a run writes to that is to be shown."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What one model asks of a server.

    Attributes:
        model: its name.
        demand: of one request, with binary input.
        core_seconds: of one request, where many are at hand, hand-overs included.
        spread: standard deviation of the logarithm of a request's time.
        memory_bytes: of a replica of two processes after the load, pages that they share counted once.
        model_bytes: of the model's files.
        cold_seconds: from the start of a server to its readiness, nothing compiled before.
        warm_seconds: the same where the compiled code was at hand.
    """

    model: str
    demand: Demand
    core_seconds: float
    spread: float
    memory_bytes: int
    model_bytes: int
    cold_seconds: float
    warm_seconds: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """A load that was measured, and simulated.

    Attributes:
        model: what was asked.
        processes: of the server.
        connections: requests at once.
        measured: by the load generator.
        simulated: by the simulation.
        is_predicted: nothing was fitted to this load.
    """

    model: str
    processes: int
    connections: int
    measured: Outcome
    simulated: Outcome
    is_predicted: bool

    @property
    def rate_error(self) -> float:
        """Difference of the simulated rate from the measured one, as part of that."""
        return self.simulated.per_second / self.measured.per_second - 1

    @property
    def median_error(self) -> float:
        """The same of the median time."""
        return self.simulated.p50 / self.measured.p50 - 1


@dataclass(frozen=True, slots=True)
class Capacity:
    """What one replica of two cores and two processes takes of requests that arrive at random.

    Attributes:
        model: what is asked.
        per_second: most requests per second with a 99th percentile within the limit.
        outcome: what clients see at that rate.
        busy: part of the cores' time that is taken.
    """

    model: str
    per_second: float
    outcome: Outcome
    busy: float


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What other parts of a cluster take.

    Attributes:
        balancer_seconds: of a core, for HAProxy to pass on one request of digits.
        large_balancer_seconds: the same where its buffers take bodies of 1 MiB.
        scrape_bytes: of one answer of /metrics.
        scrape_seconds: of a core, for that answer.
    """

    balancer_seconds: float
    large_balancer_seconds: float
    scrape_bytes: int
    scrape_seconds: float


@dataclass(frozen=True, slots=True)
class ScalingReport:
    """A run of the benchmark.

    Attributes:
        machine: what it ran on.
        date: its day.
        rounds: of each load; the one with the median rate counts.
        slowdown: most times that the 99th percentile may be as long as an idle replica's median.
        profiles: one for each model.
        comparisons: of measured and simulated loads.
        capacities: one for each model.
        surroundings: what else takes time.
    """

    machine: Mapping[str, str]
    date: str
    rounds: int
    slowdown: float
    profiles: tuple[Profile, ...]
    comparisons: tuple[Comparison, ...]
    capacities: tuple[Capacity, ...]
    surroundings: Surroundings


_FORMAT = TypeAdapter(ScalingReport)


def to_json(report: ScalingReport) -> str:
    """Return a report as JSON."""
    return _FORMAT.dump_json(report, indent=1).decode() + "\n"


def from_json(text: str) -> ScalingReport:
    """Return the report of a JSON text that `to_json` wrote.

    Raises:
        pydantic.ValidationError: it is none.
    """
    return _FORMAT.validate_json(text)
