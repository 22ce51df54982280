"""Regions of a map and rectangles around them, against a flood fill and all directions."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from engine import Array
from service.tasks.map_regions import Rectangle, find_regions, smallest_rectangle


def flooded(mask: Array) -> list[list[tuple[int, int]]]:
    """Return the pixels of each region as column and row, the largest region first."""
    left, found = set(zip(*np.nonzero(mask), strict=True)), []
    while left:
        waiting, region = deque([min(left)]), []
        left.discard(waiting[0])
        while waiting:
            row, column = waiting.popleft()
            region.append((int(column), int(row)))
            near = {(row + y, column + x) for y in (-1, 0, 1) for x in (-1, 0, 1)} & left
            left -= near
            waiting.extend(near)
        found.append(region)
    return sorted(found, key=len, reverse=True)


def ends(pixels: list[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the first and the last pixel of each row."""
    rows = {row: [column for column, other in pixels if other == row] for _, row in pixels}
    return {(end, row) for row, columns in rows.items() for end in (min(columns), max(columns))}


@settings(max_examples=100)
@given(arrays.arrays(bool, st.tuples(st.integers(1, 12), st.integers(1, 12))), st.integers(1, 60))
def test_regions_are_those_of_a_flood_fill(mask: Array, most: int) -> None:
    found = [{(int(x), int(y)) for x, y in points} for points in find_regions(mask, most)]
    wanted = [ends(region) for region in flooded(mask)]
    assert len(found) == min(most, len(wanted))
    assert all(region in wanted for region in found)
    assert len(found) < len(wanted) or sorted(map(sorted, found)) == sorted(map(sorted, wanted))


def test_a_spiral_is_one_region_and_noise_is_joined_in_moderate_time() -> None:
    side = 301
    spiral = np.zeros((side, side), bool)
    for turn in range(0, side // 2, 4):
        last = side - 1 - turn
        spiral[turn, turn : last + 1] = spiral[turn : last + 1, last] = spiral[last, turn + 2 : last + 1] = (
            True
        )
        spiral[turn + 4 : last + 1, turn + 2] = True
        spiral[turn + 4, turn + 2 : turn + 5] = True
    assert len(find_regions(spiral, 1000)) == len(flooded(spiral))
    noise = np.random.default_rng(0).random((960, 960)) < 0.3
    assert len(find_regions(noise, 1000)) == 1000


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=20))
def test_no_rectangle_of_any_direction_is_smaller(points: list[tuple[int, int]]) -> None:
    places = np.array(points, float)
    found = smallest_rectangle(places)
    centred = places - found.centre
    for axis, side in zip((found.along, found.across), found.sides, strict=True):
        assert abs(centred @ axis).max() <= side / 2 + 1e-9
    for angle in np.linspace(0, np.pi / 2, 181):
        along = np.array([np.cos(angle), np.sin(angle)])
        spans = [np.ptp(places @ axis) for axis in (along, [-along[1], along[0]])]
        assert found.sides.prod() <= spans[0] * spans[1] + 1e-6


@pytest.mark.parametrize("degrees", [0, 20, -40])
def test_corners_begin_at_the_upper_left_and_go_clockwise(degrees: int) -> None:
    angle = np.radians(degrees)
    along = np.array([np.cos(angle), np.sin(angle)])
    rectangle = Rectangle(np.array([50.0, 40.0]), along, np.array([30.0, 8.0])).grown(1)
    offsets = np.array([[-16, -5], [16, -5], [16, 5], [-16, 5]]) @ np.array([along, rectangle.across])
    np.testing.assert_allclose(rectangle.corners(), np.add(offsets, (50, 40)))


def test_the_mean_is_that_of_the_pixels_within() -> None:
    values = np.zeros((20, 30), np.float32)
    values[5:10, 10:20] = 1
    assert Rectangle(np.array([14.5, 7.0]), np.array([1.0, 0.0]), np.array([9.0, 4.0])).mean(values) == 1
    half = Rectangle(np.array([9.5, 7.0]), np.array([0.0, 1.0]), np.array([4.0, 9.0]))
    assert half.mean(values) == pytest.approx(0.5)
    assert Rectangle(np.array([0.0, 0.0]), np.array([1.0, 0.0]), np.array([4.0, 4.0])).mean(values) == 0
