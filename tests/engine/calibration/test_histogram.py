import numpy as np
import pytest

from engine.calibration.histogram import Extent, Histogram
from engine.dtypes import Array
from engine.quantization.tensor_scale import TensorScale


def scale_of_values(values: Array, method: str, percentile: float = 99.0) -> TensorScale:
    extent = Extent()
    extent.add(values)
    histogram = Histogram(extent)
    histogram.add(values)
    return histogram.scale(method, percentile)


def test_all_values_are_in_the_range_of_minmax() -> None:
    low, high = scale_of_values(np.array([-1, 0.5, 9], np.float32), "minmax").limits
    assert low <= -0.98
    assert high >= 8.98


def test_percentile_leaves_out_what_is_far_away() -> None:
    values = np.concatenate([np.linspace(-1, 1, 10_000), [1000]]).astype(np.float32)
    assert scale_of_values(values, "percentile").limits[1] < 2


def test_mse_gives_less_error_than_minmax_where_values_are_far_away() -> None:
    values = np.random.default_rng(0).uniform(-1, 1, 1_000_000).astype(np.float32)
    values[0] = 4
    errors = []
    for method in ("mse", "minmax"):
        scale = scale_of_values(values, method)
        errors.append(float(np.square(scale.rounded(values) - values).mean()))
    assert errors[0] < 0.7 * errors[1]


def test_values_that_are_not_finite_do_not_count() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1, 2], np.float32)
    assert scale_of_values(values, "mse").limits[1] < 2.1
    assert scale_of_values(values[:3], "mse").zero_point == 0


@pytest.mark.parametrize("ends", [(1, 1.0001), (-5, -4.9999), (0, 1e-45), (-3e38, 3e38)])
def test_extents_may_be_narrow_or_as_wide_as_float32(ends: tuple[float, float]) -> None:
    values = np.array(ends, np.float32)
    scale = scale_of_values(values, "mse")
    np.testing.assert_allclose(scale.rounded(values), values, atol=max(scale.scale, 1e-30))
