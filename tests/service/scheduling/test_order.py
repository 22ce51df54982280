"""Who is next: by priority and arrival within a model, by time had of the workers among models."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.scheduling.batch import Batcher
from service.scheduling.job import Job
from service.scheduling.policy import SchedulingPolicy
from service.scheduling.queue import LONGEST_RETRY_AFTER, ModelQueue, ServiceRate, TraceSetting, Work
from tests.service.scheduling.stubs import StubGraph, call_of, model_of, rows

MODEL = model_of(StubGraph())


def schedule(priorities: list[int]) -> list[Job[Any]]:
    jobs = [call_of(MODEL, rows(1)) for _ in priorities]
    for job, priority in zip(jobs, priorities, strict=True):
        job.admit(1.0, priority)
        job.rows, job.signature = 1, (((2,), np.dtype("f4")),)
    return jobs


@given(st.lists(st.integers(1, 4), max_size=30), st.randoms(use_true_random=False), st.data())
@settings(max_examples=100, deadline=None)
def test_batches_are_ordered_by_priority_and_arrival(priorities: list[int], order: Any, data: Any) -> None:
    calls = schedule(priorities)
    queue = Batcher(SchedulingPolicy(max_batch_size=1))
    shuffled = list(calls)
    order.shuffle(shuffled)
    for call in shuffled:
        queue.add(call)
    gone = set(data.draw(st.lists(st.sampled_from(calls), unique=True))) if calls else set()
    for call in (*gone, *gone):
        queue.discard(call)
    expected = sorted(
        (call for call in calls if call not in gone), key=lambda call: (call.priority, call.queued)
    )
    assert list(queue) == expected
    assert queue.length == len(expected)
    assert [queue.take(0.0, 0.0) for _ in expected] == [[call] for call in expected]
    assert queue.length == 0


class Workers:
    """One worker, or several, whose time queues share: a clock of work in place of threads."""

    def __init__(self, queues: int) -> None:
        self.queues = [ModelQueue(SchedulingPolicy(), TraceSetting.of_server(0)) for _ in range(queues)]
        self.virtual_time = 0.0

    def want(self, queue: ModelQueue) -> None:
        (job,) = schedule([1])
        queue.push(job, self.virtual_time)

    def begin(self, queue: ModelQueue) -> Work:
        self.virtual_time = max(self.virtual_time, queue.tag)
        return queue.take(0.0)

    def serve(self, queue: ModelQueue, seconds: float) -> None:
        """Run a job of a model that wants the next one by the time it ends."""
        work = self.begin(queue)
        self.want(queue)
        queue.finish(work, seconds)


@given(
    st.lists(st.floats(0.001, 1), min_size=2, max_size=5),
    st.integers(20, 200),
    st.floats(0.5, 2),
)
@settings(max_examples=50, deadline=None)
def test_models_that_always_want_more_get_equal_time(costs: list[float], turns: int, noise: float) -> None:
    """On one worker the times of any two differ by no more than their dearest turns."""
    workers = Workers(len(costs))
    for queue in workers.queues:
        workers.want(queue)
    had = [0.0] * len(costs)
    for turn in range(turns):
        index = min(range(len(costs)), key=lambda each: workers.queues[each].tag)
        seconds = costs[index] * (noise if turn % 2 else 1)
        workers.serve(workers.queues[index], seconds)
        had[index] += seconds
    bound = 2 * sum(max(cost, cost * noise) for cost in costs)
    assert max(had) - min(had) <= bound


def test_model_that_wanted_nothing_has_saved_nothing() -> None:
    workers = Workers(2)
    busy, idle = workers.queues
    workers.want(busy)
    for _ in range(100):
        workers.serve(busy, 1.0)
    workers.want(idle)
    assert idle.tag == pytest.approx(busy.tag, abs=1.0)
    workers.serve(idle, 5.0)
    assert busy.tag < idle.tag


def test_turn_in_progress_is_charged_beforehand() -> None:
    """So that several free workers do not all go to the same model."""
    workers = Workers(2)
    first, second = workers.queues
    for queue in workers.queues:
        workers.want(queue)
    for queue in workers.queues:
        workers.serve(queue, 1.0)
    workers.begin(first)
    assert second.tag < first.tag


@pytest.mark.parametrize(
    ("calls", "seconds", "backlog", "expected"),
    [(1, 0.1, 5, 1), (1, 0.5, 5, 3), (8, 0.5, 64, 4), (1, 100, 64, LONGEST_RETRY_AFTER)],
)
def test_retry_after_is_the_backlog_at_the_recent_rate(
    calls: int, seconds: float, backlog: int, expected: int
) -> None:
    rate = ServiceRate()
    for turn in range(1, 100):
        rate.completed(calls, 0.0, turn * seconds)
    assert rate.retry_after(backlog) == expected


def test_rate_of_workers_side_by_side_is_their_sum() -> None:
    """Two workers of a second each complete two calls a second."""
    rate = ServiceRate()
    for turn in range(1, 100):
        rate.completed(1, 0.0, float(turn))
        rate.completed(1, 0.0, float(turn))
    assert rate.retry_after(20) == 10


def test_idle_time_is_no_service_time() -> None:
    rate = ServiceRate()
    for start in range(0, 100_000, 1000):
        rate.completed(1, float(start), start + 0.5)
    assert rate.retry_after(10) == 5


def test_rate_follows_a_change() -> None:
    rate = ServiceRate()
    now = 0.0
    for seconds in [0.01] * 1000 + [2.0] * 50:
        now += seconds
        rate.completed(1, 0.0, now)
    assert rate.retry_after(10) in (19, 20)


def test_rate_of_nothing_is_the_shortest_wait() -> None:
    assert ServiceRate().retry_after(1000) == 1


@pytest.mark.parametrize(("rate", "sampled"), [(0, []), (1, [0, 1, 2, 3]), (3, [2])])
def test_every_so_many_runs_one_is_traced(rate: int, sampled: list[int]) -> None:
    setting = TraceSetting.of_server(rate)
    assert np.flatnonzero([setting.sample() for _ in range(4)]).tolist() == sampled


def test_so_many_runs_are_traced_and_no_more() -> None:
    setting = TraceSetting.of_server(2)
    setting.values["trace_count"] = 1
    assert [setting.sample() for _ in range(6)] == [False, True, False, False, False, False]
    assert setting.values["trace_count"] == 0
