"""Calls that are run together: each gets its own rows, and priority is kept."""

import asyncio
from typing import Any

import numpy as np
import pytest

from engine import RunResult, TraceLevel
from service.codec import Options
from service.scheduling.batch import Batcher
from service.scheduling.job import Job
from tests.service.scheduling.conftest import Start
from tests.service.scheduling.queues import blocked, queue
from tests.service.scheduling.stubs import (
    Records,
    StubGraph,
    call_of,
    model_of,
    rows,
    stay,
)

pytestmark = pytest.mark.anyio


async def test_what_waits_already_is_run_together(start: Start, graph: StubGraph, records: Records) -> None:
    scheduler, model = start(), model_of(graph, batch_size=4)
    first = await blocked(scheduler, graph, model)
    tasks = await queue(scheduler, *(call_of(model, rows(number)) for number in range(1, 7)))
    graph.open.set()
    assert await asyncio.gather(first, *tasks) == [[2000], [2], [4], [6], [8], [10], [12]]
    assert graph.firsts == [[1000], [1, 2, 3, 4], [5, 6]]
    assert [record.batch_size for record in records] == [1, 4, 4, 4, 4, 2, 2]
    assert [record.leads_run for record in records] == [True, True, False, False, False, True, False]
    assert {record.rows for record in records} == {1}


async def test_rows_are_counted_and_kept_in_order(start: Start, graph: StubGraph, records: Records) -> None:
    scheduler, model = start(), model_of(graph, batch_size=4)
    first = await blocked(scheduler, graph, model)
    arrays = [rows(1, 2), rows(3, 4, 5), rows(6), rows(7, 8, 9, 10, 11), rows(12)]
    tasks = await queue(scheduler, *(call_of(model, array) for array in arrays))
    graph.open.set()
    assert (await asyncio.gather(first, *tasks))[1:] == [(array[:, 0] * 2).tolist() for array in arrays]
    assert graph.firsts[1:] == [[1, 2], [3, 4, 5, 6], [7, 8, 9, 10, 11], [12]]
    assert [record.rows for record in records] == [1, 2, 3, 1, 5, 1]


async def test_shapes_and_dtypes_are_never_mixed(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph, batch_size=4)
    first = await blocked(scheduler, graph, model)
    odd = np.array([[5, 1, 1]], np.float32)
    arrays = [rows(1), odd, rows(2).astype(np.float64), rows(3), odd, rows(4).astype(np.float64)]
    tasks = await queue(scheduler, *(call_of(model, array) for array in arrays))
    graph.open.set()
    await asyncio.gather(first, *tasks)
    assert graph.firsts[1:] == [[1, 3], [5], [2, 4], [5]], "what has not the declared shape runs alone"


@pytest.mark.parametrize(
    "options", [Options(trace=TraceLevel.STATISTICS), Options(capture=("0",))], ids=["statistics", "capture"]
)
async def test_what_would_show_other_clients_data_runs_alone(
    start: Start, graph: StubGraph, options: Options
) -> None:
    scheduler, model = start(), model_of(graph, batch_size=4)
    first = await blocked(scheduler, graph, model)
    tasks = await queue(
        scheduler,
        call_of(model, rows(1)),
        call_of(model, rows(2), options=options),
        call_of(model, rows(3)),
    )
    graph.open.set()
    await asyncio.gather(first, *tasks)
    assert sorted(graph.firsts[1:]) == [[1, 3], [2]]


async def test_trace_goes_to_those_who_asked(start: Start, graph: StubGraph, records: Records) -> None:
    def has_trace(result: RunResult) -> bool:
        return result.trace is not None

    scheduler, model = start(), model_of(graph, batch_size=3)
    first = await blocked(scheduler, graph, model)
    asked = Options(trace=TraceLevel.ON)
    tasks = await queue(
        scheduler,
        call_of(model, rows(1), encode=has_trace),
        call_of(model, rows(2), encode=has_trace, options=asked),
        call_of(model, rows(3), encode=has_trace),
    )
    graph.open.set()
    assert (await asyncio.gather(first, *tasks))[1:] == [False, True, False]
    assert graph.levels == [TraceLevel.OFF, TraceLevel.ON]
    assert [record.trace is not None for record in records] == [False, True, True, False]


async def test_sampled_trace_is_recorded_and_not_answered(
    start: Start, graph: StubGraph, records: Records
) -> None:
    def has_trace(result: RunResult) -> bool:
        return result.trace is not None

    scheduler, model = start(trace_rate=2), model_of(graph)
    responses = [await scheduler.run(call_of(model, rows(1), encode=has_trace), stay) for _ in range(4)]
    assert responses == [False] * 4
    assert [record.trace is not None for record in records] == [False, True, False, True]
    scheduler.trace_setting(model).values["trace_rate"] = 0
    await scheduler.run(call_of(model, rows(1)), stay)
    await scheduler.run(call_of(model, rows(1)), stay)
    assert [record.trace for record in records[4:]] == [None, None]


async def test_responses_share_no_memory(start: Start, graph: StubGraph) -> None:
    def whole(result: RunResult) -> Any:
        return result.outputs[0]

    scheduler, model = start(), model_of(graph, batch_size=4)
    first = await blocked(scheduler, graph, model)
    tasks = await queue(scheduler, *(call_of(model, rows(number), encode=whole) for number in (1, 2)))
    graph.open.set()
    _, one, two = await asyncio.gather(first, *tasks)
    assert one.base is None
    assert two.base is None


async def test_priority_is_kept_in_batches(start: Start, graph: StubGraph) -> None:
    scheduler, model = start(), model_of(graph, batch_size=2, scheduling={"default_priority": 5})
    first = await blocked(scheduler, graph, model)
    priorities = [0, 0, 1, 9, 1]
    tasks = await queue(
        scheduler,
        *(call_of(model, rows(number), priority=priority) for number, priority in enumerate(priorities)),
    )
    graph.open.set()
    await asyncio.gather(first, *tasks)
    assert graph.firsts[1:] == [[2, 4], [0, 1], [3]]


@pytest.mark.parametrize("delay", [0, 1])
async def test_only_calls_that_may_meet_others_are_matched_with_them(
    start: Start, graph: StubGraph, monkeypatch: pytest.MonkeyPatch, delay: int
) -> None:
    matched: list[float] = []
    add = Batcher.add

    def match(self: Batcher, call: Job[Any]) -> None:
        matched.append(call.queued)
        add(self, call)

    monkeypatch.setattr(Batcher, "add", match)
    scheduler, model = start(), model_of(graph, batch_size=4, batching={"max_queue_delay_ms": delay})
    assert await scheduler.run(call_of(model, rows(1))) == [2]
    assert len(matched) == (1 if delay else 0), "with a delay, it waits for others"
    await graph.has_begun()
    first = await blocked(scheduler, graph, model)
    tasks = await queue(scheduler, call_of(model, rows(2)), call_of(model, rows(3)))
    graph.open.set()
    await asyncio.gather(first, *tasks)
    assert graph.firsts[-1] == [2, 3]
