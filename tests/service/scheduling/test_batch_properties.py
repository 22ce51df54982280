"""Batches of any calls: each call is answered as if it had run alone, and each run is counted once."""

import asyncio
import itertools
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.scheduling.scheduler import Scheduler
from tests.service.scheduling.stubs import (
    SOON,
    Records,
    StubGraph,
    call_of,
    model_of,
    rows,
    settings_of,
    stay,
)

CALLS = st.lists(
    st.tuples(st.lists(st.integers(-1, 50), min_size=1, max_size=5), st.integers(0, 3), st.booleans()),
    min_size=1,
    max_size=12,
)


@given(CALLS, st.integers(2, 6), st.sampled_from([0, 1]), st.lists(st.integers(1, 3), max_size=2))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_batched_responses_are_those_of_calls_one_by_one(
    calls: list[tuple[list[int], int, bool]], size: int, delay: float, preferred: list[int]
) -> None:
    """Of any sizes, priorities and shapes, some of which fail."""

    def array_of(numbers: list[int], is_wide: bool) -> Any:
        array = rows(*numbers)
        return np.concatenate([array, array], axis=1) if is_wide else array

    async def ask_all() -> list[Any]:
        records = Records()
        graph = StubGraph()
        scheduler = Scheduler(settings_of(workers=2, queue_size=100), [records])
        scheduler.start()
        batching = {"max_queue_delay_ms": delay, "preferred_batch_sizes": preferred}
        model = model_of(graph, batch_size=size, batching=batching)
        try:
            tasks = [
                scheduler.run(call_of(model, array_of(numbers, wide), priority=priority), stay)
                for numbers, priority, wide in calls
            ]
            async with asyncio.timeout(SOON):
                responses = await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await asyncio.to_thread(scheduler.close)
        assert len(records) == len(calls)
        single = sorted(len(numbers) for numbers, _, _ in calls if len(numbers) > size)
        assert [count for count in sorted(graph.sizes) if count > size] == single
        assert all(record.leads_run for record in records if record.batch_size == record.rows)
        return responses

    for response, (numbers, _, _) in zip(asyncio.run(ask_all()), calls, strict=True):
        if min(numbers) < 0:
            assert isinstance(response, ValueError)
        else:
            assert response == [number * 2 for number in numbers]


def test_counts_of_runs_add_up() -> None:
    """Each run that was not in vain is led by one call, whatever was run with what."""

    async def ask_all() -> tuple[Records, StubGraph]:
        records, graph = Records(), StubGraph()
        scheduler = Scheduler(settings_of(workers=2, queue_size=1000), [records])
        scheduler.start()
        model = model_of(graph, batch_size=4)
        tasks = [scheduler.run(call_of(model, rows(number)), stay) for number in range(200)]
        await asyncio.gather(*tasks)
        await asyncio.to_thread(scheduler.close)
        return records, graph

    records, graph = asyncio.run(ask_all())
    assert sum(record.leads_run for record in records) == len(graph.sizes)
    assert sorted(itertools.chain(*graph.firsts)) == list(range(200))
