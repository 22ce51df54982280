"""Samples of all runtimes are interleaved, so that whatever else the machine does slows them all alike."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from random import Random
from statistics import median
from time import perf_counter, sleep

from tests.bench.loaded import load, sample, startup_of
from tests.bench.models import ModelFiles
from tests.bench.results import RuntimeResult, Startup
from tests.bench.runtimes import Runtime
from tests.bench.worker import Worker, WorkerError

PAUSE_SECONDS = 0.025
"""Between samples: threads of the runtime before may spin a while before they sleep."""
FEWEST_ROUNDS, MAX_SECONDS = 5, 40
"""A comparison ends early after so many seconds, but not before so many rounds."""


def measure_alternately(
    files: ModelFiles, runtimes: Sequence[Runtime], threads: int, rounds: int
) -> list[RuntimeResult]:
    """Return every runtime's result on one model; one that fails has the reason in place of a time."""
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        starts: dict[str, Startup] = {}
        failures: dict[str, str] = {}
        for runtime in runtimes:
            worker = stack.enter_context(Worker(load, runtime.name, files, threads))
            try:
                starts[runtime.name] = worker.ask(startup_of)
                workers[runtime.name] = worker
            except WorkerError as error:
                failures[runtime.name] = str(error)
        samplers = {name: _sampler(worker) for name, worker in workers.items()}
        times = interleave(samplers, rounds, failures)
    return [
        RuntimeResult(
            files.model.name,
            threads,
            runtime.name,
            median(times[runtime.name]) if runtime.name in times else None,
            starts.get(runtime.name),
            failures.get(runtime.name),
            len(times.get(runtime.name, [])),
        )
        for runtime in runtimes
    ]


def interleave(
    samplers: Mapping[str, Callable[[], list[float]]],
    rounds: int,
    failures: dict[str, str],
    pause: float = PAUSE_SECONDS,
    max_seconds: float = MAX_SECONDS,
) -> dict[str, list[float]]:
    """Return the medians of each runtime's samples, in seconds.

    Each round takes one sample of each runtime, in an order of its own, so that none always follows the same one. A
    runtime that fails is noted among the failures and left out from then on.
    """
    random = Random(0)
    started = perf_counter()
    medians: dict[str, list[float]] = {name: [] for name in samplers}
    for done in range(rounds):
        if done >= FEWEST_ROUNDS and perf_counter() - started > max_seconds:
            break
        names = [name for name in samplers if name not in failures]
        random.shuffle(names)
        for name in names:
            sleep(pause)
            try:
                medians[name].append(median(samplers[name]()))
            except WorkerError as error:
                failures[name] = str(error)
    return {name: times for name, times in medians.items() if times and name not in failures}


def _sampler(worker: Worker) -> Callable[[], list[float]]:
    def sampler() -> list[float]:
        times: list[float] = worker.ask(sample)
        return times

    return sampler
