"""Heavy calls: workers leave them to others, so that light ones pass them by."""

import asyncio
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from engine import TraceLevel
from service.codec import Decoded, Options
from service.errors import ServiceError
from service.heavy_work import WorkStoppedError, check_wanted, check_weight
from service.scheduling import run_estimate, worker
from service.scheduling.job import Job, RunOutcome
from service.scheduling.record import CallStatus, Timestamps
from service.scheduling.run_estimate import LIGHT_ROWS, RunEstimate
from tests.service.scheduling.conftest import Start
from tests.service.scheduling.queues import queue
from tests.service.scheduling.stubs import (
    SOON,
    Client,
    Records,
    StubGraph,
    call_of,
    expire,
    model_of,
    rows,
    settled,
    stay,
    until,
)

pytestmark = pytest.mark.anyio
MANY = LIGHT_ROWS + 1


class Heavy:
    """Work that is heavy, and goes on until it is let.

    Attributes:
        threads: names of the threads that have begun it in earnest.
        tries: how often it was begun.
    """

    def __init__(self) -> None:
        self.begun, self.ends = threading.Semaphore(0), threading.Event()
        self.threads: list[str] = []
        self.tries = 0

    def work(self) -> None:
        self.tries += 1
        check_weight(2, 1)
        self.threads.append(threading.current_thread().name)
        self.begun.release()
        assert self.ends.wait(SOON)

    def decode(self) -> Decoded:
        self.work()
        return Decoded({"0": rows(1)})

    def encode(self, outcome: RunOutcome) -> str:
        self.work()
        return f"heavy {outcome.result.outputs[0][0, 0]:g}"

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.acquire, timeout=SOON)


@pytest.mark.parametrize("batch_size", [1, 4])
async def test_light_calls_pass_by_a_call_that_is_decoded_for_long(
    start: Start, graph: StubGraph, batch_size: int
) -> None:
    scheduler, model, heavy = start(), model_of(graph, batch_size=batch_size), Heavy()
    task = Client(scheduler).ask(call_of(model, rows(1), decode=heavy.decode))
    await heavy.has_begun()
    assert await scheduler.run(call_of(model, rows(3)), stay) == [6]
    assert (scheduler.running(model), scheduler.busy_workers(), scheduler.busy_heavy_workers()) == (
        1,
        0,
        1,
    )
    heavy.ends.set()
    assert await task == [2]
    assert graph.threads == ["worker-0", "heavy-worker-0"] == ["worker-0", *heavy.threads]
    assert heavy.tries == 2


async def test_light_calls_pass_by_a_run_of_many_rows(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph)
    graph.close()
    task = Client(scheduler).ask(call_of(model, rows(*range(MANY))))
    await graph.has_begun()
    light = asyncio.create_task(scheduler.run(call_of(model, rows(*range(LIGHT_ROWS))), stay))
    await graph.has_begun()
    assert graph.threads == ["heavy-worker-0", "worker-0"]
    graph.open.set()
    assert len(await task) == MANY
    assert len(await light) == LIGHT_ROWS


@pytest.mark.usefixtures("idle_compiler")
async def test_threads_take_short_turns_during_heavy_work(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph)
    usual = sys.getswitchinterval()
    graph.close()
    task = Client(scheduler).ask(call_of(model, rows(*range(MANY))))
    await graph.has_begun()
    assert sys.getswitchinterval() < usual / 2
    graph.open.set()
    await task
    await settled(scheduler)
    assert sys.getswitchinterval() == usual


async def test_runs_of_many_rows_that_are_known_to_be_short_are_light(
    start: Start, graph: StubGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_estimate, "_LIGHT_SECONDS", 60.0)  # a busy machine may interrupt a run for longer
    scheduler, model = start(), model_of(graph)
    for _ in range(2):
        assert len(await scheduler.run(call_of(model, rows(*range(MANY))), stay)) == MANY
        await settled(scheduler)
    observed = call_of(model, rows(*range(MANY)), options=Options(trace=TraceLevel.STATISTICS))
    await scheduler.run(observed, stay)
    assert graph.threads == ["heavy-worker-0", "worker-0", "heavy-worker-0"]


@pytest.mark.parametrize("batch_size", [1, 4])
async def test_light_calls_pass_by_a_call_that_is_encoded_for_long(
    start: Start, graph: StubGraph, records: Records, batch_size: int
) -> None:
    scheduler, model, heavy = start(), model_of(graph, batch_size=batch_size), Heavy()
    task = Client(scheduler).ask(call_of(model, rows(4), encode=heavy.encode))
    await heavy.has_begun()
    assert await scheduler.run(call_of(model, rows(3)), stay) == [6]
    heavy.ends.set()
    assert await task == "heavy 8"
    assert graph.firsts == [[4], [3]], "it is run once"
    assert [(record.status, record.leads_run) for record in records] == [(CallStatus.SUCCESS, True)] * 2
    assert records[1].timestamps.encode_end


@pytest.mark.parametrize("heavy_calls", [1, 2, 3])
async def test_a_batch_is_counted_once_however_many_of_its_calls_are_left(
    start: Start, graph: StubGraph, records: Records, heavy_calls: int
) -> None:
    scheduler, model = start(), model_of(graph, batch_size=3)
    heavies = [Heavy() for _ in range(heavy_calls)]
    for heavy in heavies:
        heavy.ends.set()
    graph.close()
    first = Client(scheduler).ask(call_of(model, rows(9)))
    await graph.has_begun()
    encoders: list[Callable[[RunOutcome], Any] | None] = [heavy.encode for heavy in heavies]
    encoders += [None] * (3 - heavy_calls)
    tasks = await queue(
        scheduler, *(call_of(model, rows(n), encode=encode) for n, encode in enumerate(encoders))
    )
    graph.open.set()
    await asyncio.gather(first, *tasks)
    await settled(scheduler)
    assert graph.firsts == [[9], [0, 1, 2]]
    assert sum(record.leads_run for record in records) == 2


async def test_heavy_calls_beyond_the_queue_are_refused_and_take_no_room_from_others(
    start: Start, graph: StubGraph
) -> None:
    scheduler, model, heavy = start(queue_size=1), model_of(graph), Heavy()
    calls = [call_of(model, rows(1), decode=heavy.decode) for _ in range(3)]
    first = Client(scheduler).ask(calls[0])
    await heavy.has_begun()
    second = Client(scheduler).ask(calls[1])
    await until(lambda: scheduler.waiting(model) == 1 and not scheduler.busy_workers())
    with pytest.raises(ServiceError) as caught:
        await scheduler.run(calls[2], stay)
    assert (caught.value.status, caught.value.code) == (503, "queue_full")
    assert await scheduler.run(call_of(model, rows(3)), stay) == [6]
    heavy.ends.set()
    assert await first == await second == [2]


async def test_a_heavy_call_whose_client_leaves_is_dropped(start: Start, graph: StubGraph) -> None:
    scheduler, model, heavy = start(), model_of(graph), Heavy()
    first = Client(scheduler).ask(call_of(model, rows(1), decode=heavy.decode))
    await heavy.has_begun()
    client = Client(scheduler)
    second = client.ask(call_of(model, rows(1), decode=heavy.decode))
    await until(lambda: scheduler.waiting(model) == 1 and not scheduler.busy_workers())
    client.left.set()
    with pytest.raises(ClientDisconnect):
        await second
    assert scheduler.waiting(model) == 0
    heavy.ends.set()
    assert await first == [2]
    assert len(heavy.threads) == 1


async def test_a_heavy_call_that_is_stuck_beyond_its_time_gives_its_place_to_another(
    start: Start, graph: StubGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "GRACE_SECONDS", 0.0)
    scheduler, model, stuck, heavy = start(), model_of(graph), Heavy(), Heavy()
    late = Client(scheduler).ask(call_of(model, rows(1), decode=stuck.decode))
    await stuck.has_begun()
    expire(scheduler)
    with pytest.raises(ServiceError) as caught:
        await late
    assert caught.value.code == "timeout"
    task = Client(scheduler).ask(call_of(model, rows(1), decode=heavy.decode))
    await heavy.has_begun()
    heavy.ends.set()
    assert await task == [2]
    stuck.ends.set()
    await settled(scheduler)
    assert heavy.threads == ["heavy-worker-1"]


@pytest.mark.parametrize("stage", ["decode", "encode"])
async def test_heavy_work_ends_with_the_time_of_its_call(start: Start, graph: StubGraph, stage: str) -> None:
    """What is done in pieces does not keep its thread, so that none has to take its place."""
    scheduler, model = start(), model_of(graph)
    begun, ended = threading.Event(), threading.Event()

    def work(*_: object) -> Decoded:
        check_weight(2, 1)
        begun.set()
        try:
            while True:
                check_wanted()
        finally:
            ended.set()

    call = call_of(model, rows(1), **{stage: work})  # type: ignore[arg-type]  # either of them
    task = Client(scheduler).ask(call)
    assert await asyncio.to_thread(begun.wait, SOON)
    expire(scheduler)
    with pytest.raises(ServiceError) as caught:
        await task
    assert caught.value.code == "timeout"
    assert await asyncio.to_thread(ended.wait, SOON)
    await settled(scheduler)
    assert await scheduler.run(call_of(model, rows(*range(MANY))), stay)
    assert graph.threads[-1] == "heavy-worker-0"


async def test_a_worker_that_sees_first_that_the_time_is_up_says_so(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph)

    def decode() -> Decoded:
        raise WorkStoppedError("its time is up")

    with pytest.raises(ServiceError) as caught:
        await scheduler.run(call_of(model, rows(1), decode=decode), stay)
    assert (caught.value.status, caught.value.code) == (504, "timeout")


async def test_heavy_calls_are_refused_with_all_others(start: Start, graph: StubGraph) -> None:
    scheduler, model, heavy = start(), model_of(graph), Heavy()
    task = Client(scheduler).ask(call_of(model, rows(1), decode=heavy.decode))
    await heavy.has_begun()
    scheduler.refuse_all(ServiceError(503, "shutting_down", "the server is shutting down"))
    with pytest.raises(ServiceError, match="shutting down"):
        await task
    heavy.ends.set()


async def test_calls_on_their_way_to_heavy_workers_are_refused_with_all_others(
    start: Start, graph: StubGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, model, heavy = start(), model_of(graph), Heavy()
    kept: list[Callable[[], None]] = []
    with monkeypatch.context() as patch:  # the event loop is busy with something else meanwhile
        patch.setattr(scheduler._pool, "_call_loop", lambda *call: kept.append(partial(*call)))
        task = Client(scheduler).ask(call_of(model, rows(1), decode=heavy.decode))
        await until(lambda: bool(heavy.tries) and not scheduler.busy_workers())
    scheduler.refuse_all(ServiceError(503, "shutting_down", "the server is shutting down"))
    with pytest.raises(ServiceError, match="shutting down"):
        await task
    for call in kept:
        call()
    await settled(scheduler)
    assert heavy.tries == 1, "no heavy worker has begun it"


async def test_queue_of_heavy_calls_is_forgotten_with_its_model(start: Start, graph: StubGraph) -> None:
    scheduler, model, heavy = start(), model_of(graph), Heavy()
    heavy.ends.set()
    await scheduler.run(call_of(model, rows(1), decode=heavy.decode), stay)
    scheduler.retire(model)
    await until(lambda: scheduler._large._queues == {} == scheduler._pool._queues)


async def test_errors_of_heavy_work_end_its_own_call(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph)

    def decode() -> Decoded:
        check_weight(2, 1)
        raise ServiceError(400, "invalid_image", "damaged")

    with pytest.raises(ServiceError, match="damaged"):
        await scheduler.run(call_of(model, rows(1), decode=decode), stay)
    with pytest.raises(ValueError, match="negative"):
        await scheduler.run(call_of(model, rows(*[-1] * MANY)), stay)
    assert await scheduler.run(call_of(model, rows(3)), stay) == [6]


def job_of(items: int, seconds: float) -> Job[Any]:
    job = call_of(model_of(StubGraph()), rows(1))
    job.timestamps = Timestamps(forward_start=1, forward_end=1 + int(seconds * 1e9))
    job.rows = items
    return job


def test_estimate_follows_the_latest_runs() -> None:
    estimate = RunEstimate(1)
    call = job_of(100, 0.2)
    assert estimate.is_large(call)
    estimate.observe(job_of(1000, 0.1))
    assert not estimate.is_large(call)
    for _ in range(10):
        estimate.observe(call)
    assert estimate.is_large(call)
    assert not estimate.is_large(job_of(LIGHT_ROWS, 9.0))


def test_runs_of_a_whole_batch_are_light() -> None:
    assert not RunEstimate(100).is_large(job_of(100, 1.0))
    assert RunEstimate(100).is_large(job_of(101, 1.0))
