"""models.yolo.Detect: the head of YOLOv5, kept as one operator by the exporter's `moduleop=models.yolo.Detect`."""

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.convolution import convolution_shape
from engine.kernels.detection import POINTWISE, Stage, cells, decode
from engine.spec import TensorSpec

_CONSTANT = re.compile(r"pnnx_\d+")


def _prepare(**attributes: Array) -> dict[str, tuple[Stage, ...]]:
    """Sort the constants of the traced module out.

    Exporters number them in one order or its reverse (`pnnx_00` … `pnnx_06`, earlier `pnnx_6` … `pnnx_0`), so they are
    identified by their contents: strides have one axis; a grid counts its columns and rows; an anchor grid repeats its
    anchors; and earlier stages have more cells.
    """
    constants = [array for name, array in attributes.items() if _CONSTANT.fullmatch(name)]
    strides = [array for array in constants if array.ndim == 1]
    grids = [array for array in constants if array.ndim == 5 and _counts_cells(array)]
    anchors = [array for array in constants if array.ndim == 5 and not _counts_cells(array)]
    weights = _numbered(attributes, "weight")
    biases = _numbered(attributes, "bias")
    count = len(weights)
    if len(strides) != 1 or {len(strides[0]), len(grids), len(anchors)} != {count} or count == 0:
        problem = (
            f"{len(strides)} strides, {len(grids)} grids, {len(anchors)} anchor grids, {count} convolutions"
        )
        raise ArgumentError("pnnx_0", problem, "one array of strides, and one of each other kind per stage")
    by_cells = zip(_by_area(grids), _by_area(anchors), strict=True)
    stages = tuple(
        Stage(weights[i], biases.get(i), float(strides[0][i]), float(grid[0, 0, 0, 0, 0]), anchor[0, :, 0, 0])
        for i, (grid, anchor) in enumerate(by_cells)
    )
    return {"stages": stages}


def _counts_cells(array: Array) -> bool:
    """Return whether this is a grid (cell indices plus an offset within the cell), not a grid of anchors."""
    offsets = array - cells(*array.shape[2:4])
    return bool(np.all(offsets == offsets.flat[0]) and abs(offsets.flat[0]) <= 1)


def _by_area(arrays: list[Array]) -> list[Array]:
    return sorted(arrays, key=lambda array: -array.size)


def _numbered(attributes: Mapping[str, Any], kind: str) -> dict[int, Any]:
    """Stage -> `m.STAGE.kind`."""
    names = {name: name.split(".") for name in attributes if name.startswith("m.")}
    return {int(parts[1]): attributes[name] for name, parts in sorted(names.items()) if parts[2] == kind}


def _infer_detect(*inputs: TensorSpec, **attributes: TensorSpec) -> TensorSpec:
    weights = _numbered(attributes, "weight")
    anchors = next(spec.shape[1] for spec in attributes.values() if spec.rank == 5)
    if len(inputs) != len(weights):
        raise ArgumentError("inputs", f"got {len(inputs)} feature maps", f"{len(weights)}")
    boxes = 0
    for stage, spec in enumerate(inputs):
        if spec.rank != 4 or spec.shape[0] != inputs[0].shape[0]:
            expected = f"({inputs[0].shape[0]}, channels, height, width)"
            raise ArgumentError(f"inputs.{stage}", f"has shape {spec.shape}", expected)
        shape = convolution_shape(spec.shape, weights[stage].shape, **POINTWISE)
        boxes += anchors * math.prod(shape[2:])
    return inputs[0].with_shape((inputs[0].shape[0], boxes, weights[0].shape[0] // anchors))


def _count_detect(*inputs: TensorSpec, outputs: tuple[TensorSpec], **attributes: TensorSpec) -> int:
    del outputs
    weights = _numbered(attributes, "weight")
    return sum(
        spec.size // spec.shape[1] * math.prod(weights[stage].shape) for stage, spec in enumerate(inputs)
    )


@layer("models.yolo.Detect", infer=_infer_detect, multiply_adds=_count_detect, prepare=_prepare)
def detect(*inputs: Array, stages: tuple[Stage, ...]) -> Array:
    """Decode feature maps (batch, channels, height, width) of any size into boxes (batch, boxes, 5 + classes).

    Per stage y = sigmoid(conv(x)), centre = (2y + grid) stride, size = (2y)² anchor; Ultralytics YOLOv5, release 6.
    """
    decoded = [decode(stage, array) for stage, array in zip(stages, inputs, strict=True)]
    return np.concatenate(decoded, axis=1)
