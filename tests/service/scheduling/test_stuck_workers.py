"""Workers that go on with calls that timed out: others take their places."""

import asyncio
import threading

import pytest
from starlette.requests import ClientDisconnect

from service.codec import Decoded
from service.decoding import large_body_decoder
from service.errors import ServiceError
from service.repository.loaded_model import LoadedModel
from service.scheduling import scheduler as scheduler_module
from service.scheduling.scheduler import Scheduler
from tests.service.scheduling.conftest import Start
from tests.service.scheduling.queues import blocked
from tests.service.scheduling.stubs import (
    SOON,
    Client,
    StubGraph,
    call_of,
    model_of,
    rows,
    settled,
    stay,
    until,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_module, "GRACE_SECONDS", 0.0)


class Stuck:
    """Decoding that goes on until it is let."""

    def __init__(self) -> None:
        self.begun, self.ends = threading.Semaphore(0), threading.Event()
        self.threads: list[threading.Thread] = []

    def decode(self) -> Decoded:
        self.threads.append(threading.current_thread())
        self.begun.release()
        assert self.ends.wait(SOON)
        return Decoded({"0": rows(1)})

    async def hold(self, scheduler: Scheduler, model: LoadedModel) -> None:
        """Have a client leave while a worker decodes what it sent."""
        client = Client(scheduler)
        task = client.ask(call_of(model, rows(1), decode=self.decode))
        assert await asyncio.to_thread(self.begun.acquire, timeout=SOON)
        client.left.set()
        with pytest.raises(ClientDisconnect):
            await task


@pytest.mark.parametrize("batch_size", [1, 4])
async def test_model_returns_on_while_a_worker_is_stuck(
    start: Start, graph: StubGraph, batch_size: int
) -> None:
    scheduler, model, stuck = start(), model_of(graph, batch_size=batch_size), Stuck()
    await stuck.hold(scheduler, model)
    assert await scheduler.run(call_of(model, rows(3)), stay) == [6]
    assert graph.threads == ["worker-1"]
    stuck.ends.set()
    await asyncio.to_thread(stuck.threads[0].join, SOON)
    assert not stuck.threads[0].is_alive()
    await settled(scheduler)
    assert scheduler.running(model) == 0
    assert await scheduler.run(call_of(model, rows(4)), stay) == [8]


async def test_no_more_workers_are_replaced_than_there_are(start: Start, graph: StubGraph) -> None:
    scheduler, model, stuck = start(), model_of(graph), Stuck()

    for _ in range(2):
        await stuck.hold(scheduler, model)
    waiting = asyncio.create_task(scheduler.run(call_of(model, rows(3)), stay))
    await until(lambda: scheduler.waiting(model) == 1)
    assert len(stuck.threads) == 2
    stuck.ends.set()
    assert await waiting == [6]


async def test_worker_with_a_call_that_is_still_wanted_keeps_its_place(
    start: Start, graph: StubGraph
) -> None:
    scheduler, model = start(), model_of(graph, batch_size=2)
    graph.open.clear()
    first = asyncio.create_task(scheduler.run(call_of(model, rows(1)), stay))
    await graph.has_begun()
    short = asyncio.create_task(scheduler.run(call_of(model, rows(2), timeout=0.01), stay))
    await until(lambda: scheduler.waiting(model) == 1)
    with pytest.raises(ServiceError):
        await short
    graph.open.set()
    assert await first == [2]
    assert await scheduler.run(call_of(model, rows(4)), stay) == [8]
    assert set(graph.threads) == {"worker-0"}


async def test_worker_whose_other_call_is_left_to_a_decoder_is_replaced(
    start: Start, graph: StubGraph
) -> None:
    scheduler, model, stuck = start(), model_of(graph, batch_size=2), Stuck()
    large_ends = threading.Event()

    def decode_large() -> Decoded:
        large_body_decoder()
        assert large_ends.wait(SOON)
        return Decoded({"0": rows(5)})

    first = await blocked(scheduler, graph, model)
    large, leaving = Client(scheduler), Client(scheduler)
    wanted = large.ask(call_of(model, rows(5), decode=decode_large))
    await until(lambda: scheduler.waiting(model) == 1)
    cancelled = leaving.ask(call_of(model, rows(1), decode=stuck.decode))
    await until(lambda: scheduler.waiting(model) == 2)
    graph.open.set()
    assert await first == [2000]
    assert await asyncio.to_thread(stuck.begun.acquire, timeout=SOON)
    leaving.left.set()
    with pytest.raises(ClientDisconnect):
        await cancelled
    assert await scheduler.run(call_of(model, rows(3)), stay) == [6], "another worker answers"
    large_ends.set()
    stuck.ends.set()
    assert await wanted == [10]
