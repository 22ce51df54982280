"""A contender with its model, ready to run, in a process of its own."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from tests.bench.contenders import CONTENDERS
from tests.bench.memory import peak_bytes
from tests.bench.models import Files
from tests.bench.peers import Call
from tests.bench.results import Start

TOLERANCE = 1e-3
"""Largest difference to PyTorch's outputs that is let pass."""
FIRST_RUNS = 3
"""Runs until the peak of memory is read."""
SETTLE_SECONDS, TIMED_SECONDS, MOST_CALLS = 0.01, 0.03, 20
"""How long a turn runs untimed, and timed; at least one call each."""


@dataclass(frozen=True)
class Seat:
    """What the process of a contender holds."""

    call: Call
    start: Start


def take(name: str, files: Files, threads: int) -> Seat:
    """Load a model; returns how to run it and what that took.

    Raises:
        ValueError: the outputs are not PyTorch's.
    """
    contender = CONTENDERS[name]
    importlib.import_module(contender.package)
    if not contender.is_peer:
        importlib.import_module("engine")
    started = perf_counter()
    call = contender.prepare(files, threads)
    loaded = perf_counter()
    outputs = call()
    answered = perf_counter()
    for _ in range(FIRST_RUNS - 1):
        call()
    peak = peak_bytes()
    error = files.error(outputs)
    if not error <= TOLERANCE:
        raise ValueError(f"outputs differ from PyTorch's by {error:.1e}")
    return Seat(call, Start(loaded - started, answered - loaded, peak, error))


def start_of(seat: Seat) -> Start:
    """Return what it took to load."""
    return seat.start


def take_turn(seat: Seat) -> list[float]:
    """Return the seconds of each of a turn's calls."""
    return turn(seat.call)


def turn(call: Callable[[], object]) -> list[float]:
    """Return the seconds of each of some calls, after others that put code and weights back into the caches."""
    started = perf_counter()
    while True:
        call()
        if perf_counter() - started >= SETTLE_SECONDS:
            break
    times: list[float] = []
    while not times or (sum(times) < TIMED_SECONDS and len(times) < MOST_CALLS):
        started = perf_counter()
        call()
        times.append(perf_counter() - started)
    return times
