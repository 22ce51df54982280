"""Rows of several calls are those of each, one after the other, whatever their shape and wherever they lie."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from engine import Array, Port
from service.repository.rows import batch_signature, count_rows, join, split
from tests.cases import check_each


def test_joined_rows_are_those_of_each_call() -> None:
    shapes: list[tuple[int, ...]] = [(), (3,), (2, 0), (1, 28, 28)]
    counts: list[tuple[int, ...]] = [(1, 1), (1, 3, 2), (5,)]
    check_each(product(shapes, counts, ["f4", "f8", "f2", "i8", "u1", "?", "c8"]), check_join)


def check_join(case: tuple[tuple[int, ...], tuple[int, ...], str]) -> None:
    row, counts, dtype = case
    generator = np.random.default_rng(0)
    calls = [{"in": (generator.random((count, *row)) * 100).astype(dtype)} for count in counts]
    joined = join(calls)["in"]
    expected = np.concatenate([call["in"] for call in calls])
    assert (joined.dtype, joined.flags.aligned) == (expected.dtype, True)
    np.testing.assert_array_equal(joined, expected)
    parts = split([joined], counts)
    assert parts is not None
    for (part,), call in zip(parts, calls, strict=True):
        np.testing.assert_array_equal(part, call["in"])


def test_rows_that_are_not_contiguous_are_joined_as_well() -> None:
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    calls: list[dict[str, Array]] = [
        {"a": whole[:2, ::2], "b": whole[:2]},
        {"a": whole[2:, ::2], "b": whole[2:]},
    ]
    joined = join(calls)
    np.testing.assert_array_equal(joined["a"], whole[:, ::2])
    np.testing.assert_array_equal(joined["b"], whole)


@pytest.mark.parametrize(
    ("shapes", "count"),
    [
        ([], 1),
        ([()], 1),
        ([(0, 2)], 0),
        ([(3, 2)], 3),
        ([(3, 2), (3,)], 3),
        ([(3, 2), (2, 2)], 1),
        ([(3,), ()], 1),
    ],
)
def test_rows_are_counted_where_all_inputs_have_as_many(shapes: list[tuple[int, ...]], count: int) -> None:
    assert count_rows({str(i): np.zeros(shape) for i, shape in enumerate(shapes)}) == count


@pytest.mark.parametrize(
    ("declared", "shape", "is_one"),
    [
        ((1, 3), (2, 3), True),
        ((None, None), (2, 3), True),
        ((1, 3), (2, 4), False),
        ((1, 3), (2, 3, 1), False),
        ((1,), (2,), True),
        ((1, 3), (0, 3), False),
        (None, (2,), False),
        ((), (), False),
    ],
)
def test_rows_of_the_declared_shape_can_be_joined(
    declared: Any, shape: tuple[int, ...], is_one: bool
) -> None:
    signature = batch_signature([Port("in", "a", declared, "f32")], {"a": np.zeros(shape, np.float32)})
    assert signature == (((shape[1:], np.dtype(np.float32)),) if is_one else None)
