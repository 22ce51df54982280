"""What the models are measured on: scenes of many sizes and aspect ratios, with digits that nothing was trained on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .scene import Scene, SceneMaker

SIZES = (
    (320, 240), (240, 320), (640, 480), (480, 640), (320, 320),
    (200, 150), (500, 500), (1024, 768), (640, 360), (300, 640),
)  # fmt: skip
REPEATS = 20
HEIGHTS = (0.06, 0.5)  # of digits, in parts of the longer side
PHOTOGRAPH = (4000, 3000)
PHOTOGRAPHS = 6


class Question(NamedTuple):
    """A scene, and what kind of scene it is."""

    scene: Scene
    kind: str


def questions(maker: SceneMaker, seed: int) -> Iterator[Question]:
    """Yield 200 scenes of ten sizes from 200x150 to 1024x768, then six of 4000x3000 pixels.

    Each is made from a seed of its own, so that the first few are the same however many are asked for.
    """
    for number in range(REPEATS * len(SIZES)):
        width, height = SIZES[number % len(SIZES)]
        yield Question(
            maker(width, height, np.random.default_rng((seed, number)), HEIGHTS), f"{width}x{height}"
        )
    for number in range(PHOTOGRAPHS):
        rng = np.random.default_rng((seed, 1000 + number))
        yield Question(maker(*PHOTOGRAPH, rng, HEIGHTS), "4000x3000")
