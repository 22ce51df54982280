"""Round-robin by client, and eviction from a full queue."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.errors import ServiceError
from service.scheduling.job import Job
from service.scheduling.queue import ClientQueue
from service.scheduling.scheduler import Scheduler
from tests.service.scheduling.conftest import Start
from tests.service.scheduling.stubs import Client, Records, StubGraph, call_of, model_of, rows, settled, until

MODEL = model_of(StubGraph())
Arrivals = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 3)), max_size=30)


async def schedule(arrivals: list[tuple[str, int]]) -> list[Job[Any]]:
    jobs = [call_of(MODEL, rows(1), client=client) for client, _ in arrivals]
    for job, (_, priority) in zip(jobs, arrivals, strict=True):
        job.admit(1.0, priority)
    return jobs


def queue_of(calls: list[Job[Any]]) -> ClientQueue:
    queue = ClientQueue()
    for call in calls:
        queue.push(call)
    return queue


def popped(queue: ClientQueue) -> list[Job[Any]]:
    return [queue.pop() for _ in range(queue.length)]


@given(Arrivals, st.data())
@settings(max_examples=150, deadline=None)
def test_calls_are_served_by_priority_then_round_robin_then_as_they_came(
    arrivals: list[tuple[str, int]], data: Any
) -> None:
    calls = asyncio.run(schedule(arrivals))
    gone = set(data.draw(st.lists(st.sampled_from(calls), unique=True))) if calls else set()
    queue = queue_of(calls)
    assert all(queue.discard(call) for call in gone)
    assert not any(queue.discard(call) for call in gone)
    left = [call for call in calls if call not in gone]
    assert queue.length == len(left)
    shown, served = list(queue), popped(queue)
    assert served == shown
    assert set(served) == set(left)
    assert (queue.length, list(queue)) == (0, [])
    assert [call.priority for call in served] == sorted(call.priority for call in left)
    for priority in (1, 2, 3):
        of_class = [call for call in served if call.priority == priority]
        for client in "abcd":
            times = [call.queued for call in of_class if call.client == client]
            assert times == sorted(times)
        counts = [Counter(call.client for call in of_class[:end]) for end in range(len(of_class) + 1)]
        totals = counts[-1]
        for had in counts:  # no client has been served twice more often than one that still waits
            behind = [had[client] for client in totals if had[client] < totals[client]]
            assert max(had.values(), default=0) - min(behind, default=max(had.values(), default=0)) <= 1


def test_who_comes_later_waits_for_one_round() -> None:
    calls = asyncio.run(schedule([("a", 1)] * 5 + [("b", 1)] * 2))
    queue = queue_of(calls[:5])
    first = queue.pop()
    for call in calls[5:]:
        queue.push(call)
    order = [first, *popped(queue)]
    assert [call.client for call in order] == list("aababaa")


def test_the_last_call_of_the_client_that_has_most_gives_way() -> None:
    calls = asyncio.run(schedule([("a", 2), ("b", 1), ("a", 3), ("a", 2), ("c", 1), ("b", 1)]))
    queue = queue_of(calls)
    assert queue.evictable("c") is calls[2]
    assert queue.evictable("new") is calls[2]
    assert queue.evictable("b") is None  # it would have as many as the other then
    assert queue.evictable("a") is None
    queue.discard(calls[2])
    assert queue.evictable("c") is None
    assert queue.evictable("new") is not None


def test_calls_that_wait_elsewhere_count_and_give_way_last() -> None:
    calls = asyncio.run(schedule([("a", 1), ("a", 1), ("b", 1), ("a", 1)]))
    queue = queue_of(calls[2:])
    assert queue.evictable("c", calls[:2]) is calls[3]
    queue.discard(calls[3])
    assert queue.evictable("c", calls[:2]) is calls[1]
    assert ClientQueue().evictable("c", calls[:2]) is calls[1]
    assert queue.evictable("b", calls[:2]) is None


def test_nobody_gives_way_where_each_has_one() -> None:
    queue = queue_of(asyncio.run(schedule([("a", 1), ("b", 1), ("c", 1)])))
    assert queue.evictable("d") is None
    assert ClientQueue().evictable("d") is None


@pytest.mark.anyio
async def test_a_flood_leaves_room_for_others(start: Start, graph: StubGraph, records: Records) -> None:
    scheduler, model = start(queue_size=4), model_of(graph)
    graph.close()
    flood = [Client(scheduler).ask(call_of(model, rows(number), client="flood")) for number in range(5)]
    await graph.has_begun()
    await until(lambda: scheduler.waiting() == 4)
    with pytest.raises(ServiceError):
        scheduler.check_room(model, "flood")
    scheduler.check_room(model, "other")
    honest = [Client(scheduler).ask(call_of(model, rows(100 + n), client="other")) for n in range(2)]
    await until(flood[3].done)
    with pytest.raises(ServiceError, match="evicted for a client with fewer") as caught:
        await flood[4]
    assert (caught.value.status, caught.value.code) == (503, "queue_full")
    assert int(caught.value.headers["Retry-After"]) >= 1
    with pytest.raises(ServiceError):
        scheduler.check_room(model, "other")  # each has two of the four now
    graph.open.set()
    assert await asyncio.gather(*flood[:3], *honest) == [[0], [2], [4], [200], [202]]
    assert graph.firsts == [[0], [1], [100], [2], [101]]
    await settled(scheduler)
    assert sorted(record.status.name for record in records).count("REJECTED") == 2


def decoded(scheduler: Scheduler) -> Iterable[object]:
    """Yield the calls that wait for their batch."""
    for queue in scheduler._queues.values():
        yield from queue._batcher


@pytest.mark.anyio
async def test_decoded_calls_of_a_flood_give_way_too(start: Start, graph: StubGraph) -> None:
    scheduler = start(queue_size=2)
    model = model_of(graph, batch_size=4, batching={"max_queue_delay_ms": 60_000})
    flood = [Client(scheduler).ask(call_of(model, rows(number), client="flood")) for number in range(3)]
    await until(lambda: len(list(decoded(scheduler))) == 3)
    honest = Client(scheduler).ask(call_of(model, rows(100), client="other"))
    with pytest.raises(ServiceError, match="evicted"):
        await flood.pop()
    await until(lambda: scheduler.waiting() == 3)
    scheduler.refuse_all(ServiceError(503, "ended", "the test has seen enough"))
    results = await asyncio.gather(*flood, honest, return_exceptions=True)
    assert [getattr(result, "code", result) for result in results] == ["ended"] * 3
