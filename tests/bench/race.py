"""Contenders take turns on one model, so that whatever else the machine does meets them all alike."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from random import Random
from statistics import median
from time import perf_counter, sleep

from tests.bench.contenders import Contender
from tests.bench.models import Files
from tests.bench.results import Result, Start
from tests.bench.seat import start_of, take, take_turn
from tests.bench.worker import Worker, WorkerError

PAUSE_SECONDS = 0.025
"""Between turns: threads of the one before may spin a while before they sleep."""
FEWEST_ROUNDS, MOST_SECONDS = 5, 40
"""A race ends early after so many seconds, but not before so many rounds."""


def race(files: Files, contenders: Sequence[Contender], threads: int, rounds: int) -> list[Result]:
    """Return every contender's result on one model; one that fails has the reason in place of a time."""
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        starts: dict[str, Start] = {}
        failures: dict[str, str] = {}
        for contender in contenders:
            worker = stack.enter_context(Worker(take, contender.name, files, threads))
            try:
                starts[contender.name] = worker.ask(start_of)
                workers[contender.name] = worker
            except WorkerError as error:
                failures[contender.name] = str(error)
        turns = {name: _asker(worker) for name, worker in workers.items()}
        times = interleave(turns, rounds, failures)
    return [
        Result(
            files.model.name,
            threads,
            contender.name,
            median(times[contender.name]) if contender.name in times else None,
            starts.get(contender.name),
            failures.get(contender.name),
            len(times.get(contender.name, [])),
        )
        for contender in contenders
    ]


def interleave(
    turns: Mapping[str, Callable[[], list[float]]],
    rounds: int,
    failures: dict[str, str],
    pause: float = PAUSE_SECONDS,
    most_seconds: float = MOST_SECONDS,
) -> dict[str, list[float]]:
    """Return the medians of each contender's turns, in seconds.

    Each round everyone has a turn, in an order of its own, so that nobody always follows the same one. Who fails is
    noted among the failures and takes no further part.
    """
    random = Random(0)
    started = perf_counter()
    medians: dict[str, list[float]] = {name: [] for name in turns}
    for done in range(rounds):
        if done >= FEWEST_ROUNDS and perf_counter() - started > most_seconds:
            break
        names = [name for name in turns if name not in failures]
        random.shuffle(names)
        for name in names:
            sleep(pause)
            try:
                medians[name].append(median(turns[name]()))
            except WorkerError as error:
                failures[name] = str(error)
    return {name: times for name, times in medians.items() if times and name not in failures}


def _asker(worker: Worker) -> Callable[[], list[float]]:
    def ask() -> list[float]:
        times: list[float] = worker.ask(take_turn)
        return times

    return ask
