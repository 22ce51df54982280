import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ArgumentError
from engine.kernels.extremes import lowest, max_over_positions, max_unpool, window_positions
from engine.layers.pooling import max_pool_with_indices


def test_the_lowest_value_loses_every_comparison() -> None:
    assert lowest(np.dtype(np.float16)) == -np.inf
    assert lowest(np.dtype(np.uint8)) == 0
    assert lowest(np.dtype(np.int32)) == -(2**31)


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(0, 4), st.integers(1, 3))
@settings(max_examples=100)
def test_windows_cover_what_lies_inside(
    size: int, kernel: int, stride: int, padding: int, dilation: int
) -> None:
    padding = min(padding, kernel // 2)
    table = window_positions(size, 6, kernel, stride, padding, dilation)
    for window in range(6):
        first = window * stride - padding
        inside = [at for at in range(first, first + kernel * dilation, dilation) if 0 <= at < size]
        if inside:
            assert sorted(set(table[:, window])) == inside
        else:
            assert table[0, window] >= size


def test_a_window_that_covers_nothing_gives_the_lowest_value() -> None:
    # kernel 2, dilation 3, padding 1 on an axis of 2 visits -1 and 2
    maxima, indices = max_pool_with_indices(np.ones((1, 1, 2, 2)), (2, 1), (1, 1), (1, 0), (3, 1))
    np.testing.assert_array_equal(maxima, np.full((1, 1, 1, 2), -np.inf))
    np.testing.assert_array_equal(indices, [[[[4, 5]]]])


def test_the_first_of_equal_maxima_counts() -> None:
    tables = [np.array([[0], [1]]), np.array([[1], [2]])]
    maxima, indices = max_over_positions(np.array([[[[9, 1, 3], [9, 3, 3]]]]), tables)
    assert maxima.tolist() == [[[[3]]]]
    assert indices.tolist() == [[[[2]]]]


def test_unpooling_puts_maxima_back() -> None:
    tensor = np.random.default_rng(0).permutation(2 * 3 * 4 * 6).reshape(2, 3, 4, 6)
    maxima, indices = max_pool_with_indices(tensor, (2, 3), (2, 3), (0, 0), (1, 1))
    unpooled = max_unpool(maxima, indices, (4, 6))
    assert np.count_nonzero(unpooled) == np.count_nonzero(maxima)
    np.testing.assert_array_equal(unpooled[unpooled != 0], tensor[unpooled != 0])


@pytest.mark.parametrize(("indices", "problem"), [([[[0, 8]]], "goes from 0 to 8"), ([[[0]]], "has shape")])
def test_refuses_indices_that_do_not_fit(indices: list[list[list[int]]], problem: str) -> None:
    with pytest.raises(ArgumentError, match=problem):
        max_unpool(np.ones((1, 1, 2)), np.array(indices), (8,))
