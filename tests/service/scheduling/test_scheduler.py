"""Calls in queues and workers. Runs wait for events that the tests set, never for a clock."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import pytest
from starlette.requests import ClientDisconnect
from threadpoolctl import threadpool_info

from engine import LayerError, RunResult
from service.codec import Decoded
from service.errors import ServiceError
from service.scheduling.job import CallStatus, Job
from service.scheduling.scheduler import Scheduler
from tests.service.scheduling.conftest import Start
from tests.service.scheduling.queues import blocked
from tests.service.scheduling.stubs import (
    Client,
    Records,
    StubGraph,
    call_of,
    model_of,
    rows,
    settings_of,
    settled,
    stay,
    until,
)

pytestmark = pytest.mark.anyio


async def test_call_is_answered_by_a_worker(start: Start, graph: StubGraph, records: Records) -> None:
    assert await start().run(call_of(model_of(graph), rows(1, 2)), stay) == [2, 4]
    (record,) = records
    assert (record.status, record.worker, record.message) == (CallStatus.SUCCESS, "worker-0", None)
    assert (record.rows, record.batch_size, record.leads_run) == (2, 2, True)
    timestamps = record.timestamps
    times = [timestamps.received, timestamps.queued, timestamps.decode_start, timestamps.decode_end]
    times += [timestamps.forward_start, timestamps.forward_end, timestamps.encode_end]
    assert times[0] > 0
    assert times == sorted(times)


async def test_a_job_waits_runs_and_is_over(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph)
    first = await blocked(scheduler, graph, model)
    job, other = call_of(model, rows(1)), call_of(model, rows(2))
    tasks = [asyncio.create_task(scheduler.run(each)) for each in (job, other)]
    await until(lambda: scheduler.waiting() == 2)
    assert (scheduler.running(), scheduler.waiting()) == (1, 2)
    scheduler.cancel(other, "the client left", ClientDisconnect())
    assert (scheduler.waiting(), other.is_over, job.is_over) == (1, True, False)
    graph.open.let()
    await first
    await graph.has_begun()
    assert (scheduler.running(), scheduler.waiting(), job.is_over) == (1, 0, False)
    graph.open.set()
    assert await tasks[0] == [2]
    assert job.is_over
    with pytest.raises(ClientDisconnect):
        await tasks[1]


async def test_codec_sees_the_context_of_the_request(start: Start, graph: StubGraph) -> None:
    variable: ContextVar[str] = ContextVar("variable")
    variable.set("mine")
    seen = []

    def decode() -> Decoded:
        seen.append(variable.get())
        return Decoded({"0": rows(1)})

    def encode(_: RunResult) -> str:
        return variable.get()

    assert await start().run(call_of(model_of(graph), rows(), decode=decode, encode=encode), stay) == "mine"
    assert seen == ["mine"]


@pytest.mark.parametrize("stage", ["decode", "encode"])
@pytest.mark.parametrize("error", [ValueError("no"), StopIteration("no"), SystemExit(3)])
async def test_worker_outlives_what_a_codec_raises(
    start: Start, graph: StubGraph, records: Records, stage: str, error: BaseException
) -> None:
    def fail(*_: object) -> Any:
        raise error

    scheduler, model = start(), model_of(graph)
    sound = call_of(model, rows(1))
    failing = replace(sound, decode=fail) if stage == "decode" else replace(sound, encode=fail)
    with pytest.raises(ValueError if isinstance(error, ValueError) else RuntimeError, match="no|3"):
        await scheduler.run(failing, stay)
    assert await scheduler.run(call_of(model, rows(1)), stay) == [2]
    assert [record.status for record in records] == [CallStatus.OTHER, CallStatus.SUCCESS]
    assert records[0].leads_run == (stage == "encode")


@pytest.mark.parametrize("stage", ["decode", "run", "encode"])
async def test_memory_that_cannot_be_had_is_answered_503_and_given_back(
    start: Start, graph: StubGraph, records: Records, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    class Large:
        pass

    def fail(*_: object, **__: object) -> Any:
        large = Large()
        kept.append(weakref.ref(large))
        raise MemoryError("unable to allocate 3 GiB")

    kept: list[weakref.ref[Large]] = []
    scheduler, model = start(), model_of(graph)
    sound = call_of(model, rows(1))
    calls = {"decode": replace(sound, decode=fail), "run": sound, "encode": replace(sound, encode=fail)}
    with monkeypatch.context() as patch:
        if stage == "run":
            patch.setattr(graph, "run", fail)
        with pytest.raises(ServiceError) as caught:
            await scheduler.run(calls[stage], stay)
    assert (caught.value.status, caught.value.code) == (503, "out_of_memory")
    assert caught.value.headers == {"Retry-After": "1"}
    assert [reference() for reference in kept] == [None]
    assert await scheduler.run(call_of(model, rows(1)), stay) == [2]
    assert len(records) == 2


async def test_model_that_does_not_run_is_the_backends_fault(
    start: Start, graph: StubGraph, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **options: object) -> Any:
        raise LayerError("nn.Linear fc: no")

    monkeypatch.setattr(graph, "run", fail)
    with pytest.raises(ServiceError) as caught:
        await start().run(call_of(model_of(graph), rows(1)), stay)
    assert (caught.value.status, caught.value.code) == (422, "layer_failed")
    (record,) = records
    assert (record.status, record.message, record.leads_run) == (CallStatus.BACKEND, "nn.Linear fc: no", True)
    assert record.timestamps.forward_end == 0


async def test_worker_is_free_before_its_response_is_known(
    start: Start, graph: StubGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, deliver = start(queue_size=0), Scheduler.deliver
    running: list[int] = []

    def watch(self: Scheduler, jobs: Sequence[Job[Any]]) -> None:
        running.append(scheduler.running())
        deliver(self, jobs)

    with monkeypatch.context() as patch:
        patch.setattr(Scheduler, "deliver", watch)
        await scheduler.run(call_of(model_of(graph), rows(1)), stay)
    assert running == [0]


async def test_calls_run_side_by_side_over_the_workers(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(workers=3), model_of(graph)
    graph.close()
    tasks = [Client(scheduler).ask(call_of(model, rows(number))) for number in (1, 2, 3)]
    await graph.has_begun(3)
    assert (scheduler.running(model), scheduler.waiting(model)) == (3, 0)
    graph.open.set()
    assert await asyncio.gather(*tasks) == [[2], [4], [6]]


async def test_model_has_no_more_workers_than_it_may(start: Start, graph: StubGraph) -> None:
    scheduler = start(workers=3)
    narrow, other = model_of(graph, scheduling={"workers": 1}), model_of(StubGraph())
    graph.close()
    tasks = [Client(scheduler).ask(call_of(narrow, rows(number))) for number in (1, 2)]
    await graph.has_begun()
    assert await scheduler.run(call_of(other, rows(5)), stay) == [10]
    assert (scheduler.running(narrow), scheduler.waiting(narrow)) == (1, 1)
    graph.open.set()
    assert await asyncio.gather(*tasks) == [[2], [4]]


async def test_calls_are_taken_by_priority_then_arrival(start: Start, graph: StubGraph) -> None:
    scheduler = start()
    model = model_of(graph, scheduling={"default_priority": 3})
    graph.close()
    first = Client(scheduler).ask(call_of(model, rows(0)))
    await graph.has_begun()
    tasks = [first]
    for number, priority in enumerate([0, 2, 4, 1, 3, 2], start=1):
        tasks.append(Client(scheduler).ask(call_of(model, rows(number), priority=priority)))
        await until(lambda count=number: scheduler.waiting() == count)  # type: ignore[misc]  # bound early
    graph.open.set()
    await asyncio.gather(*tasks)
    assert graph.firsts == [[0], [4], [2], [6], [1], [5], [3]]


async def test_what_is_too_much_is_refused(start: Start, graph: StubGraph, records: Records) -> None:
    scheduler, model = start(queue_size=2), model_of(graph)
    graph.close()
    tasks = [Client(scheduler).ask(call_of(model, rows(number))) for number in (1, 2, 3)]
    await graph.has_begun()
    await until(lambda: scheduler.waiting() == 2)
    with pytest.raises(ServiceError) as caught:
        scheduler.check_room(model)
    error = caught.value
    assert (error.status, error.code) == (503, "queue_full")
    assert error.details == {"waiting": 2, "running": 1, "retry_after": 1}
    assert error.headers == {"Retry-After": "1"}
    with pytest.raises(ServiceError, match="2 requests waiting, 1 running"):
        await scheduler.run(call_of(model, rows(4)), stay)
    assert [(record.status, record.timestamps.decode_start) for record in records] == [
        (CallStatus.REJECTED, 0)
    ]
    scheduler.check_room(model_of(graph, "other"))
    graph.open.set()
    assert await asyncio.gather(*tasks) == [[2], [4], [6]]
    await settled(scheduler)
    scheduler.check_room(model)


async def test_queue_of_no_size_takes_what_a_free_worker_can(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(queue_size=0), model_of(graph)
    graph.close()
    task = Client(scheduler).ask(call_of(model, rows(1)))
    await graph.has_begun()
    with pytest.raises(ServiceError):
        scheduler.check_room(model)
    graph.open.set()
    assert await task == [2]


async def test_model_has_a_queue_of_its_own_size(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph, scheduling={"queue_size": 0})
    graph.close()
    task = Client(scheduler).ask(call_of(model, rows(1)))
    await graph.has_begun()
    with pytest.raises(ServiceError):
        scheduler.check_room(model)
    graph.open.set()
    await task


async def test_flood_on_one_model_does_not_starve_another(start: Start, graph: StubGraph) -> None:
    scheduler = start(queue_size=100)
    flooded, quiet = model_of(graph, "flooded"), model_of(graph, "quiet")
    graph.close()
    tasks = [Client(scheduler).ask(call_of(flooded, rows(number))) for number in range(50)]
    await graph.has_begun()
    await until(lambda: scheduler.waiting(flooded) == 49)
    tasks.append(Client(scheduler).ask(call_of(quiet, rows(1000))))
    await until(lambda: scheduler.waiting(quiet) == 1)
    graph.open.set()
    await asyncio.gather(*tasks)
    assert graph.firsts.index([1000]) <= 2


async def test_idle_worker_that_the_model_may_not_have_is_no_room(start: Start, graph: StubGraph) -> None:
    scheduler = start(workers=2)
    model = model_of(graph, scheduling={"queue_size": 0, "workers": 1})
    graph.close()
    task = Client(scheduler).ask(call_of(model, rows(1)))
    await graph.has_begun()
    with pytest.raises(ServiceError):
        scheduler.check_room(model)
    graph.open.set()
    await task


async def test_close_waits_for_workers_and_takes_nothing_more(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph)
    graph.close()
    running = Client(scheduler).ask(call_of(model, rows(1)))
    await graph.has_begun()
    dropped = Client(scheduler).ask(call_of(model, rows(2)))
    await until(lambda: scheduler.waiting() == 1)
    closing = asyncio.create_task(asyncio.to_thread(scheduler.close))
    await until(lambda: not scheduler.waiting())
    assert not closing.done()
    with pytest.raises(ServiceError) as caught:
        await scheduler.run(call_of(model, rows(3)), stay)
    assert (caught.value.status, caught.value.code) == (503, "shutting_down")
    assert caught.value.headers["Connection"] == "close"
    graph.open.set()
    await closing
    with pytest.raises(ServiceError):
        await running
    dropped.cancel()
    assert graph.firsts == [[1]]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("worker-")]


async def test_workers_are_no_daemons(start: Start) -> None:
    start(workers=2)
    workers = [thread for thread in threading.enumerate() if thread.name.startswith("worker-")]
    assert [thread.daemon for thread in workers] == [False, False]


async def test_worker_holds_on_to_nothing_of_a_call_that_is_done(start: Start, graph: StubGraph) -> None:
    class Body:
        pass

    async def ask() -> weakref.ref[Body]:
        body = Body()

        def decode(kept: Body = body) -> Decoded:
            return Decoded({"0": rows(1)})

        await scheduler.run(call_of(model_of(graph), rows(), decode=decode), stay)
        return weakref.ref(body)

    scheduler = Scheduler(settings_of())
    scheduler.start()
    body = await ask()
    await settled(scheduler)
    await until(
        lambda: gc.collect() >= 0 and body() is None
    )  # the worker may still be about to drop its work
    await asyncio.to_thread(scheduler.close)


async def test_queue_of_a_model_lives_as_long_as_its_jobs(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph)
    graph.close()
    tasks = [Client(scheduler).ask(call_of(model, rows(number))) for number in (1, 2)]
    await graph.has_begun()
    await until(lambda: scheduler.waiting() == 1)
    del model  # another version is loaded
    assert len(scheduler._queues) == 1
    graph.open.set()
    assert await asyncio.gather(*tasks) == [[2], [4]]
    await settled(scheduler)
    await until(lambda: gc.collect() >= 0 and not len(scheduler._queues))


def test_response_for_a_loop_that_is_closed_is_dropped() -> None:
    graph = StubGraph()
    graph.close()

    async def make() -> Scheduler:
        scheduler = Scheduler(settings_of())
        scheduler.start()
        task = Client(scheduler).ask(call_of(model_of(graph), rows(1)))
        await graph.has_begun()
        task.cancel()
        return scheduler

    scheduler = asyncio.run(make())
    graph.open.set()
    scheduler.close()
    assert graph.reasons == ["the client left"]


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


async def test_blas_uses_the_threads_of_the_server(start: Start) -> None:
    before = blas_threads()
    scheduler = start(threads=2)
    assert blas_threads() <= {2}
    scheduler.close()
    assert blas_threads() == before
