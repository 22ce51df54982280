"""Quantization against its definition; the golden cases hold it against PyTorch."""

import numpy as np
import pytest

from engine.errors import ArgumentError
from engine.kernels.quantization import check_quantization, dequantize, quantize, requantize, saturate

INT8, UINT8, INT32 = np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int32)


def test_halves_are_rounded_to_even() -> None:
    halves = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5], np.float32)
    np.testing.assert_array_equal(quantize(halves, 1.0, 0, INT8), [0, 2, 2, 0, -2, -2])


def test_the_zero_point_is_added_before_rounding() -> None:
    np.testing.assert_array_equal(quantize(np.array([0.5, 1.5], np.float32), 1.0, 3, UINT8), [4, 4])


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [(INT8, -128, 127), (UINT8, 0, 255), (INT32, -(2**31), 2**31 - 1)]
)
def test_what_is_out_of_range_is_saturated(dtype: np.dtype[np.generic], low: int, high: int) -> None:
    odd = np.array([-np.inf, -1e30, 1e30, np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(quantize(odd, 0.1, 5, dtype), [low, low, high, high, high])


def test_all_integers_come_back_from_what_they_stand_for() -> None:
    for dtype, zero_point in ((INT8, -20), (UINT8, 131)):
        values = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1).astype(dtype)
        real = dequantize(values, 0.037, zero_point)
        assert real.dtype == np.float32
        np.testing.assert_allclose(real, (values.astype(int) - zero_point) * 0.037, rtol=1e-6, atol=1e-7)
        np.testing.assert_array_equal(quantize(real, 0.037, zero_point, dtype), values)


def test_saturate_keeps_what_fits() -> None:
    np.testing.assert_array_equal(
        saturate(np.array([-129.0, -128, 0, 127, 128]), INT8), [-128, -128, 0, 127, 127]
    )


@pytest.mark.parametrize("relu", [False, True])
def test_requantized_sums_stand_for_the_same_numbers(relu: bool) -> None:
    rng = np.random.default_rng(0)
    sums, bias = rng.integers(-4000, 4000, (50, 3)), rng.normal(size=3).astype(np.float32)
    scales = np.array([0.001, 0.002, 0.0005], np.float32)
    real = sums * scales.astype(float) + bias
    wanted = np.clip(np.rint((np.maximum(real, 0) if relu else real) / 0.05) + 90, 0, 255)
    given = requantize(sums.astype(np.float32), bias, scales, 0.05, 90, UINT8, relu)
    np.testing.assert_array_equal(given, wanted)


@pytest.mark.parametrize(
    ("scale", "zero_point", "argument"),
    [
        *((scale, 0, "scale") for scale in (0.0, -1.0, np.nan, np.inf, 1e-50, 1e50)),
        (1.0, 128, "zero_point"),
        (1.0, -129, "zero_point"),
    ],
)
def test_impossible_quantization_is_refused(scale: float, zero_point: int, argument: str) -> None:
    with pytest.raises(ArgumentError) as error:
        check_quantization(scale, zero_point, INT8)
    assert error.value.argument == argument


def test_tensors_without_axes_stay_arrays() -> None:
    values = quantize(np.array(0.7, np.float32), 0.1, 3, INT8)
    assert isinstance(values, np.ndarray)
    assert isinstance(dequantize(values, 0.1, 3), np.ndarray)
    assert values == 10
