"""What lies about the ink of a training image: frames, vignettes, shadows, ruled paper and stains, each again."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

SIDE = 28


class Surroundings:
    """Lays ink (n, 1, 28, 28) of values 0 to 1 on grounds: light ink on dark ones.

    One polarity is enough: a canvas and its negative are the same to the network.

    Args:
        generator: what all chance comes from.

    Attributes:
        plain: how many of the canvases without a frame have no surroundings at all.
    """

    def __init__(self, generator: torch.Generator) -> None:
        self.generator = generator
        self.plain = 0.5
        line = (torch.arange(SIDE) + 0.5) / SIDE
        self.y, self.x = line[:, None].expand(SIDE, SIDE), line[None].expand(SIDE, SIDE)

    def __call__(self, ink: Tensor, framed: Tensor) -> Tensor:
        """Return the canvases; those of `framed` (n, 1, 1) get a frame, and of the others half stay plain."""
        count = len(ink)
        plain = self._chance(count, self.plain) & ~framed
        full = torch.where(plain, 1.0, self._uniform(count, 0.6, 1))
        ground = torch.where(plain, 0.0, self._uniform(count, 0, 0.25)).expand(count, SIDE, SIDE)
        uneven = ~plain & self._chance(count, 0.5)
        ground = torch.where(uneven, ground + self._vignette(count), ground)
        shaded = ~plain & self._chance(count, 0.3)
        ground = torch.where(shaded, ground + self._shadow(count), ground)
        ruled = ~plain & self._chance(count, 0.15)
        ground = torch.where(ruled, torch.lerp(ground, full.expand_as(ground), self._rules(count)), ground)
        canvas = torch.lerp(ground, full.expand_as(ground), ink[:, 0])
        stained = ~plain & self._chance(count, 0.15)
        canvas = torch.where(stained, torch.lerp(canvas, full.expand_as(canvas), self._stains(count)), canvas)
        canvas = torch.where(framed, self._frame(canvas, full), canvas)
        faint = ~plain & self._chance(count, 0.35)
        canvas = torch.where(faint, canvas * self._uniform(count, 0.25, 1), canvas)
        noise = torch.randn(canvas.shape, generator=self.generator) * self._uniform(count, 0, 0.09)
        canvas = torch.where(plain, canvas, canvas + noise)
        blurred = functional.avg_pool2d(canvas[:, None], 3, 1, 1, count_include_pad=False)[:, 0]
        soft = ~plain & self._chance(count, 0.2)
        return torch.where(soft, torch.lerp(canvas, blurred, 0.6), canvas).clamp(0, 1)[:, None]

    def _uniform(self, count: int, low: float, high: float) -> Tensor:
        """One number per canvas, shaped to multiply (n, h, w)."""
        return (torch.rand(count, generator=self.generator) * (high - low) + low)[:, None, None]

    def _chance(self, count: int, probability: float) -> Tensor:
        return self._uniform(count, 0, 1) < probability

    def _vignette(self, count: int) -> Tensor:
        """A change of the ground towards the corners, mostly towards the ink's brightness."""
        dx = self.x - self._uniform(count, 0.4, 0.6)
        dy = self.y - self._uniform(count, 0.4, 0.6)
        distance = (dx.square() + dy.square()).sqrt() / 0.7
        return self._uniform(count, -0.15, 0.9) * distance ** self._uniform(count, 1, 4)

    def _shadow(self, count: int) -> Tensor:
        """A change of the ground along a line, gradual or nearly an edge."""
        angle = self._uniform(count, 0, 2 * torch.pi)
        along = (self.x - 0.5) * angle.cos() + (self.y - 0.5) * angle.sin() + self._uniform(count, -0.3, 0.3)
        return self._uniform(count, 0, 0.5) * torch.sigmoid(along * torch.exp(self._uniform(count, 1, 4)))

    def _rules(self, count: int) -> Tensor:
        """Lines across, and on every other canvas down as well: how much of the ink's colour each pixel takes."""
        step, offset = self._uniform(count, 0.1, 0.35), self._uniform(count, 0, 1)
        half = self._uniform(count, 0.008, 0.025)
        rows = self._covered(((self.y / step + offset) % 1 - 0.5).abs() * step, half)
        columns = self._covered(((self.x / step + offset) % 1 - 0.5).abs() * step, half)
        columns = torch.where(self._chance(count, 0.5), columns, 0.0)
        return torch.maximum(rows, columns) * self._uniform(count, 0.15, 0.6)

    def _stains(self, count: int) -> Tensor:
        """Three round spots."""
        spots = torch.zeros(count, SIDE, SIDE)
        for _ in range(3):
            dx, dy = self.x - self._uniform(count, 0, 1), self.y - self._uniform(count, 0, 1)
            spot = self._covered((dx.square() + dy.square()).sqrt(), self._uniform(count, 0.01, 0.06))
            spots = torch.maximum(spots, spot * self._uniform(count, 0.3, 1))
        return spots

    def _frame(self, canvas: Tensor, full: Tensor) -> Tensor:
        """Draw a frame at the edge or somewhat inside, mostly of the ink's colour, here and there without a side."""
        count = len(canvas)
        inset = torch.where(self._chance(count, 0.4), 0.0, self._uniform(count, 0, 0.1))
        thickness = torch.where(
            self._chance(count, 0.7), self._uniform(count, 0.01, 0.07), self._uniform(count, 0.07, 0.14)
        )
        rim = torch.zeros_like(canvas)
        for edge in (self.x, 1 - self.x, self.y, 1 - self.y):
            skew = self._uniform(count, -0.02, 0.02)
            band = self._covered((edge - inset - skew - thickness / 2).abs(), thickness / 2)
            inside = (
                torch.minimum(torch.minimum(self.x, 1 - self.x), torch.minimum(self.y, 1 - self.y))
                >= inset - 0.03
            )
            rim = torch.maximum(rim, torch.where(self._chance(count, 0.07), 0.0, band * inside))
        colour = torch.where(self._chance(count, 0.7), full, self._uniform(count, 0, 1))
        return torch.lerp(canvas, colour.expand_as(canvas), rim)

    @staticmethod
    def _covered(distance: Tensor, half: Tensor) -> Tensor:
        """How much of a pixel lies within `half` of a line that is `distance` away from its centre: 0 to 1."""
        low = torch.maximum(distance - 0.5 / SIDE, -half)
        high = torch.minimum(distance + 0.5 / SIDE, half)
        return ((high - low) * SIDE).clamp(0, 1)
