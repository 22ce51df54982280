"""Draws what a model has found on the picture that it was shown."""

from collections.abc import Callable, Sequence
from io import BytesIO
from math import ceil, floor, isfinite

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from engine import Array

COLOURS = (
    (230, 159, 0),
    (86, 180, 233),
    (0, 158, 115),
    (240, 228, 66),
    (0, 114, 178),
    (213, 94, 0),
    (204, 121, 167),
)
"""Okabe and Ito's colours, which colour-blind people distinguish ("Color Universal Design", 2008)."""
_INK = (0, 0, 0)
_PAPER = (255, 255, 255)
_MASK_OPACITY = 0.45
_HEAT_OPACITY = 0.75
_RED, _BLUE = (213, 40, 0), (0, 90, 200)
_LONGEST_TEXT = 60
"""Maximum characters of a text that are drawn."""

Point = tuple[float, float]


def colour_of(index: int) -> tuple[int, int, int]:
    """Return the colour of a class."""
    return COLOURS[index % len(COLOURS)]


class Drawing:
    """A picture that is drawn on. Lines and letters are as large as the picture's size asks for.

    Coordinates are those of the original picture, in pixels from its upper left corner, whatever the size at which it
    is drawn.

    Args:
        pixels: uint8 (height, width, 3), the picture as it is drawn.
        size: width and height of the original picture.
    """

    def __init__(self, pixels: Array, size: tuple[int, int]) -> None:
        self._image = Image.fromarray(pixels)
        self._scale = self._image.width / size[0], self._image.height / size[1]
        side = min(self._image.size)
        self.line_width = max(1, round(side / 200))
        self._letters = max(9, min(round(side / 28), round(self._image.width / 12)))
        self._font = ImageFont.load_default(self._letters)
        self._pen = ImageDraw.Draw(self._image)

    def box(self, corners: tuple[float, float, float, float], text: str, index: int) -> None:
        """Draw a box, and a text at its upper edge.

        Args:
            corners: left, top, right and bottom.
            text: what is in it.
            index: class, which chooses the colour.
        """
        (left, top), (right, bottom) = self._points([corners[:2], corners[2:]])
        right, bottom = max(left, right), max(top, bottom)
        self._pen.rectangle((left, top, right, bottom), outline=colour_of(index), width=self.line_width)
        self._label(left, top, text, index)

    def outline(self, corners: Sequence[Point], text: str, index: int) -> None:
        """Draw lines between corners, and a text at the uppermost one.

        Args:
            corners: x and y of each, in order.
            text: what is within them.
            index: chooses the colour.
        """
        places = self._points(corners)
        self._pen.line([*places, places[0]], fill=colour_of(index), width=self.line_width)
        if text:
            self._label(*min(places, key=lambda place: place[1]), text, index)

    def points(self, points: Sequence[Point], lines: Sequence[tuple[int, int]], index: int) -> None:
        """Draw points, and lines between pairs of them; those that are no numbers are left out.

        Args:
            points: x and y of each.
            lines: pairs of numbers of points.
            index: chooses the colour.
        """
        places = self._points(points)
        for first, second in lines:
            ends = places[first], places[second]
            if all(isfinite(value) for end in ends for value in end):
                self._pen.line(ends, fill=colour_of(index), width=self.line_width)
        radius = self.line_width * 1.5
        for number, (x, y) in enumerate(places):
            if isfinite(x) and isfinite(y):
                spot = (x - radius, y - radius, x + radius, y + radius)
                self._pen.ellipse(spot, fill=colour_of(number), outline=_INK)

    def mask(self, mask: Array, index: int) -> None:
        """Colour the pixels of a mask.

        Args:
            mask: bool (height, width) of the original picture.
            index: class, which chooses the colour.
        """
        whole = (0.0, 0.0, float(mask.shape[1]), float(mask.shape[0]))
        self.part_of_mask(whole, lambda rows, columns: mask[rows[:, None], columns], index)

    def part_of_mask(
        self, corners: tuple[float, float, float, float], sample: Callable[[Array, Array], Array], index: int
    ) -> None:
        """Colour the pixels of a mask that has none outside a box.

        Args:
            corners: left, top, right and bottom of the box.
            sample: returns for rows and columns of the original picture, both in ascending order, which of their pixels
                belong to the mask: bool (rows, columns).
            index: class, which chooses the colour.
        """
        (left, top), (right, bottom) = self._points([corners[:2], corners[2:]])
        x = np.arange(max(0, floor(left)), min(self._image.width, ceil(right)))
        y = np.arange(max(0, floor(top)), min(self._image.height, ceil(bottom)))
        if not len(x) or not len(y):
            return
        columns, rows = (
            ((places + 0.5) / scale).astype(np.int64)
            for places, scale in zip((x, y), self._scale, strict=True)
        )
        cover = Image.fromarray(sample(rows, columns) * np.uint8(round(255 * _MASK_OPACITY)))
        place = int(x[0]), int(y[0]), int(x[-1]) + 1, int(y[-1]) + 1
        self._image.paste(colour_of(index), place, cover)

    def heatmap(self, values: Array, corners: tuple[float, float, float, float]) -> None:
        """Make the picture grey, and colour a part of it: red where values are positive, blue where negative.

        Args:
            values: float (rows, columns), spread over the part; the largest has the strongest colour.
            corners: left, top, right and bottom of the part.
        """
        (left, top), (right, bottom) = self._points([corners[:2], corners[2:]])
        place = round(left), round(top)
        size = max(1, round(right) - place[0]), max(1, round(bottom) - place[1])
        share = np.nan_to_num(values / (np.abs(values).max(initial=0.0) or 1.0))
        self._image.paste(self._image.convert("L").convert(self._image.mode))
        for sign, colour in ((1, _RED), (-1, _BLUE)):
            opacity = np.uint8(np.clip(sign * share, 0, 1) * (255 * _HEAT_OPACITY))
            cover = Image.fromarray(opacity).resize(size, Image.Resampling.BILINEAR)
            self._image.paste(colour, place, cover)

    def bars(self, rows: Sequence[tuple[str, float, int]]) -> None:
        """Draw a bar for each class on the lower part of the picture, most probable first.

        Args:
            rows: label, probability from 0 to 1, and class of each.
        """
        height = self._text_size("Ag")[1] + 2 * self.line_width
        fitting = max(1, self._image.height // (2 * height))
        top = self._image.height - height * min(len(rows), fitting)
        for number, (label, probability, index) in enumerate(rows[:fitting]):
            share = min(max(probability, 0.0), 1.0) if isfinite(probability) else 0.0
            y = top + number * height
            self._pen.rectangle((0, y, self._image.width, y + height), fill=_PAPER)
            self._pen.rectangle((0, y, share * self._image.width, y + height - 2), fill=colour_of(index))
            self._pen.text(
                (2 * self.line_width, y), f"{_shortened(label)} {probability:.2f}", _INK, self._font
            )

    def encode(self) -> bytes:
        """Return the picture as PNG."""
        target = BytesIO()
        self._image.save(target, "PNG", compress_level=3)
        return target.getvalue()

    def _points(self, points: Sequence[Sequence[float]]) -> list[Point]:
        return [(x * self._scale[0], y * self._scale[1]) for x, y in points]

    def _label(self, left: float, top: float, text: str, index: int) -> None:
        """Write a text above a place, below it where there is no room, and within the picture."""
        text = _shortened(text)
        pad = self.line_width
        width, height = self._text_size(text)
        width, height = width + 2 * pad, height + 2 * pad
        y = top - height if top >= height else top
        x = max(0.0, min(left, self._image.width - width))
        self._pen.rectangle((x, y, x + width, y + height), fill=colour_of(index))
        self._pen.text((x + pad, y + pad), text, _INK, self._font)

    def _text_size(self, text: str) -> tuple[float, int]:
        """Return the width of a text, and the height of any line of text."""
        return self._pen.textlength(text, self._font), round(self._letters * 1.2)


def _shortened(text: str) -> str:
    """Return a text as one line that is not too long."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TEXT else line[: _LONGEST_TEXT - 1] + "…"
