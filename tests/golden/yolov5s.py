"""The YOLOv5s of the KuiperInfer course, with weights that are drawn by their names: the same ones everywhere."""

import math
import re
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo
from zlib import crc32

import numpy as np

from engine.dtypes import Array

FOLDER = Path(__file__).parent / "yolov5s"
SIDE = 640
STEP = 101
"""One box of so many is kept: a prime, so that all anchors and cells occur."""
ANCHORS = ((10, 13, 16, 30, 33, 23), (30, 61, 62, 45, 59, 119), (116, 90, 156, 198, 373, 326))
STRIDES = (8, 16, 32)
_GRIDS = ("pnnx_00", "pnnx_03", "pnnx_05")
_ATTRIBUTE = re.compile(r"@(\S+?)=\(([\d,]+)\)f32")


def draw(name: str, shape: tuple[int, ...]) -> Array:
    """Return the weights of a name, such that values neither grow nor fade from layer to layer."""
    rng = np.random.default_rng(crc32(name.encode()))
    scale = 1.5 / math.sqrt(math.prod(shape[1:])) if len(shape) > 1 else 0.2
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def image() -> Array:
    """Return the input, (1, 3, side, side)."""
    return np.random.default_rng(0).random((1, 3, SIDE, SIDE), np.float32)


def write_weights(param: Path, target: Path) -> None:
    """Write the archive of all attributes that a `.param` names."""
    with ZipFile(target, "w", ZIP_STORED) as archive:
        for line in param.read_text().splitlines()[2:]:
            operator = line.split()[1]
            for key, sides in _ATTRIBUTE.findall(line):
                shape = tuple(map(int, sides.split(",")))
                values = (
                    _constant(key, shape) if key.startswith("pnnx_") else draw(f"{operator}.{key}", shape)
                )
                archive.writestr(ZipInfo(f"{operator}.{key}"), values.astype("<f4").tobytes())


def _constant(key: str, shape: tuple[int, ...]) -> Array:
    """Return a constant of Detect: the strides, a grid of cells, or one of anchors."""
    if len(shape) == 1:
        return np.array(STRIDES, np.float32)
    stage = STRIDES.index(SIDE // shape[2])
    if key in _GRIDS:
        y, x = np.mgrid[: shape[2], : shape[3]]
        return np.broadcast_to(np.stack([x, y], -1) - 0.5, shape).astype(np.float32)
    sizes = np.array(ANCHORS[stage], np.float32).reshape(1, 3, 1, 1, 2)
    return np.broadcast_to(sizes, shape).copy()
