"""Distinguishing the operands of an exported attention. Lengths: 5 queries, 7 keys; batch 3; 2 heads; 8 features."""

from collections.abc import Sequence

import numpy as np
import pytest

from engine.dtypes import Array
from engine.kernels.attention_operands import Layout, place_operands

LAYOUT = Layout(2, (8, 8, 8), batch_first=False)
QUERY, KEYS = (5, 3, 8), (7, 3, 8)
SCORES, EACH_HEAD, PADDING = (5, 7), (6, 5, 7), (3, 7)


def places(
    *shapes: Sequence[int], bools: Sequence[int] = (), named: bool = False, layout: Layout = LAYOUT
) -> tuple[int | None, ...]:
    arrays: list[Array] = [
        np.empty(shape, np.bool_ if place in bools else np.float32) for place, shape in enumerate(shapes)
    ]
    return tuple(place_operands(arrays, named, layout))


def test_one_sequence_is_all_three() -> None:
    assert places(QUERY) == (0, 0, 0, None, None)


def test_the_second_of_two_sequences_is_key_and_value() -> None:
    assert places(QUERY, KEYS) == (0, 1, 1, None, None)


def test_widths_distinguish_key_from_value() -> None:
    layout = Layout(2, (8, 8, 6), batch_first=False)
    assert places(QUERY, (5, 3, 6), layout=layout) == (0, 0, 1, None, None)
    layout = Layout(2, (8, 6, 8), batch_first=False)
    assert places(QUERY, (5, 3, 6), layout=layout) == (0, 1, 0, None, None)


@pytest.mark.parametrize("mask", [SCORES, EACH_HEAD])
def test_a_mask_of_scores(mask: tuple[int, ...]) -> None:
    assert places(QUERY, KEYS, mask, named=True) == (0, 1, 1, 2, None)
    assert places(QUERY, KEYS, KEYS, mask, named=True) == (0, 1, 2, 3, None)


def test_a_mask_of_keys_that_goes_by_the_name_of_the_other() -> None:
    assert places(QUERY, KEYS, PADDING, named=True) == (0, 1, 1, None, 2)


def test_masks_of_bools_come_first_and_a_sequence_is_called_mask() -> None:
    assert places(PADDING, QUERY, KEYS, bools=[0], named=True) == (1, 2, 2, None, 0)
    assert places(PADDING, SCORES, QUERY, KEYS, bools=[0, 1], named=True) == (2, 3, 3, 1, 0)


def test_two_masks_in_either_order() -> None:
    assert places(QUERY, KEYS, SCORES, PADDING, named=True) == (0, 1, 1, 2, 3)
    assert places(QUERY, KEYS, PADDING, SCORES, named=True) == (0, 1, 1, 3, 2)
    assert places(QUERY, KEYS, PADDING, EACH_HEAD, named=True) == (0, 1, 1, 3, 2)


def test_a_mask_as_wide_as_a_sequence() -> None:
    """Eight keys: the last extent of a mask is that of a sequence as well."""
    assert places(QUERY, (8, 3, 8), (6, 5, 8), named=True) == (0, 1, 1, 2, None)
    assert places((5, 8), (8, 8), (5, 8), named=True) == (0, 1, 1, 2, None)


def test_without_a_batch() -> None:
    assert places((5, 8), (7, 8), (5, 7), named=True) == (0, 1, 1, 2, None)
    assert places((5, 8), (7, 8), (2, 5, 7), named=True) == (0, 1, 1, 2, None)
    assert places((5, 8), (7, 8), (7,), named=True) == (0, 1, 1, None, 2)


@pytest.mark.parametrize(
    ("shapes", "bools"), [([QUERY] * 4, []), ([QUERY, SCORES, SCORES, SCORES], []), ([QUERY], [0]), ([], [])]
)
def test_refused(shapes: list[tuple[int, ...]], bools: list[int]) -> None:
    with pytest.raises(ValueError, match="sequences|float"):
        places(*shapes, bools=bools)
