"""A runtime with its model, ready to run, in a process of its own."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from tests.bench.memory import peak_bytes
from tests.bench.models import ModelFiles
from tests.bench.peers import Call
from tests.bench.results import Startup
from tests.bench.runtimes import RUNTIMES

TOLERANCE = 1e-3
"""Largest difference to PyTorch's outputs that is let pass."""
ROUGH_TOLERANCE = 0.5
"""The same of lower precisions: weights from a seed, and inputs of noise, lose more than those of a trained network."""
FIRST_RUNS = 3
"""Runs until the peak of memory is read."""
SETTLE_SECONDS, TIMED_SECONDS, MAX_CALLS = 0.01, 0.03, 20
"""How long calls run untimed, then timed, for one sample; at least one call each."""


@dataclass(frozen=True)
class LoadedRuntime:
    """What the process of a runtime holds."""

    call: Call
    start: Startup


def load(name: str, files: ModelFiles, threads: int) -> LoadedRuntime:
    """Load a model; returns how to run it and what that took.

    Raises:
        ValueError: the outputs are not PyTorch's.
    """
    runtime = RUNTIMES[name]
    importlib.import_module(runtime.package)
    if not runtime.is_peer:
        importlib.import_module("engine")
    started = perf_counter()
    call = runtime.prepare(files, threads)
    loaded = perf_counter()
    outputs = call()
    answered = perf_counter()
    for _ in range(FIRST_RUNS - 1):
        call()
    peak = peak_bytes()
    error = files.error(outputs)
    if not error <= (ROUGH_TOLERANCE if runtime.precision != "f32" else TOLERANCE):
        raise ValueError(f"outputs differ from PyTorch's by {error:.1e}")
    return LoadedRuntime(call, Startup(loaded - started, answered - loaded, peak, error))


def startup_of(loaded: LoadedRuntime) -> Startup:
    """Return what it took to load."""
    return loaded.start


def sample(loaded: LoadedRuntime) -> list[float]:
    """Return the seconds of each timed call of one sample."""
    return timed_calls(loaded.call)


def timed_calls(call: Callable[[], object]) -> list[float]:
    """Return the seconds of each of some calls, after others that put code and weights back into the caches."""
    started = perf_counter()
    while True:
        call()
        if perf_counter() - started >= SETTLE_SECONDS:
            break
    times: list[float] = []
    while not times or (sum(times) < TIMED_SECONDS and len(times) < MAX_CALLS):
        started = perf_counter()
        call()
        times.append(perf_counter() - started)
    return times
