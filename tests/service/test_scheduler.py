"""The scheduler and its jobs. Work waits for events that the tests set, never for a clock."""

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from functools import partial
from time import monotonic
from typing import Any

import pytest
from threadpoolctl import threadpool_info

from service.errors import ServiceError
from service.job import Job
from service.scheduler import LONGEST_RETRY_AFTER, Scheduler, shutting_down

pytestmark = pytest.mark.anyio
SOON = 20.0
"""Seconds that nothing here takes; a test that waits so long has failed."""

StartScheduler = Callable[..., Scheduler]


def later() -> float:
    return monotonic() + SOON


class Gate:
    """Work that says when it has begun, and goes on when it is let."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.open = threading.Event()
        self.reason: str | None = "never asked"

    def __call__(self, job: Job[str]) -> str:
        self.begun.set()
        assert self.open.wait(SOON)
        self.reason = job.stop_reason()
        return "done"

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, SOON)


@pytest.fixture
async def start() -> AsyncIterator[StartScheduler]:
    started: list[Scheduler] = []

    def make(workers: int = 1, queue_size: int = 1, threads: int = 1) -> Scheduler:
        scheduler = Scheduler(workers, threads, queue_size)
        scheduler.start()
        started.append(scheduler)
        return scheduler

    yield make
    for scheduler in started:
        await asyncio.to_thread(scheduler.close)


async def settled(scheduler: Scheduler) -> None:
    """Return when no worker is busy: work queued behind what runs has been done."""
    async with asyncio.timeout(SOON):
        while scheduler.running or scheduler.waiting:
            await asyncio.sleep(0)


async def test_work_is_done_in_a_worker(start: StartScheduler) -> None:
    scheduler = start(queue_size=10)
    job = scheduler.submit(lambda _: threading.current_thread().name, later())
    assert await job.future == "worker-0"
    assert job.queued <= job.started


async def test_work_sees_the_context_of_the_request(start: StartScheduler) -> None:
    variable: ContextVar[str] = ContextVar("variable")
    variable.set("mine")
    assert await start().submit(lambda _: variable.get(), later()).future == "mine"


@pytest.mark.parametrize("error", [ValueError("no"), StopIteration("no"), SystemExit(3)])
async def test_worker_outlives_what_work_raises(start: StartScheduler, error: BaseException) -> None:
    def fail(_: Job[None]) -> None:
        raise error

    scheduler = start()
    with pytest.raises(ValueError if isinstance(error, ValueError) else RuntimeError, match="no|3"):
        await scheduler.submit(fail, later()).future
    assert await scheduler.submit(lambda _: 1, later()).future == 1


async def test_worker_is_free_before_its_result_is_known(
    start: StartScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, loop = start(queue_size=0), asyncio.get_running_loop()
    hand_over = loop.call_soon_threadsafe
    running: list[int] = []

    def watch(*arguments: Any, **options: Any) -> asyncio.Handle:
        running.append(scheduler.running)
        return hand_over(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "call_soon_threadsafe", watch)
        assert await scheduler.submit(lambda _: 1, later()).future == 1
    assert running == [0]


async def test_jobs_run_side_by_side_over_the_workers(start: StartScheduler) -> None:
    scheduler = start(workers=3)
    gates = [Gate() for _ in range(3)]
    jobs = [scheduler.submit(gate, later()) for gate in gates]
    for gate in gates:
        await gate.has_begun()
    assert scheduler.running == 3
    for gate in gates:
        gate.open.set()
    assert [await job.future for job in jobs] == ["done"] * 3


async def test_jobs_are_taken_in_order(start: StartScheduler) -> None:
    scheduler = start(queue_size=5)
    gate = Gate()
    first = scheduler.submit(gate, later())
    await gate.has_begun()
    order: list[int] = []

    def take_part(number: int, job: Job[None]) -> None:
        order.append(number)

    jobs = [scheduler.submit(partial(take_part, n), later()) for n in range(5)]
    gate.open.set()
    await asyncio.gather(first.future, *(job.future for job in jobs))
    assert order == [0, 1, 2, 3, 4]


async def test_what_is_too_much_is_refused(start: StartScheduler) -> None:
    scheduler = start(workers=1, queue_size=2)
    gate = Gate()
    jobs = [scheduler.submit(gate, later())]
    await gate.has_begun()
    jobs += [scheduler.submit(gate, later()) for _ in range(2)]
    for refuse in (scheduler.check_room, lambda: scheduler.submit(gate, later())):
        with pytest.raises(ServiceError) as caught:
            refuse()
        error = caught.value
        assert (error.status, error.code) == (503, "queue_full")
        assert error.details == {"waiting": 2, "running": 1, "retry_after": 1}
        assert error.headers == {"Retry-After": "1"}
    gate.open.set()
    assert [await job.future for job in jobs] == ["done"] * 3
    await settled(scheduler)
    scheduler.check_room()


async def test_queue_of_no_size_takes_what_a_free_worker_can(start: StartScheduler) -> None:
    scheduler = start(workers=1, queue_size=0)
    gate = Gate()
    job = scheduler.submit(gate, later())
    with pytest.raises(ServiceError):
        scheduler.submit(gate, later())
    gate.open.set()
    assert await job.future == "done"


@pytest.mark.parametrize(("seconds", "expected"), [(0.0, 1), (0.4, 1), (1.5, 3), (1e6, LONGEST_RETRY_AFTER)])
async def test_retry_after_follows_the_rate_of_late(
    start: StartScheduler, monkeypatch: pytest.MonkeyPatch, seconds: float, expected: int
) -> None:
    scheduler = start(workers=1, queue_size=1)
    clock = iter([seconds])
    with monkeypatch.context() as patch:
        patch.setattr("service.job.time.monotonic", lambda: 0.0)
        patch.setattr("service.scheduler.monotonic", lambda: next(clock))
        await scheduler.submit(lambda _: None, 1.0).future
        await settled(scheduler)
    gate = Gate()
    scheduler.submit(gate, later())
    await gate.has_begun()
    scheduler.submit(gate, later())
    with pytest.raises(ServiceError) as caught:
        scheduler.check_room()
    assert caught.value.headers["Retry-After"] == str(expected)
    gate.open.set()


async def test_waiting_job_that_is_given_up_is_dropped_at_once(start: StartScheduler) -> None:
    scheduler = start()
    gate, never = Gate(), Gate()
    running = scheduler.submit(gate, later())
    await gate.has_begun()
    waiting = scheduler.submit(never, later())
    scheduler.stop(waiting, "the client left")
    assert scheduler.waiting == 0
    assert waiting.future.cancelled()
    after = scheduler.submit(lambda _: "after", later())
    gate.open.set()
    assert await running.future == "done"
    assert await after.future == "after"
    assert not never.begun.is_set()


async def test_running_job_that_is_given_up_keeps_its_worker_until_it_ends(start: StartScheduler) -> None:
    scheduler = start()
    gate = Gate()
    job = scheduler.submit(gate, later())
    await gate.has_begun()
    scheduler.stop(job, "the client left")
    assert scheduler.running == 1
    after = scheduler.submit(lambda _: "after", later())
    with pytest.raises(ServiceError):
        scheduler.check_room()
    gate.open.set()
    assert await after.future == "after"
    assert gate.reason == "the client left"


async def test_job_whose_time_is_up_is_never_begun(start: StartScheduler) -> None:
    scheduler = start(queue_size=5)
    gate, never = Gate(), Gate()
    first = scheduler.submit(gate, later())
    await gate.has_begun()
    late = scheduler.submit(never, monotonic())
    last = scheduler.submit(lambda _: "last", later())
    gate.open.set()
    assert [await first.future, await last.future] == ["done", "last"]
    assert not never.begun.is_set()
    assert not late.future.done()
    assert late.stop_reason() == "its time is up"


async def test_all_jobs_can_be_refused(start: StartScheduler) -> None:
    scheduler = start()
    gate, never = Gate(), Gate()
    jobs = [scheduler.submit(gate, later())]
    await gate.has_begun()
    jobs.append(scheduler.submit(never, later()))
    scheduler.refuse_all(shutting_down())
    for job in jobs:
        with pytest.raises(ServiceError, match="shutting down"):
            await job.future
    gate.open.set()
    await settled(scheduler)
    assert gate.reason == "the server is shutting down and takes no more requests"
    assert not never.begun.is_set()


async def test_close_waits_for_workers_and_takes_nothing_more() -> None:
    scheduler = Scheduler(workers=1, threads=1, queue_size=1)
    scheduler.start()
    gate, never = Gate(), Gate()
    scheduler.submit(gate, later())
    await gate.has_begun()
    scheduler.submit(never, later())
    closing = asyncio.create_task(asyncio.to_thread(scheduler.close))
    while scheduler.waiting:
        await asyncio.sleep(0)
    assert not closing.done()
    with pytest.raises(ServiceError) as caught:
        scheduler.submit(never, later())
    assert (caught.value.status, caught.value.code) == (503, "shutting_down")
    assert caught.value.headers["Connection"] == "close"
    gate.open.set()
    await closing
    assert gate.reason == "the server is shutting down"
    assert not never.begun.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("worker-")]


async def test_workers_are_no_daemons(start: StartScheduler) -> None:
    start(workers=2)
    workers = [thread for thread in threading.enumerate() if thread.name.startswith("worker-")]
    assert [thread.daemon for thread in workers] == [False, False]


async def test_worker_holds_on_to_nothing_of_a_request_that_is_done(start: StartScheduler) -> None:
    class Thing:
        pass

    def answer(body: Thing, job: Job[Thing]) -> Thing:
        return Thing()

    async def ask() -> list[weakref.ref[Thing]]:
        body = Thing()
        result = await scheduler.submit(partial(answer, body), later()).future
        return [weakref.ref(body), weakref.ref(result)]

    scheduler = start()
    things = await ask()
    await settled(scheduler)
    await asyncio.sleep(0)
    gc.collect()
    assert [thing() for thing in things] == [None, None]


async def test_worker_that_is_done_frees_itself_and_no_other(start: StartScheduler) -> None:
    scheduler = start(workers=2, queue_size=0)
    gate = Gate()
    job = scheduler.submit(gate, later())
    await gate.has_begun()
    for _ in range(3):
        await scheduler.submit(lambda _: None, later()).future
        async with asyncio.timeout(SOON):
            while scheduler.running > 1:
                await asyncio.sleep(0)
        assert scheduler.running == 1
    gate.open.set()
    await job.future


def test_result_for_a_loop_that_is_closed_is_dropped() -> None:
    async def make(gate: Gate) -> Scheduler:
        scheduler = Scheduler(1, 1, 1)
        scheduler.start()
        scheduler.submit(gate, later())
        await gate.has_begun()
        return scheduler

    gate = Gate()
    scheduler = asyncio.run(make(gate))
    gate.open.set()
    scheduler.close()
    assert gate.reason in (None, "the server is shutting down")


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


async def test_arithmetic_of_one_job_uses_the_threads_it_may(start: StartScheduler) -> None:
    before = blas_threads()
    scheduler = start(threads=1)
    assert set(blas_threads()) <= {1}
    await asyncio.to_thread(scheduler.close)
    assert blas_threads() == before
