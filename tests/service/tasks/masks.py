"""Masks whose run lengths COCO's own tools have written; `python -m tests.golden.make_run_lengths` writes the file."""

from pathlib import Path

import numpy as np

from engine import Array

GOLDEN = Path(__file__).parents[2] / "golden" / "run_lengths.json"


def draw_masks() -> dict[str, Array]:
    """Return masks by name: bool (height, width)."""
    y, x = np.mgrid[:40, :70]
    noise = np.random.default_rng(0).random((40, 70))
    masks = {
        "disc": (x - 30) ** 2 + (y - 20) ** 2 < 150,
        "noise": noise < 0.1,
        "all": noise < 2,
        "corner": (x == 0) & (y == 0),
        "last": (x == 69) & (y == 39),
        "columns": (x // 9) % 2 == 1,
        "one row": y == 7,
        "tall": np.arange(4000)[:, None] % 3000 > np.arange(3)[None] * 900,
    }
    return {name: np.asarray(mask) for name, mask in masks.items()}
