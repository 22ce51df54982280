"""What a run of the service's benchmark found, as data and as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from tests.bench.service.load import Timings

OURS = "Kuiper Serve"
"""Name of this server: one process."""
OURS_TWICE = f"{OURS}, two processes"
"""Name of this server where two processes share its port."""
BUILD = Path("build/bench-service.json")
"""Where every run writes to."""
SAVED = Path("docs/bench/service.json")
"""Where a run writes to that is to be shown."""


@dataclass(frozen=True, slots=True)
class StartResult:
    """A server's start and size.

    Attributes:
        server: its name.
        model: the model's name.
        ready_seconds: from its start to its first response.
        idle_bytes: memory when it was ready.
        loaded_bytes: memory after all requests.
    """

    server: str
    model: str
    ready_seconds: float
    idle_bytes: int
    loaded_bytes: int


@dataclass(frozen=True, slots=True)
class LoadResult:
    """A server under one kind of load.

    Attributes:
        server: its name.
        model: the model's name.
        form: of the input: JSON, binary or image.
        connections: requests at once.
        timings: what it did.
    """

    server: str
    model: str
    form: str
    connections: int
    timings: Timings


@dataclass(frozen=True, slots=True)
class Overhead:
    """What the service adds to one model's run for one form of request.

    Attributes:
        model: what is run.
        form: binary or JSON.
        forward_ms: median of the bare `forward`.
        request_ms: median that a client waits.
    """

    model: str
    form: str
    forward_ms: float
    request_ms: float

    @property
    def added_ms(self) -> float:
        """Milliseconds that the service adds."""
        return self.request_ms - self.forward_ms


@dataclass(frozen=True, slots=True)
class Lead:
    """This server beside another one, measured alternately with binary input.

    Attributes:
        model: what is asked.
        connections: requests at once.
        server: the other's name.
        figure: what is compared: the rate, in requests per second, or p50, the median of the milliseconds.
        ours: this server's figure.
        theirs: the other's.
        wanted: the least ratio that is wanted.
        leader: this server's name, which shows how many processes it has.
    """

    model: str
    connections: int
    server: str
    figure: str
    ours: float
    theirs: float
    wanted: float
    leader: str = OURS  # runs that were kept before there was another one do not show

    @property
    def ratio(self) -> float:
        """How many times as fast this server is: above 1 it leads, whichever figure is compared."""
        return self.ours / self.theirs if self.figure == "rate" else self.theirs / self.ours


@dataclass(frozen=True, slots=True)
class ServiceReport:
    """A run of the service's benchmark.

    Attributes:
        machine: what it ran on, the versions of this server's packages among it.
        date: its day, such as 2026-11-22.
        versions: of what is compared, by name: the other servers, and wrk.
        seconds: length of each load.
        ceiling: what the generator makes of a server that does nothing, at the most connections.
        loads: one for each server, model, form and number of connections.
        speedups: over each other server.
        starts: one for each server and model.
        overheads: one for each model and form.
        leads: over those servers for which a lead is wanted, measured alternately.
    """

    machine: Mapping[str, str]
    date: str
    versions: Mapping[str, str]
    seconds: int
    ceiling: Timings
    loads: tuple[LoadResult, ...]
    speedups: Mapping[str, float]
    starts: tuple[StartResult, ...]
    overheads: tuple[Overhead, ...]
    leads: tuple[Lead, ...] = ()


_FORMAT = TypeAdapter(ServiceReport)


def to_json(report: ServiceReport) -> str:
    """Return a report as JSON."""
    return _FORMAT.dump_json(report, indent=1).decode() + "\n"


def from_json(text: str) -> ServiceReport:
    """Return the report of a JSON text that `to_json` wrote.

    Raises:
        pydantic.ValidationError: it is none.
    """
    return _FORMAT.validate_json(text)
