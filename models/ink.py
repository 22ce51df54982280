"""The ink of a digit: an 8x8 scan redrawn at any size, with a stroke, tilt and slant of its own, or a printed one."""

from __future__ import annotations

import numpy as np
from PIL import Image

MARGIN = 1  # pixels of empty ground around the 8x8 scan
SIDE = 90  # of the enlarged scan that is turned and slanted before it gets its size
VISIBLE = 0.4  # ink from here on counts as a stroke, in masks and in boxes
CELLS = 3  # of the mesh that bends a scan, along each side
BEND = 3.2  # deviation of the mesh's corners, in pixels of the enlarged scan


def draw_ink(scan: np.ndarray, height: int, rng: np.random.Generator, bent: bool = False) -> np.ndarray:
    """Return the ink of a scan (8, 8), cut to its strokes: (about `height`, any width) float32 of values 0 to 1.

    One in three is as soft as the scan, one in eight shows its pixels, and the others have the crisp edges of a pen.
    With `bent` three in four are bent as well, so that they look like the writing of more people than there were.
    """
    kind = rng.random()
    filters = Image.Resampling.NEAREST if kind < 1 / 8 else Image.Resampling.BICUBIC
    padded = Image.fromarray(np.pad(np.round(scan * 255).astype(np.uint8), MARGIN))
    enlarged = padded.resize((SIDE, SIDE), filters)
    if bent and rng.random() < 0.75:
        enlarged = _bend(enlarged, rng)
    turned = _turn(enlarged, rng)
    whole = height * SIDE / _rows_of_ink(turned)
    size = (max(4, round(whole * float(np.exp(rng.uniform(-0.25, 0.2))))), max(4, round(whole)))
    ink = np.asarray(turned.resize(size, Image.Resampling.BICUBIC), np.float32) / 255
    if kind > 11 / 24:
        ink = _crispen(ink, rng)
    return cut(ink / ink.max())


def draw_printed(glyph: np.ndarray, height: int, rng: np.random.Generator) -> np.ndarray:
    """Return the ink of a printed digit, cut to its strokes; one in two is rotated by up to 16 degrees.

    Args:
        glyph: (rows, columns) of values 0 to 1.
        height: about how many rows the ink has.
        rng: what all chance comes from.
    """
    picture = Image.fromarray(np.uint8(np.pad(glyph, 40) * 255))
    if rng.random() < 0.5:
        picture = picture.rotate(rng.uniform(-16, 16), Image.Resampling.BICUBIC)
    inside = Image.fromarray(np.uint8(cut(np.asarray(picture, np.float32) / 255) * 255))
    width = height * inside.width / inside.height * np.exp(rng.uniform(-0.12, 0.12))
    ink = np.asarray(inside.resize((max(2, round(width)), height), Image.Resampling.BILINEAR), np.float32)
    return cut(ink / ink.max())


def cut(ink: np.ndarray) -> np.ndarray:
    """Return the part of the ink (height, width) that holds all that is visible."""
    rows = np.flatnonzero((ink >= VISIBLE).any(1))
    columns = np.flatnonzero((ink >= VISIBLE).any(0))
    return ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def _crispen(ink: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Cut the ink at a grey level, which makes the stroke thick or thin and gives it edges."""
    level = rng.uniform(0.28, 0.62)
    steepness = np.exp(rng.uniform(1.8, 3.2))
    return np.asarray(1 / (1 + np.exp((level - ink) * steepness)), np.float32) * (ink > 0.05)


def _bend(picture: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Move the corners of a mesh by chance, and what lies between them with them."""
    grid = np.linspace(0, SIDE, CELLS + 1)
    corners = np.stack(np.meshgrid(grid, grid), 2) + rng.normal(0, BEND, (CELLS + 1, CELLS + 1, 2))
    step = SIDE // CELLS
    mesh = []
    for row in range(CELLS):
        for column in range(CELLS):
            quad = (
                corners[row, column], corners[row + 1, column],
                corners[row + 1, column + 1], corners[row, column + 1],
            )  # fmt: skip
            left, top = column * step, row * step
            mesh.append(((left, top, left + step, top + step), np.concatenate(quad).tolist()))
    return picture.transform((SIDE, SIDE), Image.Transform.MESH, mesh, Image.Resampling.BILINEAR)


def _turn(picture: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Turn by up to 14 degrees and slant, about the middle."""
    angle = np.radians(rng.uniform(-14, 14))
    slant = rng.uniform(-0.15, 0.2)
    a, b = np.cos(angle) + slant * np.sin(angle), -np.sin(angle) + slant * np.cos(angle)
    d, e = np.sin(angle), np.cos(angle)
    middle = SIDE / 2
    matrix = (a, b, middle * (1 - a - b), d, e, middle * (1 - d - e))
    return picture.transform((SIDE, SIDE), Image.Transform.AFFINE, matrix, Image.Resampling.BICUBIC)


def _rows_of_ink(picture: Image.Image) -> int:
    return max(1, int((np.asarray(picture) >= VISIBLE * 255).any(1).sum()))
