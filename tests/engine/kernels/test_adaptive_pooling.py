import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.adaptive_pooling import (
    adaptive_avg_pool,
    adaptive_max_pool,
    adaptive_maxima,
    adaptive_shape,
)
from tests.engine.kernels.cases import ALL, check_golden


def test_adaptive_avg_pool_matches_pytorch() -> None:
    check_golden("adaptive_avg_pool", adaptive_avg_pool)


def test_adaptive_max_pool_matches_pytorch() -> None:
    check_golden("adaptive_max_pool", adaptive_max_pool)

    def apart(x: Array, output_size: tuple[int, ...]) -> tuple[Array, Array]:
        return adaptive_maxima(x, output_size), adaptive_max_pool(x, output_size)[1]

    check_golden("adaptive_max_pool", apart)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 12)), min_size=1, max_size=3), st.integers(1, 2))
@settings(max_examples=100)
def test_pools_the_cells_of_the_definition(axes: list[tuple[int, int]], batch: int) -> None:
    output = [cells for _, cells in axes]
    tensor = (
        np.random.default_rng(0).integers(-9, 10, (batch, 2, *[size for size, _ in axes])).astype(np.float64)
    )
    means, (maxima, indices) = adaptive_avg_pool(tensor, output), adaptive_max_pool(tensor, output)
    np.testing.assert_array_equal(adaptive_maxima(tensor, output), maxima)
    assert means.shape == maxima.shape == indices.shape == (batch, 2, *output)
    for place in np.ndindex(*output):
        cell = tuple(
            slice(q * size // cells, math.ceil((q + 1) * size / cells))
            for q, (size, cells) in zip(place, axes, strict=True)
        )
        window = tensor[(ALL, *cell)].reshape(batch, 2, -1)
        np.testing.assert_allclose(means[(ALL, *place)], window.mean(-1), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(maxima[(ALL, *place)], window.max(-1))
        found = np.take_along_axis(tensor.reshape(batch, 2, -1), indices[(ALL, *place)][..., None], -1)
        np.testing.assert_array_equal(found[..., 0], window.max(-1))


def test_gives_an_array_of_its_own() -> None:
    tensor = np.ones((1, 2, 3, 4), np.float32)
    pooled = adaptive_avg_pool(tensor, (3, 4))
    np.testing.assert_array_equal(pooled, tensor)
    assert not np.shares_memory(pooled, tensor)


def test_takes_an_empty_batch() -> None:
    assert adaptive_avg_pool(np.ones((0, 2, 5)), (3,)).shape == (0, 2, 3)
    assert adaptive_avg_pool(np.ones((0, 2, 5)), (1,)).shape == (0, 2, 1)
    assert adaptive_max_pool(np.ones((0, 2, 5)), (3,))[1].shape == (0, 2, 3)


def test_keeps_nan_in_its_cell() -> None:
    tensor = np.array([[[np.nan, 1.0, 2.0, 3.0, np.inf]]])
    np.testing.assert_array_equal(adaptive_avg_pool(tensor, (3,)), [[[np.nan, 2, np.inf]]])
    for cells, wanted in ((3, [np.nan, 3, np.inf]), (1, [np.nan]), (5, tensor[0, 0])):
        np.testing.assert_array_equal(adaptive_maxima(tensor, (cells,))[0, 0], wanted)


@pytest.mark.parametrize(
    ("argument", "shape", "output"),
    [("input", (1, 2, 3), (2, 2)), ("input", (1, 2, 3, 0), (2, 2)), ("output_size", (1, 2, 3, 3), (2, -1))],
)
def test_refuses_what_does_not_fit(argument: str, shape: tuple[int, ...], output: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError) as error:
        adaptive_shape(shape, output)
    assert error.value.argument == argument


def test_means_are_of_floats() -> None:
    with pytest.raises(ArgumentError, match="input: has dtype int64; expected a floating dtype"):
        adaptive_avg_pool(np.ones((1, 1, 4), np.int64), (2,))
