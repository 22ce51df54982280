"""Brief calls that come one at a time are run on the event loop; all others by workers."""

import asyncio
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from engine import LayerError
from service.codec import Decoded
from service.errors import ServiceError
from service.scheduling import queue as queues
from service.scheduling.record import CallStatus
from service.scheduling.scheduler import Scheduler
from tests.service.scheduling.conftest import Start
from tests.service.scheduling.queues import blocked, queue
from tests.service.scheduling.stubs import Client, Records, StubGraph, call_of, model_of, rows, stay, until

pytestmark = pytest.mark.anyio

SETTLED = 40
"""Calls after which the loop runs the next one."""


@pytest.fixture(autouse=True)
def all_work_is_brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no slow moment of the machine make work long."""
    monkeypatch.setattr(queues, "_BRIEF_SECONDS", 60.0)


async def rest(scheduler: Scheduler) -> None:
    """Return when all workers wait for work: one that comes from its last call takes the next without being woken."""
    pool = scheduler._pool
    await until(lambda: pool._idle == pool._worker_count)


async def settle(scheduler: Scheduler, make_call: Callable[[], Any]) -> None:
    """Make brief calls, one at a time, until the loop runs them."""
    for _ in range(SETTLED):
        await rest(scheduler)
        await scheduler.run(make_call(), stay)
    await rest(scheduler)


@pytest.mark.parametrize("batch_size", [1, 4])
async def test_brief_calls_that_come_alone_stay_on_the_loop(
    start: Start, graph: StubGraph, records: Records, batch_size: int
) -> None:
    scheduler, model = start(workers=2), model_of(graph, batch_size=batch_size)
    await settle(scheduler, lambda: call_of(model, rows(1), is_brief=True))
    here = threading.current_thread().name
    assert graph.threads[0].startswith("worker-")
    assert graph.threads[-1] == here
    assert await scheduler.run(call_of(model, rows(7), is_brief=True), stay) == [14]
    last = records[-1]
    assert (last.status, last.worker, last.batch_size, last.leads_run) == (CallStatus.SUCCESS, here, 1, True)
    assert len(records) == SETTLED + 1
    assert (scheduler.waiting(), scheduler.running(), scheduler.busy_workers()) == (0, 0, 0)


async def test_calls_that_are_not_known_to_be_brief_go_to_workers(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph)
    await settle(scheduler, lambda: call_of(model, rows(1)))
    assert set(graph.threads) == {"worker-0"}


async def test_models_whose_work_is_long_go_to_workers(
    start: Start, graph: StubGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, model = start(), model_of(graph)
    await settle(scheduler, lambda: call_of(model, rows(1), is_brief=True))
    monkeypatch.setattr(queues, "_BRIEF_SECONDS", 0.0)
    await scheduler.run(call_of(model, rows(1), is_brief=True), stay)
    assert graph.threads[-1] == "worker-0"


async def test_calls_that_overlap_go_to_workers_and_are_run_together(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph, batch_size=4)

    def brief(number: int) -> Any:
        return call_of(model, rows(number), is_brief=True)

    await settle(scheduler, lambda: brief(1))
    responses = await asyncio.gather(*[scheduler.run(brief(number), stay) for number in (2, 3, 4, 5)])
    assert list(responses) == [[4], [6], [8], [10]]
    assert graph.firsts[-1] == [2, 3, 4, 5]
    assert graph.threads[-1] == "worker-0"
    await rest(scheduler)
    await scheduler.run(brief(6), stay)
    assert graph.threads[-1] == "worker-0", "others may be about to come again"


async def test_a_busy_worker_is_company(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(workers=2), model_of(graph)
    await settle(scheduler, lambda: call_of(model, rows(1), is_brief=True))
    first = await blocked_on_worker(scheduler, graph, model)
    second = Client(scheduler).ask(call_of(model, rows(2), is_brief=True))
    await graph.has_begun()
    assert graph.threads[-1].startswith("worker-")
    graph.open.set()
    assert list(await asyncio.gather(first, second)) == [[2000], [4]]


async def blocked_on_worker(scheduler: Scheduler, graph: StubGraph, model: Any) -> "asyncio.Task[Any]":
    """Keep a worker busy: with a call that is not brief."""
    while graph.begun.acquire(blocking=False):
        pass
    return await blocked(scheduler, graph, model)


async def test_errors_are_told_and_the_loop_goes_on(start: Start, graph: StubGraph, records: Records) -> None:
    scheduler, model = start(), model_of(graph)
    await settle(scheduler, lambda: call_of(model, rows(1), is_brief=True))

    def refuse() -> Decoded:
        raise ServiceError(400, "bad", "a bad request")

    with pytest.raises(ServiceError, match="a bad request"):
        await scheduler.run(call_of(model, rows(1), decode=refuse, is_brief=True), stay)
    await rest(scheduler)
    with pytest.raises(ValueError, match="a negative number"):
        await scheduler.run(call_of(model, rows(-1), is_brief=True), stay)
    assert [record.status for record in records[-2:]] == [CallStatus.OTHER, CallStatus.BACKEND]
    assert await scheduler.run(call_of(model, rows(3), is_brief=True), stay) == [6]


async def test_a_client_that_leaves_before_its_turn_is_not_run(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph)
    await settle(scheduler, lambda: call_of(model, rows(1), is_brief=True))
    runs = len(graph.firsts)
    pending = scheduler.submit(call_of(model, rows(2), is_brief=True), lambda response, error: None)
    scheduler.cancel(pending, "the client left", LayerError("left"))
    await asyncio.sleep(0)
    await until(lambda: scheduler.waiting() == 0)
    assert await scheduler.run(call_of(model, rows(3), is_brief=True), stay) == [6]
    assert graph.firsts[runs:] == [[3]]


async def test_a_deadline_that_has_passed_is_seen(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph)
    await settle(scheduler, lambda: call_of(model, rows(1), is_brief=True))
    with pytest.raises(ServiceError) as caught:
        await scheduler.run(call_of(model, rows(2), is_brief=True, timeout=1e-9), stay)
    assert caught.value.code == "timeout"


async def test_calls_of_two_models_take_turns_alone(start: Start, graph: StubGraph) -> None:
    other = StubGraph()
    scheduler = start()
    models, numbers = (model_of(graph, "a"), model_of(other, "b")), count()

    def brief() -> Any:
        return call_of(models[next(numbers) % 2], rows(1), is_brief=True)

    await settle(scheduler, brief)
    await settle(scheduler, brief)
    here = threading.current_thread().name
    assert (graph.threads[-1], other.threads[-1]) == (here, here)


async def test_what_waits_already_goes_before(start: Start, graph: StubGraph) -> None:
    """A call in the queue, of whichever client, is company."""
    scheduler, model = start(), model_of(graph)
    await settle(scheduler, lambda: call_of(model, rows(1), is_brief=True))
    first = await blocked_on_worker(scheduler, graph, model)
    tasks = await queue(scheduler, *(call_of(model, rows(number), is_brief=True) for number in (1, 2)))
    graph.open.set()
    await asyncio.gather(first, *tasks)
    assert set(graph.threads[-3:]) == {"worker-0"}


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_call_that_waits_for_others_is_not_forgotten(
    start: Start, graph: StubGraph, workers: int
) -> None:
    """A batch that is due only later has a worker wait for it, also where the model may have but one."""
    scheduler = start(workers=workers)
    batching, scheduling = {"max_queue_delay_ms": 1}, {"workers": 1}
    model = model_of(graph, batch_size=4, batching=batching, scheduling=scheduling)
    await settle(scheduler, lambda: call_of(model, rows(1), is_brief=True, timeout=5.0))
    assert await scheduler.run(call_of(model, rows(7), is_brief=True, timeout=5.0), stay) == [14]
    assert (scheduler.waiting(), scheduler.running(), scheduler.busy_workers()) == (0, 0, 0)
