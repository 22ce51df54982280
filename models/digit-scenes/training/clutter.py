"""What stands around the digits of a scene: grounds, patches, lines, shapes and letters, none of them like a digit."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFont

LETTERS = "AEFHKMNRTVWXYfhkmtwx#%&@+=*?"
Colour = tuple[int, int, int]


def draw_colour(rng: np.random.Generator) -> Colour:
    """Return a grey on one try in two, else any colour."""
    if rng.random() < 0.5:
        grey = int(rng.integers(256))
        return grey, grey, grey
    red, green, blue = rng.integers(256, size=3).tolist()
    return red, green, blue


def draw_ground(width: int, height: int, rng: np.random.Generator) -> Image.Image:
    """Return a ground of one colour, with a gradient or clouds on it: RGB."""
    base = np.array(draw_colour(rng), np.float32)
    if rng.random() < 0.35:
        base = np.float32(255) if rng.random() < 0.6 else np.float32(0)
    columns, rows = int(rng.integers(1, 8)), int(rng.integers(1, 8))
    strength = rng.choice((0, 12, 30, 55))
    clouds = (
        base + rng.normal(0, strength, (rows, columns, 1)) + rng.normal(0, strength / 3, (rows, columns, 3))
    )
    small = Image.fromarray(np.clip(clouds, 0, 255).astype(np.uint8))
    return small.resize((width, height), Image.Resampling.BICUBIC)


def light(canvas: np.ndarray, rng: np.random.Generator) -> None:
    """Let light fall off from one side of a canvas (height, width, 3), and add soft spots, as of paper or cloth."""
    height, width = canvas.shape[:2]
    angle, depth = rng.uniform(0, 2 * np.pi), rng.uniform(0, 0.65)
    rows, columns = np.linspace(-1, 1, height)[:, None], np.linspace(-1, 1, width)
    along = np.cos(angle) * columns + np.sin(angle) * rows
    canvas *= np.float32(1 - depth * (along - along.min()) / np.ptp(along))[..., None]
    size = max(height, width) * np.exp(rng.uniform(np.log(0.01), np.log(0.1)))
    spots = rng.normal(0, rng.uniform(0, 16), (max(2, round(height / size)), max(2, round(width / size))))
    soft = Image.fromarray(np.float32(spots)).resize((width, height), Image.Resampling.BICUBIC)
    canvas += np.asarray(soft)[..., None]


def add_clutter(picture: Image.Image, rng: np.random.Generator, spared: float = 1 / 8) -> None:
    """Draw patches, ruled lines, shapes, scribbles and letters, up to thirty; none on a share of the pictures."""
    pen = ImageDraw.Draw(picture)
    if rng.random() < spared:
        return
    if rng.random() < 0.2:
        _rule(pen, picture.size, rng)
    for _ in range(int(rng.integers(0, 5))):
        _patch(pen, picture.size, rng)
    for _ in range(int(rng.integers(0, 26))):
        (_line, _line, _ellipse, _polygon, _scribble, _letter, _dots)[rng.integers(7)](pen, picture.size, rng)


def add_lines(picture: Image.Image, rng: np.random.Generator, count: int) -> None:
    """Draw thin lines over all that is there."""
    pen = ImageDraw.Draw(picture)
    for _ in range(count):
        _line(pen, picture.size, rng)


def _unit(size: tuple[int, int]) -> float:
    """Return the length that thicknesses are counted in: a three-hundred-and-twentieth of the longer side."""
    return max(size) / 320


def _thickness(size: tuple[int, int], rng: np.random.Generator, most: float) -> int:
    return max(1, round(_unit(size) * rng.uniform(0.5, most)))


def _point(size: tuple[int, int], rng: np.random.Generator) -> tuple[float, float]:
    return rng.uniform(0, size[0]), rng.uniform(0, size[1])


def _rule(pen: ImageDraw.ImageDraw, size: tuple[int, int], rng: np.random.Generator) -> None:
    """Rule the paper, or draw squares on it."""
    step, colour = max(size) * rng.uniform(0.03, 0.12), draw_colour(rng)
    thickness = _thickness(size, rng, 1.2)
    for y in np.arange(step, size[1], step):
        pen.line((0, y, size[0], y), fill=colour, width=thickness)
    if rng.random() < 0.5:
        for x in np.arange(step, size[0], step):
            pen.line((x, 0, x, size[1]), fill=colour, width=thickness)


def _patch(pen: ImageDraw.ImageDraw, size: tuple[int, int], rng: np.random.Generator) -> None:
    x, y = _point(size, rng)
    width, height = rng.uniform(0.05, 0.6, 2) * max(size)
    box = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    (pen.rectangle if rng.random() < 0.7 else pen.ellipse)(box, fill=draw_colour(rng))


def _line(pen: ImageDraw.ImageDraw, size: tuple[int, int], rng: np.random.Generator) -> None:
    """A line across much of the picture, or a short one that is too thin or too flat for a 1."""
    (x, y), length = _point(size, rng), max(size) * rng.uniform(0.1, 0.9)
    steep = length > 0.4 * max(size)
    angle = rng.uniform(0, np.pi) if steep else rng.uniform(-0.8, 0.8)
    dx, dy = np.cos(angle) * length / 2, np.sin(angle) * length / 2
    thickness = _thickness(size, rng, 3)
    pen.line((x - dx, y - dy, x + dx, y + dy), fill=draw_colour(rng), width=thickness)


def _ellipse(pen: ImageDraw.ImageDraw, size: tuple[int, int], rng: np.random.Generator) -> None:
    """A filled one, or a thin ring that is wider than a 0."""
    (x, y), height = _point(size, rng), max(size) * rng.uniform(0.02, 0.25)
    filled = rng.random() < 0.5
    width = height * (rng.uniform(0.6, 2) if filled else rng.uniform(1.3, 3))
    box = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    if filled:
        pen.ellipse(box, fill=draw_colour(rng))
    else:
        pen.ellipse(box, outline=draw_colour(rng), width=_thickness(size, rng, 1.6))


def _polygon(pen: ImageDraw.ImageDraw, size: tuple[int, int], rng: np.random.Generator) -> None:
    """A triangle, rectangle or irregular shape, filled or in outline."""
    centre, reach = np.array(_point(size, rng)), max(size) * rng.uniform(0.02, 0.18)
    count = int(rng.integers(3, 7))
    angles = rng.uniform(0, 2 * np.pi) + np.arange(count) * 2 * np.pi / count
    points = centre + reach * np.stack((np.cos(angles), np.sin(angles)), 1) * rng.uniform(
        0.6, 1.4, (count, 1)
    )
    corners = [tuple(point) for point in points.tolist()]
    if rng.random() < 0.5:
        pen.polygon(corners, fill=draw_colour(rng))
    else:
        pen.line([*corners, corners[0]], fill=draw_colour(rng), width=_thickness(size, rng, 3))


def _scribble(pen: ImageDraw.ImageDraw, size: tuple[int, int], rng: np.random.Generator) -> None:
    """A zigzag that wanders to one side."""
    x, y = _point(size, rng)
    step = max(size) * rng.uniform(0.01, 0.06)
    count = int(rng.integers(6, 16))
    xs = x + np.arange(count) * step
    ys = y + rng.normal(0, 2 * step, count)
    points = list(zip(xs.tolist(), ys.tolist(), strict=True))
    pen.line(points, fill=draw_colour(rng), width=_thickness(size, rng, 4), joint="curve")


def _letter(pen: ImageDraw.ImageDraw, size: tuple[int, int], rng: np.random.Generator) -> None:
    font = ImageFont.load_default(max(6, max(size) * rng.uniform(0.04, 0.25)))
    letter = LETTERS[rng.integers(len(LETTERS))]
    pen.text(_point(size, rng), letter, fill=draw_colour(rng), font=font, anchor="mm")


def _dots(pen: ImageDraw.ImageDraw, size: tuple[int, int], rng: np.random.Generator) -> None:
    colour, radius = draw_colour(rng), _unit(size) * rng.uniform(0.5, 3)
    centre, spread = np.array(_point(size, rng)), max(size) * rng.uniform(0.02, 0.1)
    for x, y in rng.normal(centre, spread, (int(rng.integers(3, 15)), 2)).tolist():
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
