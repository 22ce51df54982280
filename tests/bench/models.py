"""The models that runtimes are compared on, and the files that they are read from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from engine.dtypes import Array


@dataclass(frozen=True)
class BenchModel:
    """A network with weights from a seed, and the shape of its input.

    Attributes:
        name: what it is called by on the command line and in files.
        title: what it is called in tables.
        network: its name among the networks of the golden data.
        shape: of its only input.
        options: arguments of the network's class.
        is_averaged: whether it counts in the geometric mean over models.
        is_dynamic: whether other runtimes take the scales of activations from each run in int8, as this engine does
            for rows of tokens.
    """

    name: str
    title: str
    network: str
    shape: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    is_averaged: bool = True
    is_dynamic: bool = False

    def input(self) -> Array:
        """Return the input that all runtimes get."""
        return np.random.default_rng(0).standard_normal(self.shape).astype(np.float32)


_MODELS = (
    BenchModel("resnet18", "ResNet18 224²", "resnet18", (1, 3, 224, 224)),
    BenchModel("yolov5s", "YOLOv5s 640², raw heads", "yolov5", (1, 3, 640, 640), {"width": 0.5, "raw": True}),
    BenchModel("unet", "UNet 256², base 32", "unet", (1, 3, 256, 256), {"base": 32}),
    BenchModel("mobilenet_v2", "MobileNetV2 224²", "mobilenet_v2", (1, 3, 224, 224)),
    BenchModel("mobilenet_v3_small", "MobileNetV3-small 224²", "mobilenet_v3_small", (1, 3, 224, 224)),
    BenchModel("vit", "small ViT 224²", "vit", (1, 3, 224, 224), is_averaged=False),
    BenchModel(
        "encoder",
        "encoder of MiniLM's size, 128 tokens",
        "encoder",
        (1, 128, 384),
        is_averaged=False,
        is_dynamic=True,
    ),
)

MODELS = {model.name: model for model in _MODELS}
"""All models by name, in the order of the tables."""


@dataclass(frozen=True)
class ModelFiles:
    """A folder with one model in the formats of all runtimes, and what PyTorch computes.

    Attributes:
        model: what was exported.
        folder: where to.
    """

    model: BenchModel
    folder: Path

    @property
    def param(self) -> Path:
        """PNNX's graph; the weights lie beside it."""
        return self.folder / "model.pnnx.param"

    @property
    def ncnn(self) -> Path:
        """ncnn's graph; the weights lie beside it."""
        return self.folder / "model.ncnn.param"

    @property
    def onnx(self) -> Path:
        """ONNX graph with weights."""
        return self.folder / "model.onnx"

    @property
    def weights(self) -> Path:
        """The torch module's weights."""
        return self.folder / "weights.pt"

    @property
    def wanted(self) -> Path:
        """PyTorch's outputs, in order."""
        return self.folder / "wanted.npz"

    def error(self, outputs: list[Array]) -> float:
        """Return the largest difference to PyTorch's outputs, relative to the largest of each.

        Raises:
            ValueError: the outputs do not have PyTorch's number and shapes.
        """
        with np.load(self.wanted) as archive:
            wanted = list(archive.values())
        shapes, wanted_shapes = [o.shape for o in outputs], [o.shape for o in wanted]
        if shapes != wanted_shapes:
            raise ValueError(f"outputs of shapes {shapes} instead of {wanted_shapes}")
        return max(relative_error(output, true) for output, true in zip(outputs, wanted, strict=True))


def relative_error(output: Array, wanted: Array) -> float:
    """Return the largest difference relative to the largest wanted value; infinity where the output is not finite."""
    error = float(np.abs(output - wanted).max() / np.abs(wanted).max())
    return error if np.isfinite(error) else float("inf")
