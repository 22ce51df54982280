import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ArgumentError
from engine.kernels.resampling import resample, resample_size, resampled_shape
from tests.engine.kernels.cases import check_golden


def test_matches_pytorch() -> None:
    check_golden("resample", resample)


@given(st.integers(1, 9), st.integers(1, 20), st.booleans())
@settings(max_examples=100)
def test_linear_interpolates_between_neighbours(size: int, count: int, align_corners: bool) -> None:
    values = np.random.default_rng(size).standard_normal(size)
    step = (size - 1) / max(count - 1, 1) if align_corners else size / count
    points = [index * step if align_corners else (index + 0.5) * step - 0.5 for index in range(count)]
    expected = np.interp(points, np.arange(size), values)
    result = resample(values.reshape(1, 1, -1), (count,), None, "linear", align_corners)
    np.testing.assert_allclose(result[0, 0], expected, rtol=1e-9, atol=1e-9)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 20)), min_size=1, max_size=3), st.booleans())
@settings(max_examples=100)
def test_nearest_copies_one_element(axes: list[tuple[int, int]], exact: bool) -> None:
    tensor = np.arange(math.prod(size for size, _ in axes)).reshape(1, 1, *[size for size, _ in axes])
    offset = 0.5 if exact else 0
    picks = [
        [math.floor((index + offset) * size / count + 1e-9) for index in range(count)] for size, count in axes
    ]
    mode = "nearest-exact" if exact else "nearest"
    result = resample(tensor, [count for _, count in axes], None, mode)
    np.testing.assert_array_equal(result[0, 0], tensor[0, 0][np.ix_(*picks)])


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_the_same_size_is_a_copy(mode: str) -> None:
    tensor = np.random.default_rng(0).standard_normal((1, 2, 3, 4))
    result = resample(tensor, (3, 4), None, mode)
    np.testing.assert_allclose(result, tensor, rtol=1e-12)
    assert not np.shares_memory(result, tensor)


def test_a_factor_is_also_the_distance_between_samples() -> None:
    tensor = np.arange(10.0).reshape(1, 1, 10)
    kept = resample(tensor, None, (0.55,), "linear")
    recomputed = resample(tensor, None, (0.55,), "linear", recompute_scale_factor=True)
    np.testing.assert_allclose(kept[0, 0, :2], [0.5 / 0.55 - 0.5, 1.5 / 0.55 - 0.5])
    np.testing.assert_allclose(recomputed[0, 0, :2], [0.5, 2.5])


def test_takes_views_it_may_not_write_to() -> None:
    tensor = np.random.default_rng(0).standard_normal((5, 6, 2, 1)).transpose(3, 2, 0, 1)
    tensor.flags.writeable = False
    before = tensor.copy()
    for mode in ("nearest", "bilinear", "bicubic", "area"):
        resample(tensor, (9, 5), None, mode)
    np.testing.assert_array_equal(tensor, before)


@pytest.mark.parametrize(
    ("argument", "arguments"),
    [
        ("size", {}),
        ("size", {"size": (2, 2), "scale_factor": (1.0, 1.0)}),
        ("size", {"size": (2,)}),
        ("size", {"size": (2, 0)}),
        ("scale_factor", {"scale_factor": (2.0,)}),
        ("scale_factor", {"scale_factor": (2.0, 0.1)}),
        ("scale_factor", {"scale_factor": (2.0, -1.0)}),
        ("scale_factor", {"scale_factor": (2.0, math.inf)}),
        ("mode", {"size": (2, 2), "mode": "lanczos"}),
        ("input", {"size": (2, 2), "mode": "linear"}),
        ("align_corners", {"size": (2, 2), "align_corners": False}),
        ("align_corners", {"size": (2, 2), "mode": "area", "align_corners": True}),
        ("recompute_scale_factor", {"size": (2, 2), "recompute_scale_factor": True}),
    ],
)
def test_refuses_what_does_not_fit(argument: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError) as error:
        resampled_shape((1, 2, 3, 4), **arguments)
    assert error.value.argument == argument


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "area"])
def test_weights_need_floats(mode: str) -> None:
    with pytest.raises(ArgumentError, match="input: has dtype uint8; expected a floating dtype"):
        resample(np.ones((1, 1, 4, 4), np.uint8), (2, 2), None, mode)


def test_sizes_round_down() -> None:
    assert resample_size(7, 1.5) == 10
    assert resampled_shape((1, 2, 7, 7), scale_factor=(1.5, 0.3)) == (1, 2, 10, 2)
