"""Kernels keep to what their calls give them in whole networks, at sizes that nobody tuned them for."""

import os
from itertools import cycle

import numpy as np
import pytest

from engine.compiler.emit.target import Target
from tests.engine.compiler.emulation import WIDTHS
from tests.golden.network_data import open_network
from tests.sanitizer.run import run_checked

SHAPES = {
    "resnet18": [(3, 3, 50, 37), (1, 3, 97, 64), (2, 3, 31, 129)],
    "mobilenet_v2": [(2, 3, 45, 33), (1, 3, 70, 31), (5, 3, 33, 64)],
    "unet": [(1, 3, 48, 16), (3, 3, 16, 80), (2, 3, 32, 112)],
    "unet_bilinear": [(2, 3, 16, 48), (1, 3, 96, 32), (3, 3, 48, 16)],
    "vit": [(3, 3, 32, 32), (1, 3, 32, 32), (7, 3, 32, 32)],
    "yolov5": [(3, 3, 64, 64), (2, 3, 64, 64), (5, 3, 64, 64)],
    "yolov5_raw": [(2, 3, 32, 96), (1, 3, 160, 64), (3, 3, 96, 96)],
}
EVERYTHING = bool(os.environ.get("TEST_SANITIZER_EVERYTHING"))
"""Whether every network runs at every shape and width, rather than at one each."""


SHORT = ("resnet18", "mobilenet_v2", "unet", "vit", "yolov5")


def _cases() -> list[tuple[str, tuple[int, ...], Target]]:
    targets = WIDTHS
    if EVERYTHING:
        return [(name, shape, target) for name in SHAPES for shape in SHAPES[name] for target in targets]
    return [(name, SHAPES[name][0], target) for name, target in zip(SHORT, cycle(targets), strict=False)]


@pytest.mark.parametrize(
    ("name", "shape", "target"), _cases(), ids=lambda value: getattr(value, "name", str(value))
)
def test_network(name: str, shape: tuple[int, ...], target: Target) -> None:
    image = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    run_checked(open_network(name), [image], target, threads=3)
