import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.blocks import BLOCK_BYTES, MIN_COLUMNS, cache_blocks, columns_per_block


@given(st.lists(st.integers(1, 6), min_size=3, max_size=5), st.integers(1, 200))
@settings(max_examples=100, deadline=None)
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
