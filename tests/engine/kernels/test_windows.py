import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ArgumentError
from engine.kernels.windows import (
    clip_steps,
    conv_output_size,
    pool_output_size,
    transposed_output_size,
    window_view,
)


def test_output_sizes_of_well_known_layers() -> None:
    assert conv_output_size(224, 7, 2, 3, 3) == 112
    assert conv_output_size(7, 2, 1, 0, 1) == 7
    assert pool_output_size(112, 3, 2, 1) == 56
    assert pool_output_size(6, 3, 2, ceil_mode=True) == 3
    assert transposed_output_size(7, 3, 2, 1, 1) == 14


def test_a_window_that_would_start_in_the_far_padding_is_left_out() -> None:
    assert pool_output_size(4, 2, 3, 1, ceil_mode=True) == 2
    assert pool_output_size(5, 2, 3, 1, ceil_mode=True) == 2
    assert pool_output_size(6, 2, 3, 1, ceil_mode=True) == 3


@given(st.integers(1, 20), st.integers(1, 4), st.integers(1, 4), st.integers(0, 3), st.integers(1, 3))
@settings(max_examples=100)
def test_transposition_undoes_the_size_of_a_convolution(
    size: int, kernel: int, stride: int, padding: int, dilation: int
) -> None:
    try:
        enlarged = transposed_output_size(size, kernel, stride, padding, 0, dilation)
    except ArgumentError:
        return
    assert conv_output_size(enlarged, kernel, stride, padding, padding, dilation) == size


def test_a_view_shows_windows_without_copying() -> None:
    array = np.arange(20).reshape(2, 10)
    view = window_view(array, (3,), (2,), (2,))
    np.testing.assert_array_equal(view[1], [[10, 12, 14], [12, 14, 16], [14, 16, 18]])
    assert np.shares_memory(view, array)
    assert not view.flags.writeable


@given(st.integers(-9, 9), st.integers(1, 4), st.integers(0, 6), st.integers(1, 9))
@settings(max_examples=100)
def test_steps_are_clipped_to_the_axis(first: int, step: int, count: int, size: int) -> None:
    inside = [number for number in range(count) if 0 <= first + number * step < size]
    axis, steps = clip_steps(first, step, count, size)
    assert list(range(count))[steps] == inside
    assert list(range(size))[axis] == [first + number * step for number in inside]


def test_an_error_says_what_would_fit() -> None:
    with pytest.raises(
        ArgumentError,
        match="kernel_size: a window spans 5 elements, the padded input only 4; expected at most 4",
    ):
        conv_output_size(3, 3, 1, 0, 1, 2)
