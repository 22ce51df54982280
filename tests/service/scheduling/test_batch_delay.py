"""How long a call waits for others to be run with, and how large batches become."""

import asyncio
from time import monotonic

import pytest
from starlette.requests import ClientDisconnect

from service.errors import ServiceError
from service.repository.batching import run_sizes
from tests.service.scheduling.conftest import Start
from tests.service.scheduling.queues import blocked, decoded, queue
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


async def test_full_batch_is_not_waited_beyond(start: Start, graph: StubGraph) -> None:
    scheduler = start()
    model = model_of(graph, batch_size=3, batching={"max_queue_delay_ms": 60_000})
    tasks = [Client(scheduler).ask(call_of(model, rows(number))) for number in (1, 2, 3)]
    assert await asyncio.gather(*tasks) == [[2], [4], [6]]
    assert graph.sizes == [3]


async def test_preferred_size_is_not_waited_beyond(start: Start, graph: StubGraph) -> None:
    scheduler = start()
    batching = {"max_queue_delay_ms": 60_000, "preferred_batch_sizes": [2]}
    model = model_of(graph, batch_size=8, batching=batching)
    tasks = [Client(scheduler).ask(call_of(model, rows(number))) for number in range(4)]
    await asyncio.gather(*tasks)
    assert graph.sizes == [2, 2]


async def test_call_waits_for_others_no_longer_than_it_may(
    start: Start, graph: StubGraph, records: Records
) -> None:
    scheduler = start()
    model = model_of(graph, batch_size=3, batching={"max_queue_delay_ms": 30})
    began = monotonic()
    assert await scheduler.run(call_of(model, rows(1)), stay) == [2]
    assert monotonic() - began >= 0.03
    assert records[0].timestamps.queue_ns >= 25e6


async def test_deadline_cuts_the_wait_for_others_short(start: Start, graph: StubGraph) -> None:
    scheduler = start()
    model = model_of(graph, batch_size=3, batching={"max_queue_delay_ms": 60_000})
    patient = Client(scheduler).ask(call_of(model, rows(1)))
    await until(lambda: scheduler.waiting() == 1)
    assert await scheduler.run(call_of(model, rows(2), timeout=4.0), stay) == [4]
    assert await patient == [2]
    assert graph.sizes == [2]


async def test_worker_does_not_wait_for_a_batch_while_others_have_work(
    start: Start, graph: StubGraph
) -> None:
    scheduler = start(workers=1)
    slow = model_of(graph, "slow", batch_size=2, batching={"max_queue_delay_ms": 60_000})
    other = model_of(StubGraph(), "other")
    waits = Client(scheduler).ask(call_of(slow, rows(1)))
    await decoded(scheduler, slow)
    assert await scheduler.run(call_of(other, rows(5)), stay) == [10]
    assert graph.sizes == []
    assert await scheduler.run(call_of(slow, rows(2)), stay) == [4]
    assert await waits == [2]


async def test_call_that_waits_for_others_counts_in_the_queue(start: Start, graph: StubGraph) -> None:
    scheduler = start(queue_size=0)
    model = model_of(graph, batch_size=9, batching={"max_queue_delay_ms": 60_000})
    leaving = Client(scheduler)
    task = leaving.ask(call_of(model, rows(1)))
    await decoded(scheduler, model)
    assert (scheduler.waiting(), scheduler.running()) == (1, 0)
    with pytest.raises(ServiceError):
        scheduler._queues[model].room(0)
    second = Client(scheduler).ask(call_of(model, rows(1), timeout=0.01))
    leaving.left.set()
    for each in (task, second):
        with pytest.raises((ClientDisconnect, ServiceError)):
            await each
    assert scheduler.waiting() == 0
    assert graph.sizes == []


async def test_batches_have_few_sizes(start: Start, graph: StubGraph) -> None:
    """Each size is compiled when it first comes: seven calls are run as four, two and one."""
    scheduler, model = start(), model_of(graph, batch_size=16)
    first = await blocked(scheduler, graph, model)
    tasks = await queue(scheduler, *(call_of(model, rows(number)) for number in range(7)))
    graph.open.set()
    await asyncio.gather(first, *tasks)
    assert [len(firsts) for firsts in graph.firsts[1:]] == [4, 2, 1]
    assert [number for firsts in graph.firsts[1:] for number in firsts] == list(range(7))


def test_run_sizes_end_with_the_largest_batch() -> None:
    assert [run_sizes(size) for size in (1, 2, 6, 16)] == [[1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8, 16]]
