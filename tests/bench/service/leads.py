"""By how much this server leads others, measured alternately, so that a slow moment of the machine hits all of them."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.bench.service.candidates import Candidate
from tests.bench.service.load import LoadError, Timings, measure
from tests.bench.service.results import OURS, OURS_TWICE, Lead
from tests.bench.service.served_model import ServedModel
from tests.bench.service.server import MeasuredServer
from tests.bench.service.speedup import FORM

ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Bar:
    """The least lead that is wanted.

    Attributes:
        model: what is asked.
        connections: requests at once.
        server: beginning of the names of the servers that are led.
        figure: what is compared: the rate, or the median of the milliseconds.
        wanted: how many times as fast this server is to be.
        leader: this server's name, which shows how many processes it has.
    """

    model: str
    connections: int
    server: str
    figure: str
    wanted: float
    leader: str = OURS


BARS = (
    Bar("digits", 1, "FastAPI", "p50", 1.0),
    Bar("digits", 4, "Triton", "rate", 0.8),
    Bar("digits", 4, "Triton, instances", "rate", 0.8, OURS_TWICE),
    Bar("digits", 16, "Triton", "rate", 1.0),
    Bar("digits", 16, "Triton, instances", "rate", 1.0, OURS_TWICE),
    Bar("resnet18", 16, "Triton", "rate", 2.5),
    Bar("resnet18", 16, "Triton, instances", "rate", 2.5, OURS_TWICE),
)


def measure_leads(
    models: Sequence[ServedModel], servers: Sequence[Candidate], workers: int, seconds: int, settle: int
) -> list[Lead]:
    """Measure what the bars are about, as far as the models and servers are there.

    Args:
        models: the models.
        servers: the servers, this one among them.
        workers: of each server.
        seconds: for each figure, of which there are as many as rounds.
        settle: seconds of load before the first figure.

    Raises:
        LoadError: the load failed, or a server answered nothing for so long.
    """
    return [lead for model in models for lead in _leads(model, servers, workers, seconds, settle)]


def pairs(model: str, servers: Sequence[str]) -> list[tuple[Bar, str]]:
    """Return the bars of a model, each with the name of a server that is led; none without this server."""
    there = [bar for bar in BARS if bar.model == model and bar.leader in servers]
    return [(bar, name) for bar in there for name in servers if name.startswith(bar.server)]


def lead(bar: Bar, server: str, ours: Sequence[Timings], theirs: Sequence[Timings]) -> Lead:
    """Return the lead over a server, of the medians of the rounds."""
    field = "per_second" if bar.figure == "rate" else bar.figure
    of_ours, of_theirs = (median(getattr(timings, field) for timings in rounds) for rounds in (ours, theirs))
    return Lead(bar.model, bar.connections, server, bar.figure, of_ours, of_theirs, bar.wanted, bar.leader)


def too_small(leads: Sequence[Lead]) -> list[str]:
    """Return a sentence for each lead that is smaller than wanted."""
    return [
        f"{one.model}, {one.connections} at once: {one.leader} is {one.ratio:.2f} times as fast as {one.server} "
        f"by the {one.figure}; at least {one.wanted:g} times are wanted"
        for one in leads
        if one.ratio < one.wanted
    ]


def _leads(
    model: ServedModel, servers: Sequence[Candidate], workers: int, seconds: int, settle: int
) -> Iterator[Lead]:
    wanted = pairs(model.name, [one.name for one in servers])
    concerned = _concerned(wanted)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        started = {
            one.name: (stack.enter_context(one.start(model, scratch, workers)), one)
            for one in servers
            if one.name in concerned
        }
        asked = {
            name: (server.url, _settle(server, one, model, settle)) for name, (server, one) in started.items()
        }
        for connections in sorted({bar.connections for bar, _ in wanted}):
            now = [(bar, name) for bar, name in wanted if bar.connections == connections]
            rounds = _rounds({name: asked[name] for name in _concerned(now)}, connections, seconds)
            yield from (lead(bar, name, rounds[bar.leader], rounds[name]) for bar, name in now)


def _concerned(wanted: Sequence[tuple[Bar, str]]) -> list[str]:
    """Return the names of all servers of some pairs, each once."""
    return list(dict.fromkeys(name for bar, server in wanted for name in (bar.leader, server)))


def _settle(server: MeasuredServer, candidate: Candidate, model: ServedModel, seconds: int) -> bytes:
    """Check a response of a server and put it under load for a while; returns the request."""
    candidate.check(model, FORM, server.url)
    request = candidate.request(model, FORM).to_bytes()
    measure(server.url, request, max(bar.connections for bar in BARS), seconds)
    return request


def _rounds(
    asked: Mapping[str, tuple[str, bytes]], connections: int, seconds: int
) -> dict[str, list[Timings]]:
    """Measure servers alternately, another one first in each round.

    Args:
        asked: name -> where it listens, and what it is sent.
        connections: how many send at once.
        seconds: for each figure.
    """
    names = list(asked)
    found: dict[str, list[Timings]] = {name: [] for name in names}
    for number in range(ROUNDS):
        for index in range(len(names)):
            name = names[(number + index) % len(names)]
            timings = measure(*asked[name], connections, seconds)
            if not timings.per_second:
                raise LoadError(f"{name} answered nothing within {seconds} s: measure for more seconds")
            found[name].append(timings)
    return found
