"""What the model is measured on: held-out scans, and pictures of digits that a script drew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from PIL import Image

from .drawings import dark_on_light, draw_style, font_digit, pen_digit, scan_digit
from .shapes import EXAM

SIDE = 28
CANVAS_SIDES = (28, 56, 112, 280)
REPEATS = 20  # drawings of each digit per source, polarity and canvas side


class Question(NamedTuple):
    """One picture, its digit, and what kind of picture it is."""

    picture: Image.Image
    digit: int
    source: str
    polarity: str
    side: int


def prepare(picture: Image.Image) -> np.ndarray:
    """A picture as the network sees it, (28, 28) of values 0 to 1: what model.toml asks of the server.

    Grey, resized to 28x28 whatever its shape (bilinear, antialiased where it shrinks), divided by 255.
    """
    small = picture.convert("L").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return np.asarray(small, dtype=np.float32) / 255


def scan_picture(scan: np.ndarray) -> Image.Image:
    """An 8x8 scan (0 to 1) as an 8x8 grey picture."""
    return Image.fromarray(np.round(scan * 255).astype(np.uint8))


def prepare_array(scan: np.ndarray) -> np.ndarray:
    """An 8x8 scan (0 to 1) enlarged as floats, without the rounding of a picture in between."""
    return np.asarray(
        Image.fromarray(scan.astype(np.float32)).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    )


def questions(scans: np.ndarray, digits: np.ndarray, seed: int) -> Iterator[Question]:
    """Script-made pictures of three sources, in both polarities and on canvases of four sizes.

    "scan": held-out scans enlarged, cut to crisp edges, laid anywhere on the canvas; "pen": strokes along the EXAM
    shapes; "font": glyphs of pillow's built-in font. None of the three is trained on.
    """
    rng = np.random.default_rng(seed)
    for side in CANVAS_SIDES:
        for polarity in ("light on dark", "dark on light"):
            for digit in np.repeat(np.arange(10), REPEATS).tolist():
                scan = scans[rng.choice(np.flatnonzero(digits == digit))]
                drawn = {
                    "scan": scan_digit(scan, side, draw_style(rng)),
                    "pen": pen_digit(EXAM[digit], side, draw_style(rng), rng),
                    "font": font_digit(digit, side, draw_style(rng)),
                }
                for source, picture in drawn.items():
                    turned = dark_on_light(picture) if polarity == "dark on light" else picture
                    yield Question(turned, digit, source, polarity, side)
