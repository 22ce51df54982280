"""The classification extension."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from service.errors import ServiceError
from service.v2.classification import classify

LABELS = ["cat", "dog", "cow"]


def test_largest_elements_are_named_with_value_index_and_label() -> None:
    found = classify(np.array([[0.25, 0.5, 0.125], [3, 2, 1]], np.float32), 2, LABELS, "out")
    assert found.tolist() == [["0.5:1:dog", "0.25:0:cat"], ["3.0:0:cat", "2.0:1:dog"]]


def test_labels_are_left_out_where_they_are_not_those_of_the_classes() -> None:
    assert classify(np.array([[1, 2]], np.int64), 1, LABELS, "out").tolist() == [["2:1"]]
    assert classify(np.array([[1, 2]], np.int64), 1, None, "out").tolist() == [["2:1"]]


def test_more_classes_than_there_are() -> None:
    assert classify(np.array([5, 7], np.uint8), 1000, None, "out").tolist() == ["7:1", "5:0"]


def test_dimensions_behind_the_batch_are_one_row() -> None:
    assert classify(np.arange(8).reshape(2, 2, 2), 1, None, "out").tolist() == [["3:3"], ["7:3"]]


def test_nan_comes_last_and_infinities_are_numbers() -> None:
    row = np.array([[np.nan, -np.inf, np.inf, 0, np.nan]], np.float32)
    assert classify(row, 5, None, "out").tolist() == [["inf:2", "0.0:3", "-inf:1", "nan:0", "nan:4"]]
    assert classify(row, 3, None, "out").tolist() == [["inf:2", "0.0:3", "-inf:1"]]


def test_item_without_a_number_has_no_classes() -> None:
    rows = np.array([[0.5, np.nan], [np.nan, np.nan]], np.float32)
    assert classify(rows[:1], 1, LABELS[:2], "out").tolist() == [["0.5:0:cat"]]
    for array in (rows, rows.reshape(2, 2, 1), rows[1]):
        with pytest.raises(ServiceError, match="no score that is a number") as caught:
            classify(array, 1, LABELS[:2], "out")
        assert (caught.value.status, caught.value.code) == (400, "no_classes")
        assert caught.value.details == {"output": "out", "item": 1 if array.ndim > 1 else 0}


def test_empty_batch_and_no_classes() -> None:
    assert classify(np.zeros((0, 3), np.float32), 2, None, "out").shape == (0, 2)
    assert classify(np.zeros((2, 0), np.float32), 2, None, "out").shape == (2, 0)


@pytest.mark.parametrize("array", [np.array(1.0), np.array([True]), np.array([1j])])
def test_what_cannot_be_classified(array: np.ndarray) -> None:
    with pytest.raises(ServiceError, match="classified"):
        classify(array, 1, None, "out")


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 1.0, np.inf, np.nan]), min_size=1, max_size=12),
    st.integers(1, 14),
)
def test_order_is_that_of_a_plain_sort(values: list[float], count: int) -> None:
    assume(not np.isnan(values).all())
    keys = [
        (np.isnan(value), -value if not np.isnan(value) else 0, index) for index, value in enumerate(values)
    ]
    expected = [key[2] for key in sorted(keys)][:count]
    found = classify(np.array(values, np.float64), count, None, "out")
    assert [int(text.split(":")[1]) for text in found] == expected
