"""Calls that are run together: same answers, no harm from neighbours, priority and deadline kept."""

import asyncio
import itertools
from time import monotonic
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect

from engine import RunResult, TraceLevel
from service.codec import Decoded, Options
from service.errors import ServiceError
from service.repository.batching import run_sizes
from service.repository.loaded_model import LoadedModel
from service.scheduling.call import Ending, Outcome
from service.scheduling.dispatcher import Dispatcher
from tests.service.scheduling.conftest import Start
from tests.service.scheduling.stubs import (
    SOON,
    Client,
    Records,
    StubGraph,
    call_of,
    model_of,
    rows,
    settings_of,
    stay,
    until,
)

pytestmark = pytest.mark.anyio
Task = asyncio.Task[Any]


async def blocked(dispatcher: Dispatcher, graph: StubGraph, model: LoadedModel) -> Task:
    """Keep the one worker busy with a run of 1000; `graph.open` lets it go on."""
    graph.close()
    task = Client(dispatcher).ask(call_of(model, rows(1000)))
    await graph.has_begun()
    return task


async def queue(dispatcher: Dispatcher, *calls: Any) -> list[Task]:
    """Send calls, each when the one before waits."""
    tasks = []
    for call in calls:
        count = dispatcher.waiting()
        tasks.append(Client(dispatcher).ask(call))
        await until(lambda count=count: dispatcher.waiting() == count + 1)  # type: ignore[misc]  # bound early
    return tasks


async def decoded(dispatcher: Dispatcher, model: LoadedModel) -> None:
    """Return when a call waits for others to be run with."""

    def has_one() -> bool:
        queue = dispatcher._scheduler._queues.get(model)
        return queue is not None and queue._former is not None and len(queue._former) == 1

    await until(lambda: has_one() and not dispatcher.running())


async def test_what_waits_already_is_run_together(start: Start, graph: StubGraph, records: Records) -> None:
    dispatcher, model = start(), model_of(graph, batch_size=4)
    first = await blocked(dispatcher, graph, model)
    tasks = await queue(dispatcher, *(call_of(model, rows(number)) for number in range(1, 7)))
    graph.open.set()
    assert await asyncio.gather(first, *tasks) == [[2000], [2], [4], [6], [8], [10], [12]]
    assert graph.firsts == [[1000], [1, 2, 3, 4], [5, 6]]
    assert [record.batch_size for record in records] == [1, 4, 4, 4, 4, 2, 2]
    assert [record.leads_run for record in records] == [True, True, False, False, False, True, False]
    assert {record.items for record in records} == {1}


async def test_others_are_answered_whoever_cannot_take_an_answer(
    start: Start, graph: StubGraph, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(answer: object, error: object) -> None:
        raise ZeroDivisionError("not taken")

    dispatcher, model = start(), model_of(graph, batch_size=4)
    first = await blocked(dispatcher, graph, model)
    dispatcher.begin(call_of(model, rows(1)), refuse)
    tasks = await queue(dispatcher, call_of(model, rows(2)))
    graph.open.set()
    assert await asyncio.gather(first, *tasks) == [[2000], [4]]
    assert graph.firsts == [[1000], [1, 2]]
    assert "not taken" in caplog.text


async def test_rows_are_counted_and_kept_in_order(start: Start, graph: StubGraph, records: Records) -> None:
    dispatcher, model = start(), model_of(graph, batch_size=4)
    first = await blocked(dispatcher, graph, model)
    arrays = [rows(1, 2), rows(3, 4, 5), rows(6), rows(7, 8, 9, 10, 11), rows(12)]
    tasks = await queue(dispatcher, *(call_of(model, array) for array in arrays))
    graph.open.set()
    assert (await asyncio.gather(first, *tasks))[1:] == [(array[:, 0] * 2).tolist() for array in arrays]
    assert graph.firsts[1:] == [[1, 2], [3, 4, 5, 6], [7, 8, 9, 10, 11], [12]]
    assert [record.items for record in records] == [1, 2, 3, 1, 5, 1]


async def test_shapes_and_dtypes_are_never_mixed(start: Start, graph: StubGraph) -> None:
    dispatcher, model = start(), model_of(graph, batch_size=4)
    first = await blocked(dispatcher, graph, model)
    odd = np.array([[5, 1, 1]], np.float32)
    arrays = [rows(1), odd, rows(2).astype(np.float64), rows(3), odd, rows(4).astype(np.float64)]
    tasks = await queue(dispatcher, *(call_of(model, array) for array in arrays))
    graph.open.set()
    await asyncio.gather(first, *tasks)
    assert graph.firsts[1:] == [[1, 3], [5], [2, 4], [5]], "what has not the declared shape runs alone"


@pytest.mark.parametrize(
    "options", [Options(trace=TraceLevel.STATISTICS), Options(capture=("0",))], ids=["statistics", "capture"]
)
async def test_what_would_show_other_clients_data_runs_alone(
    start: Start, graph: StubGraph, options: Options
) -> None:
    dispatcher, model = start(), model_of(graph, batch_size=4)
    first = await blocked(dispatcher, graph, model)
    tasks = await queue(
        dispatcher,
        call_of(model, rows(1)),
        call_of(model, rows(2), options=options),
        call_of(model, rows(3)),
    )
    graph.open.set()
    await asyncio.gather(first, *tasks)
    assert sorted(graph.firsts[1:]) == [[1, 3], [2]]


async def test_trace_goes_to_those_who_asked(start: Start, graph: StubGraph, records: Records) -> None:
    def has_trace(outcome: Outcome) -> bool:
        return outcome.result.trace is not None

    dispatcher, model = start(), model_of(graph, batch_size=3)
    first = await blocked(dispatcher, graph, model)
    asked = Options(trace=TraceLevel.ON)
    tasks = await queue(
        dispatcher,
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
    def has_trace(outcome: Outcome) -> bool:
        return outcome.result.trace is not None

    dispatcher, model = start(trace_rate=2), model_of(graph)
    answers = [await dispatcher.answer(call_of(model, rows(1), encode=has_trace), stay) for _ in range(4)]
    assert answers == [False] * 4
    assert [record.trace is not None for record in records] == [False, True, False, True]
    dispatcher.trace_setting(model).own_rate = 0
    await dispatcher.answer(call_of(model, rows(1)), stay)
    await dispatcher.answer(call_of(model, rows(1)), stay)
    assert [record.trace for record in records[4:]] == [None, None]


async def test_call_that_cannot_be_decoded_fails_alone(
    start: Start, graph: StubGraph, records: Records
) -> None:
    def fail() -> Decoded:
        raise ServiceError(400, "invalid_json", "no")

    dispatcher, model = start(), model_of(graph, batch_size=4)
    first = await blocked(dispatcher, graph, model)
    tasks = await queue(
        dispatcher, call_of(model, rows(1)), call_of(model, rows(), decode=fail), call_of(model, rows(2))
    )
    graph.open.set()
    answers = await asyncio.gather(first, *tasks, return_exceptions=True)
    assert answers[1] == [2]
    assert isinstance(answers[2], ServiceError)
    assert answers[3] == [4]
    assert graph.firsts[1:] == [[1, 2]]
    assert {record.ending for record in records} == {Ending.SUCCESS, Ending.OTHER}


async def test_call_that_does_not_run_fails_alone(start: Start, graph: StubGraph, records: Records) -> None:
    dispatcher, model = start(), model_of(graph, batch_size=3)
    first = await blocked(dispatcher, graph, model)
    tasks = await queue(dispatcher, *(call_of(model, rows(number)) for number in (1, -1, 2)))
    graph.open.set()
    answers = await asyncio.gather(first, *tasks, return_exceptions=True)
    assert (answers[1], answers[3]) == ([2], [4])
    assert isinstance(answers[2], ValueError)
    assert graph.firsts[1:] == [[1, -1, 2], [1], [-1], [2]]
    endings = [(record.ending, record.batch_size, record.leads_run) for record in records[1:]]
    assert endings == [(Ending.SUCCESS, 1, True), (Ending.BACKEND, 1, True), (Ending.SUCCESS, 1, True)]


async def test_output_without_the_rows_is_not_split(
    start: Start, graph: StubGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = graph.run

    def add_up(inputs: Any, **options: Any) -> RunResult:
        result = run(inputs, **options)
        return RunResult([array.sum(axis=0, keepdims=True) for array in result.outputs])

    monkeypatch.setattr(graph, "run", add_up)
    dispatcher, model = start(), model_of(graph, batch_size=4)
    first = await blocked(dispatcher, graph, model)
    tasks = await queue(dispatcher, *(call_of(model, rows(number)) for number in (1, 2)))
    graph.open.set()
    assert (await asyncio.gather(first, *tasks))[1:] == [[2], [4]]


async def test_answers_share_no_memory(start: Start, graph: StubGraph) -> None:
    def whole(outcome: Outcome) -> Any:
        return outcome.result.outputs[0]

    dispatcher, model = start(), model_of(graph, batch_size=4)
    first = await blocked(dispatcher, graph, model)
    tasks = await queue(dispatcher, *(call_of(model, rows(number), encode=whole) for number in (1, 2)))
    graph.open.set()
    _, one, two = await asyncio.gather(first, *tasks)
    assert one.base is None
    assert two.base is None


async def test_priority_is_kept_in_batches(start: Start, graph: StubGraph) -> None:
    dispatcher, model = start(), model_of(graph, batch_size=2, scheduling={"default_priority": 5})
    first = await blocked(dispatcher, graph, model)
    priorities = [0, 0, 1, 9, 1]
    tasks = await queue(
        dispatcher,
        *(call_of(model, rows(number), priority=priority) for number, priority in enumerate(priorities)),
    )
    graph.open.set()
    await asyncio.gather(first, *tasks)
    assert graph.firsts[1:] == [[2, 4], [0, 1], [3]]


async def test_call_that_leaves_a_running_batch_does_not_stop_it(
    start: Start, graph: StubGraph, records: Records
) -> None:
    dispatcher, model = start(), model_of(graph, batch_size=4)
    first = await blocked(dispatcher, graph, model)
    leaving = Client(dispatcher)
    gone = leaving.ask(call_of(model, rows(1)))
    await until(lambda: dispatcher.waiting() == 1)
    (stays,) = await queue(dispatcher, call_of(model, rows(2)))
    graph.open.let()
    await first
    await graph.has_begun()
    leaving.left.set()
    with pytest.raises(ClientDisconnect):
        await gone
    graph.open.set()
    assert await stays == [4]
    assert graph.reasons == [None, None]
    assert [(record.ending, record.leads_run) for record in records[1:]] == [
        (Ending.CANCELED, False),
        (Ending.SUCCESS, True),
    ]


async def test_batch_that_all_calls_left_is_stopped(start: Start, graph: StubGraph) -> None:
    dispatcher, model = start(), model_of(graph, batch_size=2)
    first = await blocked(dispatcher, graph, model)
    clients = [Client(dispatcher), Client(dispatcher)]
    tasks = [client.ask(call_of(model, rows(number))) for number, client in enumerate(clients)]
    await until(lambda: dispatcher.waiting() == 2)
    graph.open.let()
    await first
    await graph.has_begun()
    for client in clients:
        client.left.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [ClientDisconnect] * 2
    graph.open.set()
    await until(lambda: not dispatcher.running())
    assert graph.reasons == [None, "the client left"]
    assert graph.firsts[1:] == [[0, 1]], "nothing is run once more"


async def test_full_batch_is_not_waited_beyond(start: Start, graph: StubGraph) -> None:
    dispatcher = start()
    model = model_of(graph, batch_size=3, batching={"max_queue_delay_ms": 60_000})
    tasks = [Client(dispatcher).ask(call_of(model, rows(number))) for number in (1, 2, 3)]
    assert await asyncio.gather(*tasks) == [[2], [4], [6]]
    assert graph.sizes == [3]


async def test_preferred_size_is_not_waited_beyond(start: Start, graph: StubGraph) -> None:
    dispatcher = start()
    batching = {"max_queue_delay_ms": 60_000, "preferred_batch_sizes": [2]}
    model = model_of(graph, batch_size=8, batching=batching)
    tasks = [Client(dispatcher).ask(call_of(model, rows(number))) for number in range(4)]
    await asyncio.gather(*tasks)
    assert graph.sizes == [2, 2]


async def test_call_waits_for_others_no_longer_than_it_may(
    start: Start, graph: StubGraph, records: Records
) -> None:
    dispatcher = start()
    model = model_of(graph, batch_size=3, batching={"max_queue_delay_ms": 30})
    began = monotonic()
    assert await dispatcher.answer(call_of(model, rows(1)), stay) == [2]
    assert monotonic() - began >= 0.03
    assert records[0].stamps.queue_ns >= 25e6


async def test_deadline_cuts_the_wait_for_others_short(start: Start, graph: StubGraph) -> None:
    dispatcher = start()
    model = model_of(graph, batch_size=3, batching={"max_queue_delay_ms": 60_000})
    patient = Client(dispatcher).ask(call_of(model, rows(1)))
    await until(lambda: dispatcher.waiting() == 1)
    assert await dispatcher.answer(call_of(model, rows(2), timeout=0.5), stay) == [4]
    assert await patient == [2]
    assert graph.sizes == [2]


async def test_worker_does_not_wait_for_a_batch_while_others_have_work(
    start: Start, graph: StubGraph
) -> None:
    dispatcher = start(workers=1)
    slow = model_of(graph, "slow", batch_size=2, batching={"max_queue_delay_ms": 60_000})
    other = model_of(StubGraph(), "other")
    waits = Client(dispatcher).ask(call_of(slow, rows(1)))
    await decoded(dispatcher, slow)
    assert await dispatcher.answer(call_of(other, rows(5)), stay) == [10]
    assert graph.sizes == []
    assert await dispatcher.answer(call_of(slow, rows(2)), stay) == [4]
    assert await waits == [2]


async def test_call_that_waits_for_others_counts_in_the_queue(start: Start, graph: StubGraph) -> None:
    dispatcher = start(queue_size=0)
    model = model_of(graph, batch_size=9, batching={"max_queue_delay_ms": 60_000})
    leaving = Client(dispatcher)
    task = leaving.ask(call_of(model, rows(1)))
    await decoded(dispatcher, model)
    assert (dispatcher.waiting(), dispatcher.running()) == (1, 0)
    with pytest.raises(ServiceError):
        dispatcher._scheduler._queues[model].check_room(0)
    second = Client(dispatcher).ask(call_of(model, rows(1), timeout=0.01))
    leaving.left.set()
    for each in (task, second):
        with pytest.raises((ClientDisconnect, ServiceError)):
            await each
    assert dispatcher.waiting() == 0
    assert graph.sizes == []


CALLS = st.lists(
    st.tuples(st.lists(st.integers(-1, 50), min_size=1, max_size=5), st.integers(0, 3), st.booleans()),
    min_size=1,
    max_size=12,
)


@given(CALLS, st.integers(2, 6), st.sampled_from([0, 1]), st.lists(st.integers(1, 3), max_size=2))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_batched_answers_are_those_of_calls_one_by_one(
    calls: list[tuple[list[int], int, bool]], size: int, delay: float, preferred: list[int]
) -> None:
    """Of any sizes, priorities and shapes, some of which fail."""

    def array_of(numbers: list[int], is_wide: bool) -> Any:
        array = rows(*numbers)
        return np.concatenate([array, array], axis=1) if is_wide else array

    async def ask_all() -> list[Any]:
        records = Records()
        graph = StubGraph()
        dispatcher = Dispatcher(settings_of(workers=2, queue_size=100), [records])
        dispatcher.start()
        batching = {"max_queue_delay_ms": delay, "preferred_batch_sizes": preferred}
        model = model_of(graph, batch_size=size, batching=batching)
        try:
            tasks = [
                dispatcher.answer(call_of(model, array_of(numbers, wide), priority=priority), stay)
                for numbers, priority, wide in calls
            ]
            async with asyncio.timeout(SOON):
                answers = await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await asyncio.to_thread(dispatcher.close)
        assert len(records) == len(calls)
        single = sorted(len(numbers) for numbers, _, _ in calls if len(numbers) > size)
        assert [count for count in sorted(graph.sizes) if count > size] == single
        assert all(record.leads_run for record in records if record.batch_size == record.items)
        return answers

    for answer, (numbers, _, _) in zip(asyncio.run(ask_all()), calls, strict=True):
        if min(numbers) < 0:
            assert isinstance(answer, ValueError)
        else:
            assert answer == [number * 2 for number in numbers]


def test_counts_of_runs_add_up() -> None:
    """Each run that was not in vain is led by one call, whatever was run with what."""

    async def ask_all() -> tuple[Records, StubGraph]:
        records, graph = Records(), StubGraph()
        dispatcher = Dispatcher(settings_of(workers=2, queue_size=1000), [records])
        dispatcher.start()
        model = model_of(graph, batch_size=4)
        tasks = [dispatcher.answer(call_of(model, rows(number)), stay) for number in range(200)]
        await asyncio.gather(*tasks)
        await asyncio.to_thread(dispatcher.close)
        return records, graph

    records, graph = asyncio.run(ask_all())
    assert sum(record.leads_run for record in records) == len(graph.sizes)
    assert sorted(itertools.chain(*graph.firsts)) == list(range(200))


async def test_batches_have_few_sizes(start: Start, graph: StubGraph) -> None:
    """Each size is compiled when it first comes: seven calls are run as four, two and one."""
    dispatcher, model = start(), model_of(graph, batch_size=16)
    first = await blocked(dispatcher, graph, model)
    tasks = await queue(dispatcher, *(call_of(model, rows(number)) for number in range(7)))
    graph.open.set()
    await asyncio.gather(first, *tasks)
    assert [len(firsts) for firsts in graph.firsts[1:]] == [4, 2, 1]
    assert [number for firsts in graph.firsts[1:] for number in firsts] == list(range(7))


def test_run_sizes_end_with_the_largest_batch() -> None:
    assert [run_sizes(size) for size in (1, 2, 6, 16)] == [[1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8, 16]]
