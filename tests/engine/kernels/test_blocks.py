from concurrent.futures import ThreadPoolExecutor

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.blocks import (
    BLOCK_BYTES,
    KEPT_BYTES,
    MIN_COLUMNS,
    PLANE_BYTES,
    cache_blocks,
    column_buffer,
    columns_per_block,
    plane_blocks,
)


@given(st.lists(st.integers(1, 6), min_size=3, max_size=5), st.integers(1, 200))
@settings(max_examples=100)
def test_blocks_cover_everything_once(extents: list[int], limit: int) -> None:
    batch, groups, *spatial = extents
    visits = np.zeros(extents, int)
    flat = visits.reshape(batch, groups, -1)
    for items, parts, region, positions in cache_blocks((batch, groups), tuple(spatial), limit):
        block = visits[(items, parts, *region)]
        assert 1 <= block.size <= limit
        block += 1
        assert flat[items, parts, positions].size == block.size
        assert (flat[items, parts, positions] == 1).all()
    assert (visits == 1).all()


def test_blocks_are_about_equal() -> None:
    counts = [positions.stop - positions.start for *_, positions in cache_blocks((1, 1), (10, 7), 50)]
    assert counts == [35, 35]


def test_columns_fill_the_cache_but_are_never_few() -> None:
    assert columns_per_block(BLOCK_BYTES // 500) == 500
    assert columns_per_block(BLOCK_BYTES) == MIN_COLUMNS


def test_planes_of_all_arrays_go_together() -> None:
    narrow, wide = np.zeros((2, 3, 5), np.float32), np.zeros((2, 3, PLANE_BYTES // 16), np.float64)
    shapes = []
    for planes, same in plane_blocks(narrow, wide):
        planes[...] = planes + 1
        same[...] = same + 1
        shapes.append((planes.shape, same.shape))
    assert shapes == [((2, 5), (2, PLANE_BYTES // 16))] * 3
    assert (narrow == 1).all()
    assert (wide == 1).all()


def test_a_thread_keeps_small_buffers_only() -> None:
    dtype = np.dtype(np.float32)
    first, second = column_buffer((4, 5), dtype), column_buffer((7,), dtype)
    assert first.shape == (4, 5)
    assert np.shares_memory(first, second)
    large = column_buffer((KEPT_BYTES,), dtype)
    assert not np.shares_memory(large, column_buffer((KEPT_BYTES,), dtype))


def test_a_buffer_grows_with_what_is_asked() -> None:
    dtype = np.dtype(np.uint8)
    for size in (BLOCK_BYTES, BLOCK_BYTES + 1, BLOCK_BYTES + 2, 3):
        assert column_buffer((size,), dtype).size == size


def test_threads_do_not_share_buffers() -> None:
    dtype = np.dtype(np.float32)
    own = column_buffer((8,), dtype)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(column_buffer, (8,), dtype).result()
    assert not np.shares_memory(own, other)
