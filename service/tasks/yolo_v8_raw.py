"""The undecoded outputs of YOLOv8 and YOLO11: distances as distributions, logits of classes, and more."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine import Array
from service.tasks.yolo_heads import Candidates, Head, item_of, sigmoid, unreadable

BINS = 16
"""Bins of a distance: its expectation over them is the distance in cells (DFL)."""
Grid = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of values, one for each cell, and the outputs that hold them.

    Attributes:
        outputs: places among the graph's outputs: maps (batch, channels, rows, columns) from the finest to the
            coarsest, or one output that holds the cells of all maps, (batch, channels, cells).
        first: the first of its channels.
        count: how many channels it has.
        cells_first: whether the one output is (batch, cells, channels).
    """

    outputs: tuple[int, ...]
    first: int
    count: int
    cells_first: bool = False

    def rows(self, outputs: Sequence[Array], item: int, grids: Sequence[Grid] | None) -> list[Array]:
        """Return for each map its values of an item of the batch, float32 (count, cells).

        Args:
            outputs: the graph's.
            item: place in the batch.
            grids: rows and columns of each map; None where only maps are expected, whose shapes they are.

        Raises:
            ServiceError: 422 `no_boxes` where an output has another shape.
        """
        arrays = [item_of(outputs, place, item, None) for place in self.outputs]
        if arrays[0].ndim == 2:
            joined = arrays[0].T if self.cells_first else arrays[0]
            sizes = [rows * columns for rows, columns in grids or ()]
            if sum(sizes) != joined.shape[1]:
                raise unreadable(f"an output of {joined.shape[1]} cells for maps of {sizes}")
            flat = np.split(joined, np.cumsum(sizes)[:-1], axis=1)
        else:
            flat = [array.reshape(len(array), -1) for array in arrays]
        if any(len(one) < self.first + self.count for one in flat):
            raise unreadable(f"an output of {min(map(len, flat))} channels")
        return [one[self.first : self.first + self.count] for one in flat]

    def grids(self, outputs: Sequence[Array]) -> list[Grid] | None:
        """Return rows and columns of each map; None where the cells of all are in one output."""
        shapes = [outputs[place].shape for place in self.outputs]
        return (
            None if any(len(shape) != 4 for shape in shapes) else [(shape[2], shape[3]) for shape in shapes]
        )


class RawV8Head(Head):
    """Reads maps before they are decoded.

    With d the expectations of the four distributions: box = (cell - d[:2], cell + d[2:]) stride, where a cell is its
    centre in cells; of key points, x = (2 value + cell - 0.5) stride, and y likewise.
    Source: Ultralytics YOLOv8, `Detect._inference`, `DFL`, `dist2bbox` and `Pose.kpts_decode`.

    Args:
        boxes: distributions of the distances to the four sides, 4 * `BINS` channels.
        classes: logits, a channel for each class.
        extra: what a box has besides; None where that is nothing.
        strides: pixels of the input per cell of each map, the finest first.
        size: height and width of the input, which determine the maps where all are joined.
        dimensions: values of a point, where `extra` holds points: x, y, and how probable it is; else None.
    """

    name = "yolov8-raw"

    def __init__(
        self,
        boxes: Part,
        classes: Part,
        extra: Part | None,
        strides: Sequence[float],
        size: tuple[int, int] | None,
        dimensions: int | None = None,
    ) -> None:
        super().__init__(classes.outputs, 0 if extra is None else extra.count)
        self._boxes, self._classes, self._extra = boxes, classes, extra
        self._strides, self._size, self._dimensions = strides, size, dimensions

    def candidates(self, outputs: Sequence[Array], item: int, confidence: float) -> Candidates:
        """Return boxes that are probable enough; only those are decoded."""
        grids = self._grids(outputs)
        boxes, classes = (part.rows(outputs, item, grids) for part in (self._boxes, self._classes))
        extra = None if self._extra is None else self._extra.rows(outputs, item, grids)
        found = []
        for place, (grid, stride) in enumerate(zip(grids, self._strides, strict=True)):
            cells = grid[0] * grid[1]
            more = np.empty((0, cells), np.float32) if extra is None else extra[place]
            if any(rows.shape[1] != cells for rows in (boxes[place], classes[place], more)):
                raise unreadable(f"maps of {grid} cells beside others")
            found.append(self._decode(boxes[place], classes[place], more, grid[1], stride, confidence))
        joined = [np.concatenate(values) for values in zip(*found, strict=True)]
        return Candidates(joined[0], joined[1], joined[2], joined[3])

    def _decode(
        self, boxes: Array, classes: Array, extra: Array, columns: int, stride: float, confidence: float
    ) -> tuple[Array, Array, Array, Array]:
        """Return boxes, scores, classes and extra values of the probable cells of one map."""
        scores = sigmoid(classes.max(axis=0))
        chosen = np.flatnonzero(scores > confidence)
        distances = _expected(boxes[:, chosen].reshape(4, BINS, -1))
        cells = np.stack([chosen % columns, chosen // columns]).astype(np.float32)
        centres = cells + np.float32(0.5)
        sides = np.concatenate([centres - distances[:2], centres + distances[2:]]) * np.float32(stride)
        sound = np.isfinite(sides).all(axis=0)
        kept = chosen[sound]
        values = extra[:, kept]
        if self._dimensions is not None:
            values = _points(values, self._dimensions, cells[:, sound], stride)
        return sides.T[sound], scores[kept], classes[:, kept].argmax(axis=0), values.T

    def _grids(self, outputs: Sequence[Array]) -> list[Grid]:
        """Return rows and columns of each map: as a part shows them, else those of the input's size."""
        for part in (self._classes, self._boxes, self._extra):
            grids = None if part is None else part.grids(outputs)
            if grids is not None:
                return grids
        height, width = self._size or (0, 0)
        return [(int(height // stride), int(width // stride)) for stride in self._strides]


def _expected(logits: Array) -> Array:
    """Return the expectation of 0, 1, … under softmax(logits) along the second axis."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    weights = np.arange(logits.shape[1], dtype=np.float32)[:, None]
    return np.asarray((powers * weights).sum(axis=1) / powers.sum(axis=1))


def _points(values: Array, dimensions: int, cells: Array, stride: float) -> Array:
    """Decode points, (points * dimensions, boxes), of boxes in cells (2, boxes): their columns and rows."""
    points = values.reshape(-1, dimensions, values.shape[1]).copy()
    points[:, :2] = (points[:, :2] * 2 + cells) * np.float32(stride)
    points[:, 2:] = sigmoid(points[:, 2:])
    return points.reshape(values.shape)
