"""Parts that are cut out of pictures: boxes, and rectangles in any direction."""

import numpy as np
import pytest
from PIL import Image

from engine import Array
from service.images.whole import cut_parts

LINE = np.zeros((20, 60, 3), np.uint8)
LINE[:10, :, 0], LINE[:, :30, 1] = 200, 150
"""Red above, green at the left."""
CORNERS = np.array([(20, 30), (80, 30), (80, 50), (20, 50)], float)


def cut(pixels: Array, part: Array, degrees: int = 0, most: int = 1 << 20) -> Array:
    (image,) = cut_parts(pixels, [part], 0.0, [degrees], most)
    return np.asarray(image.opened, np.uint8)


def test_a_box_is_copied() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8)
    np.testing.assert_array_equal(cut(pixels, np.array([[3.2, 4.9], [10.5, 9.0]])), pixels[4:9, 3:11])


@pytest.mark.parametrize("angle", [0, 25, -40])
def test_a_rotated_line_lies_straight(angle: int) -> None:
    picture = Image.new("RGB", (100, 80), (90, 90, 90))
    picture.paste(Image.fromarray(LINE), (20, 30))
    rotated = np.asarray(picture.rotate(angle, Image.Resampling.BICUBIC))  # counterclockwise around (50, 40)
    turn = np.radians(-angle)
    matrix = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    found = cut(rotated, (CORNERS - (50, 40)) @ matrix + (50, 40)).astype(int)
    assert abs(np.subtract(found.shape[:2], LINE.shape[:2])).max() <= 1
    for row, column in ((5, 15), (5, 45), (15, 15), (15, 45)):
        assert abs(found[row, column] - LINE[row, column]).max() < 20


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_what_is_rotated_clockwise_is_turned_back(degrees: int) -> None:
    rotated = np.rot90(LINE, -degrees // 90).copy()
    box = np.array([[0, 0], [rotated.shape[1], rotated.shape[0]]], float)
    np.testing.assert_array_equal(cut(rotated, box, degrees), LINE)


def test_a_line_that_runs_from_the_top_to_the_bottom_is_laid_down() -> None:
    corners = np.array([(0, 0), (20, 0), (20, 60), (0, 60)], float)
    found = cut(np.rot90(LINE, -1).copy(), corners).astype(int)  # clockwise
    assert found.shape == LINE.shape
    assert abs(found[5, 15] - LINE[5, 15]).max() < 20


@pytest.mark.parametrize("size", [(120, 120), (1, 120), (120, 1)])
def test_a_part_of_too_many_pixels_is_scaled_down(size: tuple[int, int]) -> None:
    pixels = np.full((120, 120, 3), 90, np.uint8)
    width, height = size
    box = np.array([(0, 0), (width, height)], float)
    corners = np.array([(0, 0), (width, 0), (width, height), (0, height)], float)
    for part in (box, corners, 50 * corners):
        found = cut(pixels, part, most=100)
        assert 50 <= found.shape[0] * found.shape[1] <= 100
        assert found.shape[2] == 3
