"""Scenes: cluttered pictures with digits of different sizes in them, and where each digit is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from ink import VISIBLE, draw_ink, draw_printed
from PIL import Image, ImageFilter

from .clutter import add_clutter, add_lines, draw_colour, draw_ground, light

HEIGHTS = (0.055, 0.5)  # of a digit, in parts of the picture's longer side
MAX_DIGITS = 16
MAX_PRACTICE_DIGITS = 28  # of a scene to train on: the more, the more there is to learn from one pass
CONTRAST = 60  # least difference of brightness between ink and ground, of 255
UNEVEN = 35  # deviation of the ground's brightness from where on no ink would show everywhere
BRIGHTNESS = np.array((0.299, 0.587, 0.114), np.float32)
TRIES = 12


@dataclass(frozen=True)
class Scene:
    """A picture and its truth.

    Attributes:
        picture: RGB.
        boxes: (digits, 4) float32: left, top, right and bottom of the visible ink, in pixels.
        digits: (digits,) int64, 0 to 9.
        strokes: (height, width) bool: the pixels that show a digit's ink.
    """

    picture: Image.Image
    boxes: np.ndarray
    digits: np.ndarray
    strokes: np.ndarray


class SceneMaker:
    """Makes scenes of some scans.

    Args:
        scans: (n, 8, 8) of values 0 to 1.
        digits: (n,) what they show.
        glyphs: printed digits, 0 to 9 in turn, each (rows, columns) of values 0 to 1. With any, scenes are to train
            on: one digit in two is printed, the others are bent by chance, there are more of them, less clutter, and
            light that falls off.
    """

    def __init__(self, scans: np.ndarray, digits: np.ndarray, glyphs: Sequence[np.ndarray] = ()) -> None:
        self.scans = scans
        self.digits = digits
        self.glyphs = glyphs
        self.most = MAX_PRACTICE_DIGITS if glyphs else MAX_DIGITS

    def __call__(
        self, width: int, height: int, rng: np.random.Generator, heights: tuple[float, float] = HEIGHTS
    ) -> Scene:
        """Make a scene of `width` x `height` pixels with 1 to 16 digits, or 28, whose boxes do not overlap.

        A digit is between `heights` of the longer side high, small ones more often than large ones.
        """
        picture = draw_ground(width, height, rng)
        if self.glyphs:
            add_clutter(picture, rng, spared=0.35)
        else:
            add_clutter(picture, rng)
        canvas = np.array(picture, np.float32)
        if self.glyphs and rng.random() < 0.5:
            light(canvas, rng)
        strokes = np.zeros((height, width), bool)
        boxes: list[tuple[int, int, int, int]] = []
        digits: list[int] = []
        for _ in range(int(rng.integers(1, self.most + 1))):
            is_printed = bool(self.glyphs) and rng.random() < 0.5
            chosen = int(rng.integers(len(self.glyphs if is_printed else self.scans)))
            ink = self._draw(chosen, is_printed, self._height(canvas, heights, rng), rng)
            box = _add(ink, canvas, strokes, boxes, rng)
            if box is not None:
                boxes.append(box)
                digits.append(chosen % 10 if is_printed else int(self.digits[chosen]))
        return Scene(
            _expose(canvas, rng),
            np.array(boxes, np.float32).reshape(-1, 4),
            np.array(digits, np.int64),
            strokes,
        )

    def _height(self, canvas: np.ndarray, heights: tuple[float, float], rng: np.random.Generator) -> int:
        longer, shorter = max(canvas.shape[:2]), min(canvas.shape[:2])
        low, high = (np.log(part * longer) for part in heights)
        return max(6, round(min(float(np.exp(rng.uniform(low, high))), 0.8 * shorter)))

    def _draw(self, chosen: int, is_printed: bool, height: int, rng: np.random.Generator) -> np.ndarray:
        if is_printed:
            return draw_printed(self.glyphs[chosen], height, rng)
        return draw_ink(self.scans[chosen], height, rng, bent=bool(self.glyphs))


def _add(
    ink: np.ndarray,
    canvas: np.ndarray,
    strokes: np.ndarray,
    boxes: list[tuple[int, int, int, int]],
    rng: np.random.Generator,
) -> tuple[int, int, int, int] | None:
    """Draw one digit where there is room for it, and return its box; None where there is no room."""
    rows, columns = ink.shape
    for _ in range(TRIES):
        if columns >= canvas.shape[1] or rows >= canvas.shape[0]:
            return None
        left = int(rng.integers(canvas.shape[1] - columns))
        top = int(rng.integers(canvas.shape[0] - rows))
        box = (left, top, left + columns, top + rows)
        if not any(_meet(box, other, 0.12 * rows) for other in boxes):
            _lay(canvas, strokes, ink, box, rng)
            return box
    return None


def _meet(box: tuple[int, int, int, int], other: tuple[int, int, int, int], gap: float) -> bool:
    """Return whether two boxes overlap, or come nearer to each other than `gap` pixels."""
    apart_x = box[0] >= other[2] + gap or other[0] >= box[2] + gap
    apart_y = box[1] >= other[3] + gap or other[1] >= box[3] + gap
    return not (apart_x or apart_y)


def _lay(
    canvas: np.ndarray,
    strokes: np.ndarray,
    ink: np.ndarray,
    box: tuple[int, int, int, int],
    rng: np.random.Generator,
) -> None:
    """Blend ink into the canvas (height, width, 3): straight on what is there, or on a card of its own."""
    left, top, right, bottom = box
    place = canvas[top:bottom, left:right]
    if rng.random() < 0.25 or (place @ BRIGHTNESS).std() > UNEVEN:
        _lay_card(canvas, box, rng)
    ground = place.mean((0, 1))
    colour = _ink_colour(ground, rng)
    place += (colour - place) * ink[..., None]
    strokes[top:bottom, left:right] |= ink >= VISIBLE


def _lay_card(canvas: np.ndarray, box: tuple[int, int, int, int], rng: np.random.Generator) -> None:
    """Put a card of one colour under a digit."""
    left, top, right, bottom = box
    reach = (bottom - top) * rng.uniform(0, 0.11, 4)
    x0, y0 = max(0, round(left - reach[0])), max(0, round(top - reach[1]))
    x1, y1 = round(right + reach[2]), round(bottom + reach[3])
    canvas[y0:y1, x0:x1] = draw_colour(rng)


def _ink_colour(ground: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a colour whose brightness differs from the ground's; on one try in three black or white."""
    if rng.random() < 1 / 3:
        return np.full(3, 255.0 if ground @ BRIGHTNESS < 128 else 0.0)
    while True:
        colour = np.array(draw_colour(rng), np.float64)
        if abs((colour - ground) @ BRIGHTNESS) >= CONTRAST:
            return colour


def _expose(canvas: np.ndarray, rng: np.random.Generator) -> Image.Image:
    """Return the picture: with thin lines over it, a little blur and noise on some."""
    picture = Image.fromarray(np.clip(canvas, 0, 255).astype(np.uint8))
    if rng.random() < 0.15:
        add_lines(picture, rng, int(rng.integers(1, 4)))
    if rng.random() < 0.2:
        picture = picture.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 1) * max(picture.size) / 320))
    if rng.random() < 0.6:
        noise = rng.standard_normal((picture.height, picture.width, 1), np.float32) * np.float32(
            rng.uniform(0, 16)
        )
        picture = Image.fromarray(np.clip(np.asarray(picture) + noise, 0, 255).astype(np.uint8))
    return picture
