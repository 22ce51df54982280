"""What is in use at once never overlaps, and takes hardly more memory than it must."""

import random
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.emit.target import host_target
from engine.compiler.memory.alignment import ALIGNMENT, address_of
from engine.compiler.memory.arena import ArenaPool, Lifetime, arrange, least_size
from engine.compiler.program.assembler import compile_plan
from engine.spec import TensorSpec
from tests.cases import check_each
from tests.golden.network_data import NAMES, arrays, open_network

LIFETIMES = st.lists(
    st.builds(lambda size, first, length: Lifetime(size, first, first + length), *[st.integers(0, 30)] * 3)
)


def on_lines(lifetimes: list[Lifetime]) -> list[Lifetime]:
    """Return the lifetimes of buffers that take whole cache lines."""
    return [Lifetime(-(-life.size // ALIGNMENT) * ALIGNMENT, life.first, life.last) for life in lifetimes]


def random_lifetimes(seed: int) -> list[Lifetime]:
    """Return lifetimes such as networks have: most short, some long."""
    source = random.Random(seed)
    firsts = [source.randint(0, 60) for _ in range(source.randint(1, 40))]
    return [
        Lifetime(ALIGNMENT * source.randint(1, 100), first, first + min(30, int(source.expovariate(0.25))))
        for first in firsts
    ]


@given(LIFETIMES)
def test_what_is_in_use_at_once_does_not_overlap(lifetimes: list[Lifetime]) -> None:
    arrangement = arrange(lifetimes)
    placed = list(zip(lifetimes, arrangement.offsets, strict=True))
    for place, (life, offset) in enumerate(placed):
        assert offset % ALIGNMENT == 0
        assert offset + life.size <= arrangement.size
        for other, there in placed[:place]:
            if other.first <= life.last and life.first <= other.last:
                assert offset + life.size <= there or there + other.size <= offset
    assert least_size(lifetimes) <= arrangement.size <= sum(life.size for life in on_lines(lifetimes))


def test_random_buffers_take_little_more_than_they_must() -> None:
    def check(seed: int) -> None:
        lifetimes = random_lifetimes(seed)
        assert arrange(lifetimes).size <= 1.1 * least_size(lifetimes)

    check_each(range(40), check)


@pytest.mark.parametrize("name", NAMES)
def test_networks_take_little_more_than_they_must(name: str) -> None:
    graph = open_network(name, "native")
    plan = graph.plan([TensorSpec(array.shape, array.dtype) for array in arrays(name, "other", "in")])
    leaving = [plan.slots[port.operand] for port in graph.outputs if port.operand in plan.slots]
    program = compile_plan(plan, leaving, host_target(), 1)
    assert program.arrangement.size <= 1.1 * program.least_bytes


def test_least_size_counts_both_ends() -> None:
    assert least_size([Lifetime(3, 0, 2), Lifetime(5, 2, 4), Lifetime(7, 3, 3)]) == 12
    assert least_size([]) == 0


def test_pool_lends_each_arena_to_one_run_at_a_time() -> None:
    pool = ArenaPool(256, np.array([0, 64, 7], np.uint64), np.array([0, 1], np.intp))
    first, second = pool.take(), pool.take()
    assert not np.may_share_memory(first.memory, second.memory)
    for arena in (first, second):
        base = address_of(arena.memory)
        assert base % ALIGNMENT == 0
        assert arena.table.tolist() == [base, base + 64, 7]
        assert arena.table_address == address_of(arena.table)
    pool.give_back(first)
    assert pool.take().memory is first.memory


def test_pool_is_safe_to_use_from_many_threads() -> None:
    pool = ArenaPool(64, np.zeros(1, np.uint64), np.zeros(1, np.intp))
    lent: set[int] = set()
    lock = threading.Lock()
    clashes = []

    def work() -> None:
        for _ in range(200):
            arena = pool.take()
            with lock:
                clashes.extend([arena] if id(arena.memory) in lent else [])
                lent.add(id(arena.memory))
            with lock:
                lent.remove(id(arena.memory))
            pool.give_back(arena)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert clashes == []
