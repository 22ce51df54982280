"""Numbers in JSON: what the quick way takes, what it leaves to the slow one, and that both agree."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Array
from service.codec.json_tensor import parse_data
from service.config.limits import Limits
from service.errors import ServiceError
from tests.cases import check_each

FLOAT32 = np.dtype(np.float32)
LIMITS = Limits(tensor_elements=100)


def parse(data: Any, shape: tuple[int, ...] | None = None, dtype: np.dtype[Any] = FLOAT32) -> Any:
    return parse_data(data, shape, dtype, LIMITS, "input")


def check_refused(data: Any, code: str, dtype: np.dtype[Any] = FLOAT32) -> None:
    with pytest.raises(ServiceError) as caught:
        parse(data, dtype=dtype)
    assert caught.value.code == code


@pytest.mark.parametrize("data", [[], [[]], [0, 1], [0.5, 1], [[1, 2.5], [3, 4]], [[[1]], [[2]]]])
def test_lists_of_numbers_become_floats_of_their_nesting(data: list[Any]) -> None:
    array = parse(data)
    assert array.dtype == FLOAT32
    np.testing.assert_array_equal(array, np.array(data, np.float32))


def test_flat_list_takes_the_shape_that_is_given() -> None:
    assert parse([1, 2, 3, 4, 5, 6], (2, 3)).tolist() == [[1, 2, 3], [4, 5, 6]]


def test_what_is_no_number_is_refused_wherever_it_stands() -> None:
    def check(case: tuple[object, int]) -> None:
        value, position = case
        data: list[Any] = [2.5, 0, 1, 7]
        data[position] = value
        check_refused(data, "invalid_tensor")
        check_refused([data, [1, 2, 3, 4]], "invalid_tensor")

    check_each(product([True, False, "1.5", None, {}, [1]], range(4)), check)


@pytest.mark.parametrize("zeros", [0, 2, 90])
def test_booleans_are_found_among_few_and_many_zeros(zeros: int) -> None:
    check_refused([0.0] * zeros + [0.5] * 9 + [True], "invalid_tensor")


def test_names_of_what_is_not_finite_are_taken() -> None:
    np.testing.assert_array_equal(parse(["NaN", 1, "-Infinity"]), np.array([np.nan, 1, -np.inf], np.float32))


def test_numbers_beyond_the_dtype_are_refused() -> None:
    check_refused([1e39], "out_of_range")
    check_refused([10**400], "out_of_range", np.dtype(np.float64))
    check_refused([float("inf")], "invalid_tensor", np.dtype(np.int64))
    check_refused([float("nan")], "invalid_tensor", np.dtype(np.int64))


@pytest.mark.parametrize("data", [[1.5] * 101, [[1.5] * 51] * 2])
def test_too_many_numbers_are_refused(data: list[Any]) -> None:
    check_refused(data, "tensor_too_large")


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(width=32) | st.integers(-(2**24), 2**24), min_size=1, max_size=20),
    st.sampled_from([np.float16, np.float32, np.float64]),
)
def test_every_number_is_rounded_once(data: list[float], dtype: type) -> None:
    with np.errstate(over="ignore"):
        expected: Array = np.array(data, np.float64).astype(dtype)
    if np.isinf(expected[np.isfinite(np.array(data, np.float64))]).any():
        check_refused(data, "out_of_range", np.dtype(dtype))
    else:
        np.testing.assert_array_equal(parse(data, dtype=np.dtype(dtype)), expected)
