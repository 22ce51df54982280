"""Golden cases of resizing: configurations, and what PyTorch, OpenCV and Pillow make of a picture.

`python -m tests.golden.make_resizing` writes the file. The picture is not in it; it is drawn again.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from engine import Array

DATA = Path(__file__).parents[2] / "golden" / "resizing.npz"
PARTS = 64
"""Fractions of grey levels are stored as whole numbers of 1/64."""
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class ResizingCase:
    """A table `[image]`, and the size of the picture and of the array, each columns and rows."""

    name: str
    picture: tuple[int, int]
    array: tuple[int, int]
    keys: dict[str, Any] = field(default_factory=dict)


def _cases() -> list[ResizingCase]:
    sizes = {"smaller": ((61, 47), (20, 17)), "larger": ((23, 31), (30, 36)), "mixed": ((61, 23), (20, 30))}
    filters = {
        "torch": ["nearest", "bilinear", "bicubic"],
        "opencv": ["nearest", "bilinear", "bicubic", "box"],
    }
    filters["pillow"] = ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]
    cases = []
    for library, names in filters.items():
        for resample in names:
            for size, (picture, array) in sizes.items():
                keys = {"resize_as": library, "resample": resample}
                cases.append(ResizingCase(f"{library}, {resample}, {size}", picture, array, keys))
                if library == "torch" and resample != "nearest":
                    case = ResizingCase(
                        f"{library}, {resample}, {size}, sharp", picture, array, keys | {"antialias": False}
                    )
                    cases.append(case)
    letterbox = {"resize": "fit", "resize_as": "opencv", "pad": 114}
    cases += [
        ResizingCase("letterbox, wide", (61, 23), (32, 32), letterbox),
        ResizingCase("letterbox, high", (23, 61), (32, 32), letterbox),
        ResizingCase("letterbox, odd bars", (50, 31), (40, 32), letterbox),
        ResizingCase("letterbox, enlarged", (13, 9), (32, 32), letterbox),
        ResizingCase("letterbox, not enlarged", (13, 9), (32, 32), letterbox | {"scale_up": False}),
        ResizingCase("letterbox, larger, not enlarged", (61, 47), (32, 32), letterbox | {"scale_up": False}),
    ]
    crop = {"resize": "crop", "shorter_side": 32}
    for library in ("pillow", "torch"):
        for picture in ((61, 47), (47, 62), (25, 19)):
            name = f"centre of {picture}, {library}"
            cases.append(ResizingCase(name, picture, (28, 28), crop | {"resize_as": library}))
    return cases


CASES = _cases()


def golden(case: ResizingCase) -> Array:
    """Return the stored result: float64 (rows, columns, 3), grey levels."""
    with np.load(DATA) as stored:
        levels: Array = stored[case.name]
    return levels / (1 if levels.dtype == np.uint8 else PARTS)


def draw_picture(size: tuple[int, int]) -> Array:
    """Return uint8 (rows, columns, 3): waves, edges and noise."""
    columns, rows = size
    y, x = np.mgrid[:rows, :columns]
    waves = [np.sin(x / 5) * np.cos(y / 7), np.sin(x * y / 90), np.where((x // 6 + y // 5) % 2, 1, -1)]
    noise = np.random.default_rng(columns * 1000 + rows).normal(0, 0.15, (rows, columns, 3))
    return ((np.stack(waves, axis=-1) + noise) * 110 + 128).clip(0, 255).astype(np.uint8)
