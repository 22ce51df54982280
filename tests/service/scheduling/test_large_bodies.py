"""Calls with large bodies: they leave their workers, and go on where there is a decoder."""

import asyncio
import gc
import threading
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from engine import RunResult, TraceLevel
from service.codec import Decoded, Options
from service.decoding import DecodingStoppedError, large_body_decoder
from service.errors import ServiceError
from service.scheduling import scheduler as scheduler_module
from service.scheduling.job import CallStatus
from service.scheduling.scheduler import DECODERS_AT_ONCE
from service.scheduling.worker import LARGE_ROWS
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


class Large:
    """A large body, or a response with a large picture, whose decoding goes on until it is let.

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
        large_body_decoder()
        self.threads.append(threading.current_thread().name)
        self.begun.release()
        assert self.ends.wait(SOON)

    def decode(self) -> Decoded:
        self.work()
        return Decoded({"0": rows(1)})

    def encode(self, result: RunResult) -> str:
        self.work()
        return f"large {result.outputs[0][0, 0]:g}"

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.acquire, timeout=SOON)


@pytest.mark.parametrize("batch_size", [1, 4])
async def test_other_calls_pass_by_a_body_that_is_decoded_for_long(
    start: Start, graph: StubGraph, batch_size: int
) -> None:
    scheduler, model, large = start(), model_of(graph, batch_size=batch_size), Large()
    task = Client(scheduler).ask(call_of(model, rows(1), decode=large.decode))
    await large.has_begun()
    assert await scheduler.run(call_of(model, rows(3)), stay) == [6]
    assert (scheduler.running(model), scheduler.waiting(model), scheduler.busy_workers()) == (0, 1, 0)
    large.ends.set()
    assert await task == [2]
    assert graph.threads == ["worker-0", "worker-0"]
    assert large.threads == ["decoding_0"]
    assert large.tries == 2
    await settled(scheduler)


@pytest.mark.parametrize("batch_size", [1, 4])
async def test_other_calls_pass_by_a_response_that_is_encoded_for_long(
    start: Start, graph: StubGraph, records: Records, batch_size: int
) -> None:
    scheduler, model, large = start(), model_of(graph, batch_size=batch_size), Large()
    task = Client(scheduler).ask(call_of(model, rows(4), encode=large.encode))
    await large.has_begun()
    assert await scheduler.run(call_of(model, rows(3)), stay) == [6]
    large.ends.set()
    assert await task == "large 8"
    assert graph.firsts == [[4], [3]], "it is run once"
    assert [(record.status, record.leads_run) for record in records] == [(CallStatus.SUCCESS, True)] * 2
    assert records[1].timestamps.encode_end


async def test_other_calls_pass_by_a_run_of_many_rows_that_is_observed(
    start: Start, graph: StubGraph
) -> None:
    scheduler, model = start(), model_of(graph)
    graph.close()
    observed = Options(trace=TraceLevel.STATISTICS)
    task = Client(scheduler).ask(call_of(model, rows(*range(LARGE_ROWS + 1)), options=observed))
    await graph.has_begun()
    light = asyncio.create_task(
        scheduler.run(call_of(model, rows(*range(LARGE_ROWS)), options=observed), stay)
    )
    await graph.has_begun()
    assert graph.threads == ["decoding_0", "worker-0"]
    graph.open.set()
    assert len(await task) == LARGE_ROWS + 1
    assert len(await light) == LARGE_ROWS
    await settled(scheduler)


async def test_large_bodies_count_towards_the_queue(start: Start, graph: StubGraph) -> None:
    scheduler, model, large = start(queue_size=1), model_of(graph), Large()
    first = Client(scheduler).ask(call_of(model, rows(1), decode=large.decode))
    await large.has_begun()
    second = Client(scheduler).ask(call_of(model, rows(1), decode=large.decode))
    await until(lambda: scheduler.waiting(model) == 2 and not scheduler.busy_workers())
    with pytest.raises(ServiceError) as caught:
        await scheduler.run(call_of(model, rows(1)), stay)
    assert (caught.value.status, caught.value.code) == (503, "queue_full")
    large.ends.set()
    assert await first == await second == [2]


async def test_a_call_whose_client_leaves_is_not_decoded(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph)
    held = [Large() for _ in range(DECODERS_AT_ONCE)]
    tasks = [
        Client(scheduler).ask(call_of(model, rows(1), decode=large.decode, client=str(number)))
        for number, large in enumerate(held)
    ]
    for large in held:
        await large.has_begun()
    left, client = Large(), Client(scheduler)
    task = client.ask(call_of(model, rows(1), decode=left.decode))
    await until(lambda: left.tries == 1 and not scheduler.busy_workers())
    client.left.set()
    with pytest.raises(ClientDisconnect):
        await task
    assert scheduler.waiting(model) == len(held)
    for large in held:
        large.ends.set()
    assert await asyncio.gather(*tasks) == [[2]] * len(held)
    await settled(scheduler)
    assert left.threads == []


@pytest.mark.parametrize("stage", ["decode", "encode"])
async def test_decoding_ends_with_the_time_of_its_call(start: Start, graph: StubGraph, stage: str) -> None:
    scheduler, model = start(), model_of(graph)
    begun, ended = threading.Event(), threading.Event()

    def work(*_: object) -> Decoded:
        decoder = large_body_decoder()
        assert decoder is not None
        begun.set()
        try:
            while True:
                decoder._check_wanted()
        finally:
            ended.set()

    call = call_of(model, rows(1), **{stage: work})  # type: ignore[arg-type]  # either of them
    task = Client(scheduler).ask(call)
    assert await asyncio.to_thread(begun.wait, SOON)
    expire(scheduler) if stage == "decode" else scheduler._expire(call)
    with pytest.raises(ServiceError) as caught:
        await task
    assert caught.value.code == "timeout"
    assert await asyncio.to_thread(ended.wait, SOON)
    await settled(scheduler)
    assert await scheduler.run(call_of(model, rows(3)), stay) == [6]


async def test_a_worker_that_sees_first_that_the_time_is_up_says_so(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph)

    def decode() -> Decoded:
        raise DecodingStoppedError("its time is up")

    with pytest.raises(ServiceError) as caught:
        await scheduler.run(call_of(model, rows(1), decode=decode), stay)
    assert (caught.value.status, caught.value.code) == (504, "timeout")


async def test_large_bodies_are_refused_with_all_others(start: Start, graph: StubGraph) -> None:
    scheduler, model, large = start(), model_of(graph), Large()
    task = Client(scheduler).ask(call_of(model, rows(1), decode=large.decode))
    await large.has_begun()
    scheduler.refuse_all(ServiceError(503, "shutting_down", "the server is shutting down"))
    with pytest.raises(ServiceError, match="shutting down"):
        await task
    large.ends.set()
    await settled(scheduler)
    assert graph.threads == []


async def test_a_call_on_its_way_to_a_decoder_is_refused_with_all_others(
    start: Start, graph: StubGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, model, large = start(), model_of(graph), Large()
    kept: list[Any] = []
    with monkeypatch.context() as patch:  # the event loop is busy with something else meanwhile
        patch.setattr(scheduler, "_call_loop", lambda *call: kept.append(call))
        task = Client(scheduler).ask(call_of(model, rows(1), decode=large.decode))
        await until(lambda: bool(large.tries) and not scheduler.busy_workers())
    scheduler.refuse_all(ServiceError(503, "shutting_down", "the server is shutting down"))
    with pytest.raises(ServiceError, match="shutting down"):
        await task
    for function, argument in kept:
        function(argument)
    await settled(scheduler)
    assert large.tries == 1


async def test_the_queue_of_a_model_lives_until_its_bodies_are_decoded(
    start: Start, graph: StubGraph
) -> None:
    scheduler, model, large = start(), model_of(graph), Large()
    task = Client(scheduler).ask(call_of(model, rows(1), decode=large.decode))
    await large.has_begun()
    del model  # another version is loaded
    gc.collect()
    assert scheduler.waiting() == 1
    large.ends.set()
    assert await task == [2]
    del task
    await until(lambda: gc.collect() >= 0 and not len(scheduler._queues))


async def test_errors_of_a_body_end_its_own_call(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph)

    def decode() -> Decoded:
        large_body_decoder()
        raise ServiceError(400, "invalid_image", "damaged")

    with pytest.raises(ServiceError, match="damaged"):
        await scheduler.run(call_of(model, rows(1), decode=decode), stay)
    assert await scheduler.run(call_of(model, rows(3)), stay) == [6]
    await settled(scheduler)


async def test_a_stuck_decoder_thread_replaces_no_worker(
    start: Start, graph: StubGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_module, "GRACE_SECONDS", 0.0)
    scheduler, model, stuck = start(), model_of(graph), Large()
    late = Client(scheduler).ask(call_of(model, rows(1), decode=stuck.decode))
    await stuck.has_begun()
    expire(scheduler)
    with pytest.raises(ServiceError, match="timed out|time"):
        await late
    assert await scheduler.run(call_of(model, rows(3)), stay) == [6]
    assert graph.threads == ["worker-0"]
    stuck.ends.set()
