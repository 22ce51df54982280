"""Differences of outputs, as they are worked out by hand."""

from math import inf, nan

import numpy as np
import pytest

from service.traffic.output_difference import compare_outputs

BIG = 2**60


@pytest.mark.parametrize(
    ("answered", "other", "absolute", "relative"),
    [
        ([1.0, -4.0], [1.0, -4.0], 0.0, 0.0),
        ([1.0, -4.0], [1.0, -3.0], 1.0, 0.25),
        ([0.0, 0.0], [0.0, 0.5], 0.5, 0.5),
        ([nan, 2.0], [nan, 2.0], 0.0, 0.0),
        ([nan, 2.0], [nan, 3.0], 1.0, 0.5),
        ([nan, 2.0], [1.0, 2.0], inf, inf),
        ([1.0, 2.0], [nan, 2.0], inf, inf),
        ([inf, -inf, 2.0], [inf, -inf, 1.0], 1.0, 0.5),
        ([inf], [-inf], inf, inf),
        ([inf], [5.0], inf, inf),
        ([], [], 0.0, 0.0),
        ([1.0], [1.0, 2.0], inf, inf),
    ],
)
def test_floats(answered: list[float], other: list[float], absolute: float, relative: float) -> None:
    found = compare_outputs([np.array(answered, np.float32)], [np.array(other, np.float32)])
    assert found == (absolute, relative)


def test_other_types() -> None:
    assert compare_outputs([np.array([BIG])], [np.array([BIG])])[0] == 0
    assert compare_outputs([np.array([BIG])], [np.array([BIG + 4096])])[0] == 4096
    assert compare_outputs([np.array([0, 255], np.uint8)], [np.array([255, 0], np.uint8)])[0] == 255
    assert compare_outputs([np.array([True])], [np.array([False])])[0] == 1
    assert compare_outputs([np.array([1 + 2j])], [np.array([1 - 1j])])[0] == 3
    assert compare_outputs([np.array(["a"])], [np.array(["a"])])[1] == 0
    assert compare_outputs([np.array(["a"])], [np.array(["b"])])[1] == inf


def test_the_worst_output_counts() -> None:
    one, two = np.array([1.0]), np.array([2.0])
    assert compare_outputs([one, two], [one, one])[1] == 0.5
    assert compare_outputs([one, two], [one])[1] == inf
    assert compare_outputs([one], [one.astype(np.float32)])[1] == inf
    assert compare_outputs([], [])[1] == 0
