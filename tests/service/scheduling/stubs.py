"""Models whose runs the tests hold in their hands, and calls of them."""

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from time import perf_counter_ns
from typing import Any, NamedTuple, cast

import numpy as np
from starlette.types import Message

from engine import (
    Array,
    LayerTrace,
    Port,
    RunResult,
    RunStoppedError,
    RuntimeGraph,
    RunTrace,
    TraceLevel,
    Value,
)
from service.codec import Decoded, Options
from service.config.model_config import ModelConfig
from service.config.settings import Settings
from service.repository.batching import Batching
from service.repository.loaded_model import LoadedModel
from service.scheduling.job import CallStatus, Job, ProtocolName, Timestamps
from service.scheduling.scheduler import Scheduler
from service.tasks.raw import Raw
from service.tasks.task import TaskModel

SOON = 20.0
"""Seconds that nothing here takes; a test that waits so long has failed."""

StopCheck = Callable[[], str | None]


class Gate:
    """Lets runs through: all while it is open, else as many as it is reported to."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_open = True
        self._permits = 0

    def set(self) -> None:
        """Open it."""
        with self._changed:
            self._is_open = True
            self._changed.notify_all()

    def clear(self) -> None:
        """Close it."""
        with self._changed:
            self._is_open = False

    def let(self, runs: int = 1) -> None:
        """Let so many through."""
        with self._changed:
            self._permits += runs
            self._changed.notify_all()

    def pass_through(self) -> None:
        """Wait until it is open, or one is let through."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._is_open or self._permits, SOON)
            self._permits -= not self._is_open


class StubGraph:
    """A graph that doubles its one input (rows, 2) and says that it has begun; goes on when it is let.

    A row whose first number is negative makes it fail.

    Attributes:
        open: whether runs may go on; set from the beginning.
        sizes: rows of each run, in order of beginning.
        firsts: first number of each row of each run.
        stops: stop check of each run.
        reasons: for each run that ended the reason to stop that it saw.
        levels: trace level of each run.
    """

    inputs = (Port("in", "0", (1, 2), "f32"),)
    outputs = (Port("out", "1", (1, 2), "f32"),)

    def __init__(self) -> None:
        self.open = Gate()
        self.begun = threading.Semaphore(0)
        self.sizes: list[int] = []
        self.firsts: list[list[float]] = []
        self.stops: list[StopCheck | None] = []
        self.reasons: list[str | None] = []
        self.levels: list[TraceLevel] = []
        self.threads: list[str] = []

    def run(
        self,
        inputs: Mapping[str, Array],
        *,
        trace: TraceLevel = TraceLevel.OFF,
        capture: Collection[str] = (),
        stop: StopCheck | None = None,
        waits: bool = True,
    ) -> RunResult:
        array = inputs["0"]
        self.sizes.append(len(array))
        self.firsts.append(array[:, 0].tolist())
        self.levels.append(trace)
        self.stops.append(stop)
        self.threads.append(threading.current_thread().name)
        self.begun.release()
        self.open.pass_through()
        reason = None if stop is None else stop()
        self.reasons.append(reason)
        if reason is not None:
            raise RunStoppedError(reason)
        if (array < 0).any():
            raise ValueError("a negative number")
        layers: tuple[LayerTrace, ...] = ()
        captured: dict[str, Value] = dict.fromkeys(capture, array)
        observed = bool(capture) or trace >= TraceLevel.STATISTICS
        made = RunTrace(1.0, layers, is_observed=observed) if trace else None
        return RunResult([array * 2], made, captured, dict.fromkeys(capture, "numpy"))

    def close(self) -> None:
        """Keep runs from going on."""
        self.open.clear()

    async def has_begun(self, runs: int = 1) -> None:
        """Return when so many more runs have begun."""
        for _ in range(runs):
            assert await asyncio.to_thread(self.begun.acquire, timeout=SOON)


def model_of(
    graph: object, name: str = "stub", batch_size: int = 1, **tables: Mapping[str, Any]
) -> LoadedModel:
    """Return a model with a graph; `tables` are those of its `model.toml`."""
    config = ModelConfig.model_validate(tables)
    return LoadedModel(
        name,
        "1",
        cast("RuntimeGraph", graph),
        config,
        Raw(TaskModel(config, [], [])),
        0,
        0,
        Batching(batch_size),
    )


def rows(*firsts: float) -> Array:
    """Return an input whose rows begin with these numbers."""
    return np.array([[first, 1] for first in firsts], np.float32)


def call_of(
    model: LoadedModel,
    array: Array,
    *,
    decode: Callable[[], Decoded] | None = None,
    encode: Callable[[RunResult], Any] | None = None,
    options: Options | None = None,
    timeout: float | None = None,
    priority: int = 0,
    client: str = "",
) -> Job[Any]:
    """Return a call that is answered with the first numbers of its rows' outputs."""

    def first_numbers(result: RunResult) -> list[float]:
        numbers: list[float] = result.outputs[0][:, 0].tolist()
        return numbers

    return Job(
        model=model,
        protocol=ProtocolName.INFER,
        request_id="r1",
        decode=decode or (lambda: Decoded({"0": array}, options or Options())),
        encode=encode or first_numbers,
        timestamps=Timestamps(perf_counter_ns()),
        timeout=timeout,
        priority=priority,
        client=client,
    )


async def stay() -> Message:
    """Channel of a client that waits for its response."""
    await asyncio.Event().wait()
    raise AssertionError


class Client:
    """Asks a scheduler, and leaves when it is reported to."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.left = asyncio.Event()

    async def _receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    def ask(self, call: Job[Any]) -> "asyncio.Task[Any]":
        """Send a call."""
        return asyncio.create_task(self._scheduler.run(call, self._receive))


class Record(NamedTuple):
    """What is checked of a call that has ended."""

    model: str
    status: CallStatus
    message: str | None
    timestamps: Timestamps
    batch_size: int
    rows: int
    leads_run: bool
    worker: str
    trace: RunTrace | None


class Records(list[Record]):
    """An observer that keeps what it is reported."""

    def observe(self, job: Job[Any]) -> None:
        self.append(
            Record(
                job.model.name,
                job.status,
                job.message,
                replace(job.timestamps),
                job.batch_size,
                job.rows,
                job.leads_run,
                job.worker,
                job.trace,
            )
        )


async def until(condition: Callable[[], bool]) -> None:
    """Return when a condition holds."""
    async with asyncio.timeout(SOON):
        while not condition():
            await asyncio.sleep(0)


def jobs_of(scheduler: Scheduler) -> list[Job[Any]]:
    """Return the jobs that wait or run."""
    queues = list(scheduler._queues.values())
    running = [job for queue in queues for work in (*queue.work, *queue.replaced) for job in work.jobs]
    return running + [
        job for queue in queues for job in (*queue._undecoded, *queue._batcher, *queue.decoding)
    ]


def expire(scheduler: Scheduler) -> None:
    """Let the deadline of all jobs pass now.

    A short timeout may pass before a worker of a busy machine has begun the call.
    """
    for job in jobs_of(scheduler):
        scheduler._expire(job)


def settings_of(**values: Any) -> Settings:
    return Settings(
        **({"workers": 1, "threads": 1, "queue_size": 10, "timeout": SOON, "trace_rate": 0} | values)
    )


async def settled(scheduler: Scheduler) -> None:
    """Return when no worker is busy."""
    await until(lambda: not scheduler.running() and not scheduler.waiting())
