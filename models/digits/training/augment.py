"""Training images: 8x8 scans redrawn on 28x28 canvases, each time another way."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from .surroundings import SIDE, Surroundings

OVERSAMPLING = 2
ZOOM = 6  # pixels of the redrawn scan per pixel of the 8x8 scan
MARGIN = 1  # pixels of empty ground around the 8x8 scan
LEAST_HEIGHT = 0.27  # of a digit, in parts of its canvas
FRAME = ZOOM * (8 + 2 * MARGIN)  # side of a redrawn scan, and of a pen drawing that joins it


class Augmenter:
    """Turns scans (8x8) and pen drawings (60x60) into canvases (n, 1, 28, 28); all of values 0 to 1.

    Each scan gets a stroke of its own (soft, crisp or thin), and each canvas a size, place, tilt, slant, bend
    and surroundings of its own.

    Args:
        scans: (n, 8, 8).
        drawings: (m, 60, 60).
        generator: what all chance comes from.

    Attributes:
        finishing: set for the last part of training: distort half as much, and let some digits fill their canvas as
            the scans of the test do.
        upright: how many these are.
        framed: how many canvases get a frame.
    """

    def __init__(self, scans: Tensor, drawings: Tensor, generator: torch.Generator) -> None:
        self.generator = generator
        self.finishing = False
        self.framed = 0.2
        self.upright = 0.25
        self.surroundings = Surroundings(generator)
        self.drawings = drawings
        self.soft = torch.cat([enlarge(scans, mode) for mode in ("bilinear", "bicubic")])
        self.ridge = find_ridge(self.soft)

    def __call__(self, scans: Tensor, drawings: Tensor) -> Tensor:
        """Canvases of the scans and of the drawings with these indices."""
        ink = torch.cat((self._strokes(scans), self.drawings[drawings]))[:, None]
        framed = self._chance(len(ink), self.framed)
        grid = self._grid(len(ink), framed)
        canvas = functional.grid_sample(ink, grid, mode="bilinear", align_corners=False)
        return self.surroundings(functional.avg_pool2d(canvas, OVERSAMPLING), framed)

    def _uniform(self, count: int, low: float, high: float) -> Tensor:
        """One number per canvas, shaped to multiply (n, h, w)."""
        return (torch.rand(count, generator=self.generator) * (high - low) + low)[:, None, None]

    def _chance(self, count: int, probability: float) -> Tensor:
        return self._uniform(count, 0, 1) < probability

    def _strokes(self, scans: Tensor) -> Tensor:
        """Redraw scans: as they are, cut at a grey level, or reduced to the ridge of the stroke."""
        count = len(scans)
        enlarged = scans + torch.randint(2, (count,), generator=self.generator) * (len(self.soft) // 2)
        soft, ridge = self.soft[enlarged], self.ridge[enlarged]
        steepness = torch.exp(self._uniform(count, 1.6, 3.2))
        crisp = torch.sigmoid((soft - self._uniform(count, 0.28, 0.6)) * steepness)
        thin = torch.sigmoid((ridge - self._uniform(count, 0.5, 0.85)) * steepness)
        kind = self._uniform(count, 0, 1)
        ink = torch.where(kind < 0.3, soft, torch.where(kind < 0.65, crisp, thin))
        ink = ink - ink.amin((1, 2), keepdim=True)
        return ink / ink.amax((1, 2), keepdim=True)

    def _grid(self, count: int, framed: Tensor) -> Tensor:
        """Where each canvas pixel looks in the redrawn scan, both from -1 to 1: (n, 56, 56, 2).

        A digit that is to be framed leaves room for that.
        """
        strength = 0.5 if self.finishing else 1.0
        filling = self._chance(count, 0.3)
        height = torch.where(
            filling, self._uniform(count, 0.85, 1.05), self._uniform(count, LEAST_HEIGHT, 0.95)
        )
        if self.finishing:
            upright = self._chance(count, self.upright)
            height = torch.where(upright, self._uniform(count, 0.94, 1.06), height)
        height = torch.where(framed, 0.85 * height.clamp(max=0.92), height)
        width = height * torch.exp(strength * self._uniform(count, -0.33, 0.22))
        border = torch.where(framed, 0.15, 0.0)
        y = self._centred(count, height + border)
        x = self._centred(count, width * 0.8 + border).transpose(1, 2)
        angle = self._uniform(count, -0.33, 0.33) * (0.75 if self.finishing else 1.0)
        slant = self._uniform(count, -0.25, 0.25) * strength
        turned_x = angle.cos() * x + angle.sin() * y
        turned_y = angle.cos() * y - angle.sin() * x
        grid = torch.stack(((turned_x + slant * turned_y) / width, turned_y / height), dim=-1)
        grid = grid + strength * self._bend(count, grid)
        return grid * (8 / (8 + 2 * MARGIN))

    def _centred(self, count: int, size: Tensor) -> Tensor:
        """Canvas coordinates about the digit's centre, which may lie anywhere that shows nearly all of it."""
        steps = SIDE * OVERSAMPLING
        line = (torch.arange(steps) + 0.5) / steps * 2 - 1
        room = (1 - 0.95 * size).clamp(min=0) + 0.08
        grid = torch.meshgrid(line, line, indexing="ij")[0]
        return grid[None] - self._uniform(count, -1, 1) * room

    def _bend(self, count: int, grid: Tensor) -> Tensor:
        """A smooth random displacement, up to about a pixel of the 8x8 scan."""
        shape = (count, 2, 4, 4)
        field = torch.randn(shape, generator=self.generator) * self._uniform(count, 0, 0.12)[..., None]
        moved = functional.grid_sample(
            field, grid.clamp(-1, 1), mode="bicubic", padding_mode="border", align_corners=True
        )
        return moved.permute(0, 2, 3, 1)


def enlarge(scans: Tensor, mode: str) -> Tensor:
    """Scans (n, 8, 8) with a margin, interpolated to (n, 60, 60)."""
    padded = functional.pad(scans[:, None], (MARGIN,) * 4)
    larger = functional.interpolate(padded, scale_factor=ZOOM, mode=mode, align_corners=False)
    return larger[:, 0].clamp(0, 1)


def find_ridge(soft: Tensor) -> Tensor:
    """How near each pixel's ink comes to the most ink about it, (n, 60, 60): 1 along the middle of a stroke."""
    reach = 2 * ZOOM + 1
    most = functional.max_pool2d(soft, (reach, 1), 1, (ZOOM, 0))
    most = functional.max_pool2d(most, (1, reach), 1, (0, ZOOM))
    visible = ((soft - 0.15) * 8).clamp(0, 1)
    return soft / (most + 0.05) * visible
