"""Hard drawings: what stands about a digit that was drawn in earnest, on canvases of 56 to 280 pixels.

They only measure. What training images get (`surroundings.py`) is drawn by other code, about other shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from .drawings import Style, dark_on_light, draw_style, font_digit, pen_digit, scan_digit
from .shapes import EXAM

SIDES = (56, 112, 280)
THIN, USUAL, THICK = (0.022, 0.04), (0.05, 0.1), (0.13, 0.2)
Rng = np.random.Generator


class HardDrawing(NamedTuple):
    """A picture, its digit, and what makes it hard."""

    picture: Image.Image
    digit: int
    kind: str


def frame(ink: np.ndarray, rng: Rng) -> np.ndarray:
    """A frame in the colour of the ink, at the edge or a little inside.

    Like all of these, it takes ink (side, side) of 0 to 1 and returns brightness, which may go beyond that.
    """
    side = len(ink)
    picture = Image.fromarray((ink * 255).astype(np.uint8))
    gap = round(side * rng.choice((0, rng.uniform(0.01, 0.06))))
    width = max(1, round(side * rng.uniform(0.015, 0.06)))
    ImageDraw.Draw(picture).rectangle((gap, gap, side - 1 - gap, side - 1 - gap), outline=255, width=width)
    return np.asarray(picture, np.float32) / 255


def double_frame(ink: np.ndarray, rng: Rng) -> np.ndarray:
    """A thin frame within a thick one."""
    side = len(ink)
    picture = Image.fromarray((ink * 255).astype(np.uint8))
    pen = ImageDraw.Draw(picture)
    thick = max(1, round(side * rng.uniform(0.03, 0.05)))
    pen.rectangle((0, 0, side - 1, side - 1), outline=int(rng.uniform(150, 255)), width=thick)
    gap = thick + max(2, round(side * 0.04))
    pen.rectangle((gap, gap, side - 1 - gap, side - 1 - gap), outline=255, width=max(1, side // 90))
    return np.asarray(picture, np.float32) / 255


def vignette(ink: np.ndarray, rng: Rng) -> np.ndarray:
    """Corners that turn to the brightness of the ink."""
    line = np.linspace(-1, 1, len(ink))
    distance = np.sqrt(line[:, None] ** 2 + line[None] ** 2) / np.sqrt(2)
    ground = rng.uniform(0.35, 0.75) * distance ** rng.uniform(1.5, 3)
    return ground + (0.95 - ground) * ink


def shadow(ink: np.ndarray, rng: Rng) -> np.ndarray:
    """A ground that changes from one side of the canvas to the other."""
    line = np.linspace(0, 1, len(ink))
    angle = rng.uniform(0, 2 * np.pi)
    along = np.cos(angle) * (line[None] - 0.5) + np.sin(angle) * (line[:, None] - 0.5)
    ground = rng.uniform(0.3, 0.5) * (along / 0.7 + 1) / 2
    return ground + (1 - ground) * ink


def squared_paper(ink: np.ndarray, rng: Rng) -> np.ndarray:
    """Ruled or squared paper."""
    side = len(ink)
    lines = np.zeros_like(ink)
    step, width = max(5, round(side * rng.uniform(0.1, 0.22))), max(1, side // 80)
    for offset in range(width):
        lines[step // 2 + offset :: step] = 1
        if rng.random() < 0.5:
            lines[:, step // 2 + offset :: step] = 1
    return np.maximum(ink, lines * rng.uniform(0.25, 0.45))


def noise(ink: np.ndarray, rng: Rng) -> np.ndarray:
    """Grain over a picture of little contrast."""
    return 0.3 + 0.4 * ink + rng.normal(0, 0.1, ink.shape)


def stains(ink: np.ndarray, rng: Rng) -> np.ndarray:
    """A few spots of ink."""
    side = len(ink)
    picture = Image.fromarray((ink * 255).astype(np.uint8))
    for _ in range(4):
        x, y = rng.uniform(0, side, 2)
        radius = side * rng.uniform(0.01, 0.035)
        ImageDraw.Draw(picture).ellipse(
            (x - radius, y - radius, x + radius, y + radius), fill=int(rng.uniform(120, 255))
        )
    return np.asarray(picture, np.float32) / 255


def blur(ink: np.ndarray, rng: Rng) -> np.ndarray:
    """A picture out of focus."""
    picture = Image.fromarray((ink * 255).astype(np.uint8))
    blurred = picture.filter(ImageFilter.GaussianBlur(len(ink) * rng.uniform(0.015, 0.03)))
    return np.asarray(blurred, np.float32) / 255


KINDS: dict[str, tuple[Callable[[np.ndarray, Rng], np.ndarray], tuple[float, float]]] = {
    "frame": (frame, USUAL),
    "double frame": (double_frame, USUAL),
    "vignette, thin pen": (vignette, THIN),
    "shadow, thin pen": (shadow, THIN),
    "squared paper": (squared_paper, USUAL),
    "noise, low contrast": (noise, USUAL),
    "stains, thick pen": (stains, THICK),
    "blur": (blur, USUAL),
}
"""What makes a drawing hard, and the pen's width in parts of the canvas."""


def hard_drawings(scans: np.ndarray, digits: np.ndarray, seed: int) -> Iterator[HardDrawing]:
    """Yield 960 drawings: of each kind and on each side each digit twice, in both polarities.

    Each is drawn as pen strokes, as a held-out scan or as a glyph.
    """
    rng = np.random.default_rng(seed)
    for kind, (surround, pen) in KINDS.items():
        for side in SIDES:
            for digit in np.repeat(np.arange(10), 2).tolist():
                style = _inside(draw_style(rng)._replace(pen=rng.uniform(*pen)), rng)
                scan = scans[rng.choice(np.flatnonzero(digits == digit))]
                for turned in (False, True):
                    drawn = (
                        pen_digit(EXAM[digit], side, style, rng),
                        scan_digit(scan, side, style),
                        font_digit(digit, side, style),
                    )[rng.integers(3)]
                    values = np.clip(surround(np.asarray(drawn, np.float32) / 255, rng), 0, 1)
                    picture = Image.fromarray(np.round(values * 255).astype(np.uint8))
                    yield HardDrawing(dark_on_light(picture) if turned else picture, digit, kind)


def _inside(style: Style, rng: Rng) -> Style:
    """Leave room about the digit: 50 to 70 % of the canvas high, some way off its edges."""
    height = rng.uniform(0.5, 0.7)
    width = height * style.aspect
    return style._replace(
        height=height, left=rng.uniform(0.14, 0.86 - width), top=rng.uniform(0.14, 0.86 - height)
    )
