"""Batches in which a call fails, leaves or cannot be answered: no other call of them suffers."""

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from engine import RunResult
from service.codec import Decoded
from service.errors import ServiceError
from service.scheduling.job import CallStatus
from tests.service.scheduling.conftest import Start
from tests.service.scheduling.queues import blocked, queue
from tests.service.scheduling.stubs import (
    Client,
    Records,
    StubGraph,
    call_of,
    model_of,
    rows,
    stay,
    until,
)

pytestmark = pytest.mark.anyio


async def test_call_that_cannot_be_decoded_fails_alone(
    start: Start, graph: StubGraph, records: Records
) -> None:
    def fail() -> Decoded:
        raise ServiceError(400, "invalid_json", "no")

    scheduler, model = start(), model_of(graph, batch_size=4)
    first = await blocked(scheduler, graph, model)
    tasks = await queue(
        scheduler, call_of(model, rows(1)), call_of(model, rows(), decode=fail), call_of(model, rows(2))
    )
    graph.open.set()
    responses = await asyncio.gather(first, *tasks, return_exceptions=True)
    assert responses[1] == [2]
    assert isinstance(responses[2], ServiceError)
    assert responses[3] == [4]
    assert graph.firsts[1:] == [[1, 2]]
    assert {record.status for record in records} == {CallStatus.SUCCESS, CallStatus.OTHER}


async def test_call_that_does_not_run_fails_alone(start: Start, graph: StubGraph, records: Records) -> None:
    scheduler, model = start(), model_of(graph, batch_size=3)
    first = await blocked(scheduler, graph, model)
    tasks = await queue(scheduler, *(call_of(model, rows(number)) for number in (1, -1, 2)))
    graph.open.set()
    responses = await asyncio.gather(first, *tasks, return_exceptions=True)
    assert (responses[1], responses[3]) == ([2], [4])
    assert isinstance(responses[2], ValueError)
    assert graph.firsts[1:] == [[1, -1, 2], [1], [-1], [2]]
    endings = [(record.status, record.batch_size, record.leads_run) for record in records[1:]]
    assert endings == [
        (CallStatus.SUCCESS, 1, True),
        (CallStatus.BACKEND, 1, True),
        (CallStatus.SUCCESS, 1, True),
    ]


async def test_output_without_the_rows_is_not_split(
    start: Start, graph: StubGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = graph.run

    def add_up(inputs: Any, **options: Any) -> RunResult:
        result = run(inputs, **options)
        return RunResult([array.sum(axis=0, keepdims=True) for array in result.outputs])

    monkeypatch.setattr(graph, "run", add_up)
    scheduler, model = start(), model_of(graph, batch_size=4)
    first = await blocked(scheduler, graph, model)
    tasks = await queue(scheduler, *(call_of(model, rows(number)) for number in (1, 2)))
    graph.open.set()
    assert (await asyncio.gather(first, *tasks))[1:] == [[2], [4]]


async def test_call_that_leaves_a_running_batch_does_not_stop_it(
    start: Start, graph: StubGraph, records: Records
) -> None:
    scheduler, model = start(), model_of(graph, batch_size=4)
    first = await blocked(scheduler, graph, model)
    leaving = Client(scheduler)
    gone = leaving.ask(call_of(model, rows(1)))
    await until(lambda: scheduler.waiting() == 1)
    (stays,) = await queue(scheduler, call_of(model, rows(2)))
    graph.open.let()
    await first
    await graph.has_begun()
    leaving.left.set()
    with pytest.raises(ClientDisconnect):
        await gone
    graph.open.set()
    assert await stays == [4]
    assert graph.reasons == [None, None]
    assert [(record.status, record.leads_run) for record in records[1:]] == [
        (CallStatus.CANCELED, False),
        (CallStatus.SUCCESS, True),
    ]


async def test_batch_that_all_calls_left_is_stopped(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph, batch_size=2)
    first = await blocked(scheduler, graph, model)
    clients = [Client(scheduler), Client(scheduler)]
    tasks = [client.ask(call_of(model, rows(number))) for number, client in enumerate(clients)]
    await until(lambda: scheduler.waiting() == 2)
    graph.open.let()
    await first
    await graph.has_begun()
    for client in clients:
        client.left.set()
    responses = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(response) for response in responses] == [ClientDisconnect] * 2
    graph.open.set()
    await until(lambda: not scheduler.running())
    assert graph.reasons == [None, "the client left"]
    assert graph.firsts[1:] == [[0, 1]], "nothing is run once more"


async def test_nothing_of_a_call_that_was_refused_outlives_it(start: Start, graph: StubGraph) -> None:
    class Body:
        """What was sent."""

    def exchange() -> tuple["weakref.ref[Body]", Callable[[], Decoded]]:
        body = Body()

        def fail(body: Body = body) -> Decoded:
            try:
                raise ValueError(f"{type(body)} is damaged")
            except ValueError as error:
                raise ServiceError(400, "invalid_image", "no") from error

        return weakref.ref(body), fail

    scheduler, model = start(), model_of(graph)
    gc.disable()
    try:
        body, decode = exchange()
        task = asyncio.create_task(scheduler.run(call_of(model, rows(), decode=decode)))
        del decode
        await asyncio.wait([task])
        assert isinstance(task.exception(), ServiceError)
        del task
        assert await scheduler.run(call_of(model, rows(1)), stay) == [2], "the worker has gone on"
        assert body() is None
    finally:
        gc.enable()
