"""The head of YOLOv5: from a feature map to its boxes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.dtypes import Array
from engine.kernels.activation import activate, sigmoid
from engine.kernels.convolution import convolve

POINTWISE: dict[str, Any] = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1)}


@dataclass(frozen=True, slots=True)
class Stage:
    """What one feature map is decoded with.

    Attributes:
        weight: (anchors * values, channels, 1, 1) of the convolution.
        bias: (anchors * values,).
        stride: image pixels per cell.
        offset: what the grid adds to a cell's column and row.
        anchors: (anchors, 2) width and height in image pixels.
    """

    weight: Array
    bias: Array | None
    stride: float
    offset: float
    anchors: Array

    @property
    def values(self) -> int:
        """Values per box: x, y, width, height, objectness and one per class."""
        return int(self.weight.shape[0]) // len(self.anchors)


def cells(rows: int, columns: int) -> Array:
    """Return the (rows, columns, 2) column and row of every cell."""
    return np.stack(np.broadcast_arrays(np.arange(columns), np.arange(rows)[:, None]), axis=-1)


def decode(stage: Stage, input: Array) -> Array:
    """Decode a feature map (batch, channels, height, width) into boxes (batch, boxes, 5 + classes).

    y = sigmoid(conv(x)), centre = (2y + grid) stride, size = (2y)² anchor; Ultralytics YOLOv5, release 6.
    """
    batch, _, rows, columns = input.shape
    head = convolve(input, stage.weight, stage.bias, **POINTWISE)
    maps = activate(sigmoid, head).reshape(batch, len(stage.anchors), stage.values, rows, columns)
    boxes = maps.transpose(0, 1, 3, 4, 2).copy()
    centre, size = boxes[..., :2], boxes[..., 2:4]
    centre *= 2
    centre += (cells(rows, columns) + stage.offset).astype(boxes.dtype)
    centre *= stage.stride
    size *= 2
    size *= size
    size *= stage.anchors[:, None, None].astype(boxes.dtype)
    return boxes.reshape(batch, -1, stage.values)


def factors(stage: Stage, rows: int, columns: int) -> tuple[Array, Array, Array]:
    """Return a, b and c, with which a y + b y² + c of the sigmoid y of a feature map are the values of its boxes.

    Args:
        stage: what it is decoded with.
        rows: of the feature map.
        columns: of it.

    Returns:
        Arrays that broadcast to (batch, anchors, rows, columns, values).
    """
    linear = np.ones(stage.values)
    linear[:4] = 2 * stage.stride, 2 * stage.stride, 0, 0
    square = np.zeros((len(stage.anchors), 1, 1, stage.values))
    square[..., 2:4] = 4 * stage.anchors[:, None, None]
    constant = np.zeros((rows, columns, stage.values))
    constant[..., :2] = (cells(rows, columns) + stage.offset) * stage.stride
    return linear, square, constant
