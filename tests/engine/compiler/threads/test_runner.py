"""Segments run in order, every chunk once, and stop and stamp between steps."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.compiler.threads.segment import NativeStep, Segment
from engine.compiler.threads.thread_team import ThreadTeamPool
from engine.dtypes import Array
from engine.run.stop import StopSignal
from tests.engine.compiler.tiny import Gate, Tables, Work, compiled, table, wait_until

pool = ThreadTeamPool()
WIDTHS = (1, 2, 3, 16)


@pytest.fixture(scope="module", autouse=True)
def _closed_pool() -> Iterator[None]:
    yield
    pool.close()


def run(work: Work, threads: int, tables: Tables | None = None, stop: StopSignal | None = None) -> Tables:
    """Run all of a segment; returns what it worked on."""
    tables = tables or work.tables()
    with pool.lease(threads) as team:
        assert team.run(work.segment, tables.address, stop=stop) == len(work.segment)
    return tables


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(WIDTHS), min_size=1, max_size=20), st.integers(1, 4))
def test_steps_run_in_order_and_every_chunk_once(chunks: list[int], threads: int) -> None:
    tables = run(Work(chunks), threads)
    tables.check(len(chunks))
    assert all(((done >= 0) & (done < threads)).all() for done in tables.threads)


def test_many_chunks_and_steps() -> None:
    work = Work([1000, 1, 1000] * 10)
    for threads in (1, 2, 3):
        run(work, threads).check(30)


def test_one_team_runs_one_segment_after_the_other() -> None:
    first, second = Work([16, 3]), Work([2, 2, 1])
    with pool.lease(3) as team:
        for work in [first, second] * 100:
            tables = work.tables()
            assert team.run(work.segment, tables.address) == len(work.segment)
            tables.check(len(work.segment))


def test_many_runs_of_one_segment_at_once() -> None:
    work = Work([3, 16, 1, 2] * 5)
    with ThreadPoolExecutor(8) as executor:
        for tables in executor.map(lambda threads: run(work, threads), [1, 2, 3, 2, 4] * 10):
            tables.check(20)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_deadline_in_the_past_stops_before_the_first_step(threads: int) -> None:
    work = Work([2, 2])
    tables = work.tables()
    with pool.lease(threads) as team:
        assert team.run(work.segment, tables.address, stop=StopSignal(time.monotonic())) == 0
    tables.check(0)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_stop_that_was_asked_for_before_the_run(threads: int) -> None:
    work = Work([2, 2])
    tables = work.tables()
    stop = StopSignal(time.monotonic() + 1000)
    stop.stop("no")
    with pool.lease(threads) as team:
        assert team.run(work.segment, tables.address, stop=stop) == 0
    tables.check(0)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_stop_that_nobody_asks_for_changes_nothing(threads: int) -> None:
    run(Work([2, 2]), threads, stop=StopSignal()).check(2)
    run(Work([2, 2]), threads, stop=StopSignal(time.monotonic() + 1000)).check(2)


class Gated:
    """A segment that waits in its second step until it is let through."""

    def __init__(self, chunks: int) -> None:
        work = Work([chunks, chunks, chunks])
        first, _, third = work.segment.steps
        self.words = np.zeros(2, np.int64)
        self.tables = work.tables()
        addresses = np.frombuffer(self.tables.table, np.uint64)
        self.table = np.concatenate([addresses, table([self.words])])
        gate = NativeStep(compiled(Gate()), addresses.size, 1)
        self.segment = Segment([first, gate, third])


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("by_deadline", [False, True])
def test_a_stop_takes_effect_before_the_next_step(threads: int, by_deadline: bool) -> None:
    gated = Gated(2)
    stop = StopSignal(time.monotonic() + (0.05 if by_deadline else 1000))
    with pool.lease(threads) as team, ThreadPoolExecutor(1) as executor:
        call = executor.submit(team.run, gated.segment, gated.table.ctypes.data, None, stop)
        if not by_deadline:
            wait_until(lambda: bool(gated.words[0]))
            stop.stop("enough")
        wait_until(lambda: stop.reason() is not None)
        gated.words[1] = 1
        done = call.result(60)
    reached = bool(gated.words[0])  # a busy machine may get to the deadline first
    assert done == 2 if reached else done < 2
    assert (gated.tables.threads[2] == -1).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_the_caller_does_not_hold_the_interpreter(threads: int) -> None:
    gated = Gated(2)
    with pool.lease(threads) as team, ThreadPoolExecutor(1) as executor:
        call = executor.submit(team.run, gated.segment, gated.table.ctypes.data)
        wait_until(lambda: bool(gated.words[0]))
        gated.words[1] = 1
        assert call.result(60) == 3


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_stamps_are_times_of_the_python_clock_in_order(threads: int) -> None:
    work = Work([2, 16, 1, 3])
    timestamps, tables = np.zeros(5, np.int64), work.tables()
    before = time.perf_counter_ns()
    with pool.lease(threads) as team:
        team.run(work.segment, tables.address, timestamps)
    after = time.perf_counter_ns()
    assert (np.diff([before, *timestamps, after]) >= 0).all()


def test_stamps_end_with_the_last_step_that_was_done() -> None:
    work = Work([2, 2])
    timestamps, tables = np.zeros(3, np.int64), work.tables()
    with pool.lease(1) as team:
        team.run(work.segment, tables.address, timestamps, StopSignal(0.0))
    assert timestamps[0] > 0
    assert list(timestamps[1:]) == [0, 0]


@pytest.mark.parametrize(
    "timestamps", [np.zeros(2, np.int64), np.zeros(3, np.float64), np.zeros(6, np.int64)[::2]]
)
def test_stamps_that_do_not_fit_are_refused(timestamps: Array) -> None:
    work = Work([2, 2])
    tables = work.tables()
    with pool.lease(1) as team, pytest.raises(ValueError, match="timestamps: .* expected 3 of int64"):
        team.run(work.segment, tables.address, timestamps)
