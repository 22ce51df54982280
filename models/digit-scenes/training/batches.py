"""Batches of scenes to train on, made while training: each scene is used a few times, and never quite the same way."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from .scene import Scene, SceneMaker

PAD = 114  # grey of the bars about a picture that is not square
USES = 6  # of a scene, in the mean
POOL = 512  # scenes that are kept to be used again


class Fitted(NamedTuple):
    """A picture in a square.

    Attributes:
        square: (side, side, channels) or (side, side), uint8.
        scale: what the picture's lengths were multiplied by.
        left: how far it was moved to the right.
        top: how far it was moved down.
    """

    square: np.ndarray
    scale: float
    left: int
    top: int


def fit(picture: Image.Image, side: int, pad: int = PAD) -> Fitted:
    """Scale a picture to fit a square and put it in the middle, as `resize = "fit"` of model.toml does."""
    scale = side / max(picture.size)
    width, height = (max(1, round(length * scale)) for length in picture.size)
    left, top = (side - width) // 2, (side - height) // 2
    square = np.full((side, side, len(picture.getbands())), pad, np.uint8).squeeze()
    square[top : top + height, left : left + width] = picture.resize(
        (width, height), Image.Resampling.BILINEAR
    )
    return Fitted(square, scale, left, top)


def draw_size(side: int, rng: np.random.Generator) -> tuple[int, int]:
    """Width and height of a scene of any aspect ratio from 1:2.2 to 2.2:1, smaller or larger than `side`."""
    longer = side * float(np.exp(rng.uniform(-0.25, 0.5)))
    shorter = longer * (1 if rng.random() < 0.25 else rng.uniform(0.45, 1))
    size = max(32, round(longer)), max(32, round(shorter))
    return size if rng.random() < 0.6 else size[::-1]


Truth = Callable[[Scene, Fitted], np.ndarray]


def boxes_of(scene: Scene, fitted: Fitted) -> np.ndarray:
    """What a detector is to find: (digits, 5) float32, the digit and its box's centre x, centre y, width and height."""
    low = scene.boxes[:, :2] * fitted.scale + np.array((fitted.left, fitted.top), np.float32)
    size = (scene.boxes[:, 2:] - scene.boxes[:, :2]) * fitted.scale
    return np.concatenate((scene.digits[:, None], low + size / 2, size), 1, dtype=np.float32)


def strokes_of(scene: Scene, fitted: Fitted) -> np.ndarray:
    """What a mask is to cover: (side, side) uint8, 255 where a pixel is all ink."""
    picture = Image.fromarray(scene.strokes.astype(np.uint8) * 255)
    return fit(picture, len(fitted.square), 0).square


class SceneBatches:
    """Endless batches of scenes, fitted to a square.

    Args:
        maker: makes the scenes.
        truth: what is to be kept of a scene beside its picture: `boxes_of` or `strokes_of`.
        seed: of all chance, and the number of the process.
        processes: how many a batch is made by; each makes a part.
    """

    def __init__(self, maker: SceneMaker, truth: Truth, seed: tuple[int, int], processes: int) -> None:
        self.maker = maker
        self.truth = truth
        self.rng = np.random.default_rng(seed if seed[1] else seed[0])
        self.processes = processes
        self.pool: list[tuple[np.ndarray, np.ndarray]] = []
        self.side = 0

    def __call__(
        self, count: int, side: int, heights: tuple[float, float]
    ) -> tuple[Tensor, list[np.ndarray]]:
        """Return this process's part of `count` scenes (part, 3, side, side), values 0 to 1, and the truth of each.

        Args:
            count: scenes.
            side: of the square that they are fitted to.
            heights: of digits, in parts of a scene's longer side.
        """
        count //= self.processes
        if side != self.side:
            self.pool, self.side = [], side
        for _ in range(max(1, count // USES) if len(self.pool) >= count else count):
            made = self._make(side, heights)
            if len(self.pool) < POOL:
                self.pool.append(made)
            else:
                self.pool[self.rng.integers(POOL)] = made
        chosen = self.rng.choice(len(self.pool), count, replace=False)
        images = torch.stack([torch.from_numpy(self._recolour(self.pool[i][0])) for i in chosen])
        return images.permute(0, 3, 1, 2).float() / 255, [self.pool[i][1] for i in chosen]

    def _make(self, side: int, heights: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
        scene = self.maker(*draw_size(side, self.rng), self.rng, heights)
        fitted = fit(scene.picture, side)
        return fitted.square, self.truth(scene, fitted)

    def _recolour(self, square: np.ndarray) -> np.ndarray:
        """Exchange the colours, and take the negative of one picture in two."""
        changed = square[..., self.rng.permutation(3)]
        return np.ascontiguousarray(255 - changed if self.rng.random() < 0.5 else changed)
