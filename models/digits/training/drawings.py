"""Pictures of digits made by a script: pen strokes, glyphs of a font, enlarged 8x8 scans.

They measure how the model reads digits on canvases of any size, and make the sample pictures. Pen strokes also
join the training images, along shapes of their own. Needs numpy and pillow only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from .shapes import PRACTICE, Stroke

OVERSAMPLING = 4


class Style(NamedTuple):
    """How a digit lies on its canvas: all lengths are fractions of the canvas side."""

    height: float
    aspect: float
    pen: float
    angle: float
    slant: float
    left: float
    top: float
    wobble: float


def draw_style(rng: np.random.Generator, pen: tuple[float, float] = (0.05, 0.13)) -> Style:
    """A random style: digit 45 to 92 % of the canvas high, anywhere on it, tilted up to 14 degrees."""
    height = rng.uniform(0.45, 0.92)
    aspect = rng.uniform(0.6, 0.85)
    return Style(
        height=height,
        aspect=aspect,
        pen=rng.uniform(*pen) * (0.4 + 0.6 * height),
        angle=rng.uniform(-14, 14),
        slant=rng.uniform(-0.15, 0.2),
        left=rng.uniform(0.03, max(0.04, 0.97 - height * aspect)),
        top=rng.uniform(0.03, max(0.04, 0.97 - height)),
        wobble=0.022,
    )


def pen_digit(shapes: list[list[Stroke]], side: int, style: Style, rng: np.random.Generator) -> Image.Image:
    """Draw one of `shapes` with a round pen: light ink (255) on a dark ground (0), `side` pixels square."""
    shape = shapes[rng.integers(len(shapes))]
    big = side * OVERSAMPLING
    canvas = Image.new("L", (big, big), 0)
    pen = ImageDraw.Draw(canvas)
    radius = style.pen * big / 2
    for stroke in shape:
        wobbled = stroke + rng.normal(0, style.wobble, (len(stroke), 2))
        path = _place(_smooth(wobbled), style) * big
        pen.line([tuple(point) for point in path.tolist()], fill=255, width=max(1, round(2 * radius)))
        for x, y in path.tolist():
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
    return canvas.resize((side, side), Image.Resampling.BOX)


def practice_ink(digit: int, side: int, margin: float, rng: np.random.Generator) -> np.ndarray:
    """A pen drawing to train on: (side, side), 0 to 1, filling the canvas but for `margin` on each side."""
    height = 1 - 2 * margin
    aspect = rng.uniform(0.55, 1.0)
    style = Style(
        height=height,
        aspect=aspect,
        pen=float(np.exp(rng.uniform(*np.log((0.022, 0.19))))),
        angle=0,
        slant=0,
        left=0.5 - height * aspect / 2,
        top=margin,
        wobble=0.03,
    )
    picture = pen_digit(PRACTICE[digit], side, style, rng)
    return np.asarray(picture, dtype=np.float32) / 255


def printed_ink(glyph: np.ndarray, side: int, margin: float, rng: np.random.Generator) -> np.ndarray:
    """A printed digit to train on, from its glyph (rows, columns): (side, side), 0 to 1, `margin` above and below."""
    height = round(side * (1 - 2 * margin))
    width = round(height * glyph.shape[1] / glyph.shape[0] * rng.uniform(0.85, 1.15))
    width = min(max(2, width), side - 2)
    small = Image.fromarray(np.uint8(glyph * 255)).resize((width, height), Image.Resampling.BOX)
    ink = np.zeros((side, side), np.float32)
    top, left = (side - height) // 2, (side - width) // 2
    ink[top : top + height, left : left + width] = np.asarray(small, np.float32) / 255
    return ink


def font_digit(digit: int, side: int, style: Style) -> Image.Image:
    """Print `digit` in pillow's built-in font: light ink on a dark ground."""
    glyph = _crop_to_ink(_glyph(digit))
    return _lay(glyph, side, style)


def scan_digit(pixels: np.ndarray, side: int, style: Style) -> Image.Image:
    """Enlarge an 8x8 scan (0 to 1) to a crisp drawing and lay it on a larger canvas: light on dark.

    The enlarged scan is cut at a grey level, which turns its blur into the edges that a pen leaves.
    """
    framed = np.pad(np.round(pixels * 255).astype(np.uint8), 1)
    scan = Image.fromarray(framed).resize((320, 320), Image.Resampling.BICUBIC)
    level = 110 + 400 * (0.08 - style.pen)
    crisp = np.clip((np.asarray(scan, dtype=np.float32) - level) * 6 + 128, 0, 255).astype(np.uint8)
    return _lay(_crop_to_ink(Image.fromarray(crisp)), side, style)


def dark_on_light(picture: Image.Image) -> Image.Image:
    """The same drawing in black ink on white paper."""
    return picture.point(range(255, -1, -1))


def _smooth(points: np.ndarray, steps: int = 8) -> np.ndarray:
    """Catmull-Rom curve through `points` (n, 2)."""
    if len(points) == 2:
        return np.linspace(points[0], points[1], steps)
    padded = np.concatenate((2 * points[:1] - points[1:2], points, 2 * points[-1:] - points[-2:-1]))
    p0, p1, p2, p3 = (padded[i : len(padded) - 3 + i, None] for i in range(4))
    t = np.linspace(0, 1, steps)[None, :, None]
    curve = 0.5 * (
        2 * p1 + (p2 - p0) * t + (2 * p0 - 5 * p1 + 4 * p2 - p3) * t**2 + (3 * p1 - p0 - 3 * p2 + p3) * t**3
    )
    return np.asarray(curve.reshape(-1, 2))


def _place(points: np.ndarray, style: Style) -> np.ndarray:
    """Points of the unit square to canvas fractions."""
    centred = points - 0.5
    x = centred[:, 0] * style.aspect - style.slant * centred[:, 1]
    angle = np.radians(style.angle)
    turned = np.stack(
        (
            x * np.cos(angle) - centred[:, 1] * np.sin(angle),
            x * np.sin(angle) + centred[:, 1] * np.cos(angle),
        ),
        axis=1,
    )
    inner = style.height - style.pen
    centre = (style.left + style.height * style.aspect / 2, style.top + style.height / 2)
    return turned * inner + centre


def _glyph(digit: int) -> Image.Image:
    canvas = Image.new("L", (320, 320), 0)
    ImageDraw.Draw(canvas).text((60, 20), str(digit), fill=255, font=ImageFont.load_default(240))
    return canvas


def _crop_to_ink(picture: Image.Image) -> Image.Image:
    return picture.crop(picture.point(lambda v: 255 * (v > 64)).getbbox())


def _lay(glyph: Image.Image, side: int, style: Style) -> Image.Image:
    """Scale, slant and turn a glyph and lay it on a canvas."""
    big = side * OVERSAMPLING if side < 128 else side
    height = max(8, round(style.height * big))
    width = max(2, round(height * glyph.width / glyph.height))
    small = glyph.resize((width, height), Image.Resampling.BILINEAR)
    canvas = Image.new("L", (big, big), 0)
    left = round(style.left / max(1e-6, 1 - style.height * style.aspect) * max(0, big - width))
    canvas.paste(small, (min(left, max(0, big - width)), round(style.top * big)))
    centre = (left + width / 2, style.top * big + height / 2)
    turned = canvas.rotate(-style.angle, Image.Resampling.BILINEAR, center=centre)
    return turned.resize((side, side), Image.Resampling.BOX)
