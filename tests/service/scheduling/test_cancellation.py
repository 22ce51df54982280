"""Calls that end before their responses come. Runs wait for events that the tests set, never for a clock."""

import asyncio
import gc
import weakref

import pytest
from starlette.requests import ClientDisconnect

from engine import StopSignal
from service.codec import Decoded
from service.errors import ServiceError, shutting_down
from service.scheduling import scheduler as scheduler_module
from service.scheduling.job import CallStatus
from tests.service.scheduling.conftest import Start
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


async def test_waiting_call_whose_client_leaves_is_dropped_at_once(
    start: Start, graph: StubGraph, records: Records
) -> None:
    scheduler, model = start(), model_of(graph)
    graph.close()
    running = Client(scheduler).ask(call_of(model, rows(1)))
    await graph.has_begun()
    leaving = Client(scheduler)
    gone = leaving.ask(call_of(model, rows(2)))
    await until(lambda: scheduler.waiting() == 1)
    leaving.left.set()
    with pytest.raises(ClientDisconnect):
        await gone
    assert scheduler.waiting() == 0
    assert [(record.status, record.timestamps.decode_start) for record in records] == [
        (CallStatus.CANCELED, 0)
    ]
    graph.open.set()
    assert await running == [2]
    assert graph.firsts == [[1]]


async def test_running_call_whose_client_leaves_keeps_its_worker_until_it_ends(
    start: Start, graph: StubGraph, records: Records
) -> None:
    scheduler, model = start(queue_size=0), model_of(graph)
    graph.close()
    leaving = Client(scheduler)
    gone = leaving.ask(call_of(model, rows(1)))
    await graph.has_begun()
    leaving.left.set()
    with pytest.raises(ClientDisconnect):
        await gone
    assert scheduler.running() == 1
    with pytest.raises(ServiceError):
        scheduler.check_room(model)
    graph.open.set()
    await settled(scheduler)
    assert graph.reasons == ["the client left"]
    assert [record.status for record in records] == [CallStatus.CANCELED]


async def test_cancelled_request_stops_its_run(start: Start, graph: StubGraph, records: Records) -> None:
    scheduler = start()
    graph.close()
    task = Client(scheduler).ask(call_of(model_of(graph), rows(1)))
    await graph.has_begun()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    graph.open.set()
    await settled(scheduler)
    assert graph.reasons == ["the client left"]
    assert [record.status for record in records] == [CallStatus.CANCELED]


async def test_deadline_ends_the_wait_and_stops_the_run(
    start: Start, graph: StubGraph, records: Records
) -> None:
    scheduler = start(timeout=600.0)
    graph.close()
    task = Client(scheduler).ask(call_of(model_of(graph), rows(1), timeout=700.0))
    await graph.has_begun()
    expire(scheduler)
    with pytest.raises(ServiceError) as caught:
        await task
    assert (caught.value.status, caught.value.code) == (504, "timeout")
    assert caught.value.details == {"timeout": 600.0}
    graph.open.set()
    await settled(scheduler)
    assert graph.reasons == ["its time is up"]
    assert [record.status for record in records] == [CallStatus.CANCELED]


async def test_call_whose_time_passes_while_it_waits_is_never_run(
    start: Start, graph: StubGraph, records: Records
) -> None:
    scheduler, model = start(), model_of(graph)
    graph.close()
    first = Client(scheduler).ask(call_of(model, rows(1)))
    await graph.has_begun()
    with pytest.raises(ServiceError) as caught:
        await scheduler.run(call_of(model, rows(2), timeout=0.01), stay)
    assert caught.value.details == {"timeout": 0.01}
    assert [(record.status, record.timestamps.forward_start) for record in records] == [
        (CallStatus.REJECTED, 0)
    ]
    graph.open.set()
    await first
    assert graph.firsts == [[1]]


async def test_call_that_a_worker_takes_too_late_is_not_even_decoded(
    start: Start, graph: StubGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop is too busy to see the deadline: the worker sees it."""
    monkeypatch.setattr(scheduler_module, "WATCH_DELAY_SECONDS", SOON)
    decoded = []

    def decode() -> Decoded:
        decoded.append(1)
        return Decoded({"0": rows(1)})

    scheduler, model = start(), model_of(graph)
    graph.close()
    first = Client(scheduler).ask(call_of(model, rows(1)))
    await graph.has_begun()
    late = Client(scheduler).ask(call_of(model, rows(), decode=decode))
    await until(lambda: scheduler.waiting() == 1)
    (waiting,) = scheduler._queues[model]._undecoded
    waiting.deadline = 0.0  # its time is up, and only the worker knows
    graph.open.set()
    await first
    await settled(scheduler)
    assert decoded == []
    assert not late.done()
    late.cancel()


async def test_deadline_that_the_worker_sees_first_is_the_same_error(
    start: Start, graph: StubGraph, monkeypatch: pytest.MonkeyPatch, records: Records
) -> None:
    monkeypatch.setattr(scheduler_module, "WATCH_DELAY_SECONDS", SOON)
    graph.close()
    scheduler = start()
    task = Client(scheduler).ask(call_of(model_of(graph), rows(1)))
    await graph.has_begun()
    (signal,) = graph.stops
    assert isinstance(signal, StopSignal)
    signal._deadline = 0  # its time is up, and only the worker knows
    graph.open.set()
    with pytest.raises(ServiceError) as caught:
        await task
    assert (caught.value.status, caught.value.code) == (504, "timeout")
    assert [record.status for record in records] == [CallStatus.CANCELED]


async def test_all_calls_can_be_refused(start: Start, graph: StubGraph, records: Records) -> None:
    scheduler, model = start(), model_of(graph)
    graph.close()
    tasks = [Client(scheduler).ask(call_of(model, rows(number))) for number in (1, 2)]
    await graph.has_begun()
    await until(lambda: scheduler.waiting() == 1)
    scheduler.refuse_all(shutting_down())
    for task in tasks:
        with pytest.raises(ServiceError, match="shutting down"):
            await task
    graph.open.set()
    await settled(scheduler)
    assert graph.reasons == ["the server is shutting down; retry on another one"]
    assert graph.firsts == [[1]]
    assert {(record.status, record.worker) for record in records} == {
        (CallStatus.CANCELED, "worker-0"),
        (CallStatus.REJECTED, ""),
    }


@pytest.mark.parametrize("is_sound", [True, False])
async def test_call_that_has_ended_keeps_nothing_of_its_request_alive(
    start: Start, graph: StubGraph, is_sound: bool
) -> None:
    class Body:
        def decode(self) -> Decoded:
            if is_sound:
                return Decoded({"0": rows(1)})
            raise ServiceError(400, "invalid_json", "no")

    scheduler, body = start(), Body()
    watched = weakref.ref(body)
    gc.disable()  # an error, its traceback and the call refer to each other
    try:
        task = asyncio.create_task(scheduler.run(call_of(model_of(graph), rows(), decode=body.decode)))
        del body
        await asyncio.wait([task])
        assert isinstance(task.exception(), ServiceError) != is_sound
        del task
        await until(lambda: watched() is None)
    finally:
        gc.enable()


async def test_end_of_a_call_is_reported_once(start: Start, graph: StubGraph, records: Records) -> None:
    scheduler, call = start(), call_of(model_of(graph), rows(1))
    graph.close()
    task = asyncio.create_task(scheduler.run(call))
    await graph.has_begun()
    gone = ClientDisconnect()
    scheduler.cancel(call, "the client left", gone)
    scheduler.cancel(call, "the client left once more", ClientDisconnect())
    scheduler.refuse_all(shutting_down())
    graph.open.set()
    await settled(scheduler)
    await asyncio.to_thread(scheduler.close)
    with pytest.raises(ClientDisconnect) as caught:
        await task
    assert caught.value is gone
    assert [record.status for record in records] == [CallStatus.CANCELED]


async def test_an_observer_that_fails_keeps_no_client_waiting(
    start: Start, graph: StubGraph, monkeypatch: pytest.MonkeyPatch, records: Records
) -> None:
    def fail(record: object) -> None:
        raise OSError(record)

    monkeypatch.setattr(records, "observe", fail)
    scheduler = start()
    response = scheduler.run(call_of(model_of(graph), rows(1)), stay)
    assert await asyncio.wait_for(response, SOON) == [2]


async def test_refused_call_is_recorded_and_raised_but_not_logged(
    start: Start, graph: StubGraph, records: Records
) -> None:
    scheduler = start()
    await asyncio.to_thread(scheduler.close)
    with pytest.raises(ServiceError, match="shutting down"):
        await scheduler.run(call_of(model_of(graph), rows(1)))
    assert [record.status for record in records] == [CallStatus.REJECTED]


async def test_refused_call_keeps_no_model_alive(start: Start, graph: StubGraph) -> None:
    scheduler, busy, unloaded = start(queue_size=0), model_of(graph), model_of(graph)
    graph.close()
    running = Client(scheduler).ask(call_of(busy, rows(1)))
    await graph.has_begun()
    with pytest.raises(ServiceError, match="the queue is full"):
        await scheduler.run(call_of(unloaded, rows(1)))
    del unloaded
    gc.collect()
    assert list(scheduler._queues) == [busy]
    graph.open.set()
    assert await running == [2]


async def test_client_is_watched_only_while_it_waits(start: Start, graph: StubGraph) -> None:
    before = asyncio.all_tasks()
    scheduler = start()
    graph.close()
    task = Client(scheduler).ask(call_of(model_of(graph), rows(1)))
    await graph.has_begun()
    await until(lambda: len(asyncio.all_tasks()) == len(before) + 2)
    graph.open.set()
    await task
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
