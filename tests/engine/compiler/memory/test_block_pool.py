"""Memory of runs, shared by programs."""

import gc
import weakref

import numpy as np

from engine.compiler.memory.arena import ArenaPool, BlockPool, release_idle_memory


def test_a_block_goes_from_run_to_run() -> None:
    pool = BlockPool()
    first = pool.take(1000)
    second = pool.take(100)
    assert second is not first
    pool.give_back(first)
    assert pool.take(500) is first, "it is large enough"


def test_there_are_as_many_blocks_of_similar_sizes_as_runs_at_once() -> None:
    pool = BlockPool()
    for size in (1 << 20, 1 << 19, 1 << 21, 1 << 20, 1 << 21):
        pool.give_back(pool.take(size))
    assert pool.free_bytes == 1 << 21


def test_a_small_run_leaves_a_large_block_idle() -> None:
    pool = BlockPool()
    large = pool.take(1 << 24)
    pool.give_back(large)
    assert pool.take(1 << 12) is not large
    assert pool.take(1 << 23) is large


def test_a_large_block_that_no_run_has_used_for_a_while_is_given_back() -> None:
    pool = BlockPool()
    small, large, busy = pool.take(1 << 12), pool.take(1 << 24), pool.take(1 << 22)
    for block in (small, large, busy):
        pool.give_back(block)
    assert pool.release_idle(1000.0) == (1 << 24) + (1 << 22)
    assert pool.free_bytes == (1 << 24) + (1 << 22) + (1 << 12), "they may have been used just now"
    assert pool.take(1 << 22) is busy
    assert pool.release_idle(1001.0) == 1 << 24
    pool.give_back(busy)
    assert pool.release_idle(1002.0) == 1 << 22
    assert pool.free_bytes == (1 << 12) + (1 << 22)
    assert pool.release_idle(1005.0) == 0
    assert pool.free_bytes == 1 << 12


def test_memory_of_all_pools_is_given_back() -> None:
    pools = [BlockPool(), BlockPool()]
    for pool in pools:
        pool.give_back(pool.take(1 << 22))
    for seconds in (0.0, 2.0):
        for pool in pools:
            pool.release_idle(1000.0 + seconds)
            pool.give_back(pool.take(1 << 22))
    assert [pool.free_bytes for pool in pools] == [1 << 22, 1 << 22], "each was used meanwhile"
    for pool in pools:
        pool.release_idle(-1000.0)
    release_idle_memory()
    assert [pool.free_bytes for pool in pools] == [0, 0]


def test_programs_share_memory_and_each_has_its_own_addresses() -> None:
    blocks = BlockPool()
    pools = [
        ArenaPool(size, np.array([0, 64, 7], np.uint64), np.array([0, 1], np.intp)) for size in (256, 128)
    ]
    for pool in pools:
        pool.share(blocks)
    seen = []
    for _ in range(3):
        for pool in pools:
            arena = pool.take()
            base = arena.memory.ctypes.data
            assert arena.table.tolist() == [base, base + 64, 7]
            seen.append(base)
            pool.give_back(arena)
    assert len(set(seen)) == 1


def test_memory_goes_with_its_pool() -> None:
    gc.disable()
    try:
        pool = ArenaPool(1 << 20, np.zeros(1, np.uint64), np.zeros(1, np.intp))
        arena = pool.take()
        memory = weakref.ref(arena.memory)
        pool.give_back(arena)
        del arena, pool
        assert memory() is None
    finally:
        gc.enable()
