"""The choice of register tiles."""

import pytest

from engine.compiler.contraction.tile import choose_tile
from engine.compiler.emit.target import Target
from tests.cases import check_each


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_the_lines_of_a_tiles_pixels_stay_in_the_first_cache(lanes: int) -> None:
    """Lines 4 KiB apart share one set of 8, those 2 KiB apart two sets."""
    target = Target("avx512", lanes, 32, True, "", "")

    def check(case: tuple[int, int, int]) -> None:
        step, pixels, at_most = case
        assert choose_tile(target, pixels, 2, step).pixels <= at_most

    check_each([(1024, 14, 8), (2048, 196, 8), (512, 28, 16), (1536, 28, 16)], check)
    assert choose_tile(target, 14, 1, 1024 + 16) == choose_tile(target, 14, 1)
