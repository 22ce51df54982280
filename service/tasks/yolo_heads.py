"""The outputs of YOLO networks: which head they are of, and the boxes that they stand for.

A head is told from the shapes of the graph's outputs. What remains open, `model.toml` says; what contradicts it is
refused when the model is loaded.

| head | outputs | of a box |
|---|---|---|
| `yolov5` | (batch, boxes, 5 + classes), decoded | centre, size, objectness, classes |
| `yolov5-raw` | three maps (batch, anchors * (5 + classes), rows, columns) | the same as logits, by anchor |
| `yolov8` | (batch, 4 + classes + extra, cells), decoded | centre, size, classes |
| `yolov8-raw` | maps (batch, 4 * bins + classes, rows, columns), or all cells in one | distances, logits |
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine import Array
from service.errors import ServiceError

BINS = 16
"""Bins of a distance in YOLOv8's heads: its expectation over them is the distance in cells (DFL)."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Boxes of one item that are probable enough, before those that show the same thing are dropped.

    Attributes:
        boxes: float32 (boxes, 4), left, top, right and bottom in pixels of the input.
        scores: float32 (boxes,), of the most probable class of each.
        classes: (boxes,), that class.
        extra: float32 (boxes, values), what the head says besides: coefficients of masks, or points.
    """

    boxes: Array
    scores: Array
    classes: Array
    extra: Array


class Head(ABC):
    """Reads the outputs of one kind of head.

    Args:
        outputs: places of its outputs among the graph's, maps from the finest to the coarsest.
        extra: values of a box besides its place and its classes.

    Attributes:
        name: what `model.toml` calls it.
        iou: largest intersection over union of two boxes that both remain, as the authors of the network have it.
    """

    name: str
    iou: float = 0.7

    def __init__(self, outputs: Sequence[int], extra: int = 0) -> None:
        self.outputs = tuple(outputs)
        self.extra = extra

    @abstractmethod
    def candidates(self, outputs: Sequence[Array], item: int, confidence: float) -> Candidates:
        """Return the boxes of an item whose most probable class is more probable than `confidence`.

        Args:
            outputs: all outputs of the graph.
            item: number of the item in the batch.
            confidence: from 0 to 1.

        Raises:
            ServiceError: 422 `no_boxes` where the outputs are not those of the head.
        """


class DecodedV5Head(Head):
    """Boxes of YOLOv5 as `models.yolo.Detect` gives them."""

    name = "yolov5"
    iou = 0.45

    def candidates(self, outputs: Sequence[Array], item: int, confidence: float) -> Candidates:
        """Return boxes that are probable enough; the objectness alone rules most of them out."""
        boxes = _of(outputs, self.outputs[0], item, 2)
        return _v5_candidates(boxes[boxes[:, 4] > confidence].T, confidence)


class RawV5Head(Head):
    """Maps of YOLOv5 before they are decoded: y = sigmoid(map), centre = (2y - 0.5 + cell) stride, size = (2y)² anchor.

    Source: Ultralytics YOLOv5, release 6, `Detect.forward`.

    Args:
        outputs: as for every head.
        anchors: (maps, anchors, 2), width and height in pixels of the input.
        strides: pixels of the input per cell of each map.
    """

    name = "yolov5-raw"
    iou = 0.45

    def __init__(self, outputs: Sequence[int], anchors: Array, strides: Sequence[float]) -> None:
        super().__init__(outputs)
        self._anchors = anchors.astype(np.float32)
        self._strides = strides

    def candidates(self, outputs: Sequence[Array], item: int, confidence: float) -> Candidates:
        """Return boxes that are probable enough; only those whose objectness is large enough are decoded."""
        return _v5_candidates(self._decode(outputs, item, confidence), confidence)

    def _decode(self, outputs: Sequence[Array], item: int, confidence: float) -> Array:
        """Return (5 + classes, boxes) of the boxes whose objectness is larger than `confidence`."""
        parts = []
        for place, anchors, stride in zip(self.outputs, self._anchors, self._strides, strict=True):
            maps = _by_anchor(_of(outputs, place, item, None), len(anchors))
            with np.errstate(divide="ignore"):
                least = np.log(confidence) - np.log1p(-confidence)
            anchor, row, column = np.nonzero(maps[:, 4] > least)
            values = _sigmoid(maps[anchor, :, row, column].T)
            cells = np.stack([column, row]).astype(np.float32)
            values[:2] = (values[:2] * 2 + cells - np.float32(0.5)) * np.float32(stride)
            values[2:4] = (values[2:4] * 2) ** 2 * anchors[anchor].T
            parts.append(values)
        return np.concatenate(parts, axis=1)


class DecodedV8Head(Head):
    """Boxes of YOLOv8 and YOLO11 in pixels, and their probabilities."""

    name = "yolov8"

    def candidates(self, outputs: Sequence[Array], item: int, confidence: float) -> Candidates:
        """Return boxes that are probable enough."""
        rows = _of(outputs, self.outputs[0], item, 2)
        classes = rows[4 : len(rows) - self.extra]
        chosen = np.flatnonzero(classes.max(axis=0, initial=0) > confidence)
        return _candidates(rows[:, chosen], len(classes))


class RawV8Head(Head):
    """Maps of YOLOv8 and YOLO11 before they are decoded: distances to the four sides as distributions, and logits.

    Source: Ultralytics YOLOv8, `Detect._inference`, `DFL` and `dist2bbox`.

    Args:
        outputs: as for every head; one, where the maps are joined.
        strides: pixels of the input per cell of each map.
        size: height and width of the input, for maps that are joined.
    """

    name = "yolov8-raw"

    def __init__(
        self, outputs: Sequence[int], strides: Sequence[float], size: tuple[int, int] | None
    ) -> None:
        super().__init__(outputs)
        self._strides = strides
        self._size = size

    def candidates(self, outputs: Sequence[Array], item: int, confidence: float) -> Candidates:
        """Return boxes that are probable enough; only those are decoded."""
        maps, grids = self._maps(outputs, item)
        values = np.concatenate(maps, axis=1)
        centres, strides = _cells(grids, self._strides)
        probabilities = _sigmoid(values[4 * BINS :].max(axis=0))
        chosen = np.flatnonzero(probabilities > confidence)
        values, centres, strides = values[:, chosen], centres[:, chosen], strides[chosen]
        distances = _expected(values[: 4 * BINS].reshape(4, BINS, -1))
        sides = np.concatenate([centres - distances[:2], centres + distances[2:]]) * strides
        sound = np.isfinite(sides).all(axis=0)
        classes = values[4 * BINS :, sound].argmax(axis=0)
        extra = np.empty((len(classes), 0), np.float32)
        return Candidates(sides.T[sound], probabilities[chosen][sound], classes, extra)

    def _maps(self, outputs: Sequence[Array], item: int) -> tuple[list[Array], list[tuple[int, int]]]:
        """Return each map as (values, cells), and its rows and columns."""
        arrays = [_of(outputs, place, item, None) for place in self.outputs]
        if arrays[0].ndim == 3:
            grids = [(array.shape[1], array.shape[2]) for array in arrays]
            return [array.reshape(len(array), -1) for array in arrays], grids
        height, width = self._size or (0, 0)
        grids = [(int(height // stride), int(width // stride)) for stride in self._strides]
        if sum(rows * columns for rows, columns in grids) != arrays[0].shape[1]:
            raise unreadable(f"an output of {arrays[0].shape[1]} cells for an input of {height}x{width}")
        return arrays, grids


def unreadable(problem: str) -> ServiceError:
    """Return the error for outputs of a request that are not those of the head."""
    message = f"the outputs of this request hold no boxes: {problem}"
    return ServiceError(
        422, "no_boxes", message, {"expected": "outputs of the shapes that the file declares"}
    )


def _of(outputs: Sequence[Array], place: int, item: int, rank: int | None) -> Array:
    """Return an item of an output as float32."""
    output = outputs[place]
    if output.ndim < 3 or (rank is not None and output.ndim != rank + 1) or output.dtype.kind != "f":
        raise unreadable(f"output {place} has shape {output.shape} and dtype {output.dtype}")
    return np.asarray(output[item], np.float32)


def _by_anchor(maps: Array, anchors: int) -> Array:
    """Return (anchors, values, rows, columns) of a map with the anchors on its first axis, joined or not."""
    if maps.ndim == 4:  # (anchors, rows, columns, values), as the network has them in training
        return maps.transpose(0, 3, 1, 2)
    return maps.reshape(anchors, -1, *maps.shape[1:])


def _v5_candidates(rows: Array, confidence: float) -> Candidates:
    rows = _with_objectness(rows, confidence)
    return _candidates(rows, len(rows) - 4)


def _with_objectness(rows: Array, confidence: float) -> Array:
    """Multiply classes with the objectness, row 4, and leave out the boxes that are not probable enough."""
    classes = rows[5:] * rows[4]
    chosen = classes.max(axis=0, initial=0) > confidence
    return np.concatenate([rows[:4, chosen], classes[:, chosen]])


def _candidates(rows: Array, count: int) -> Candidates:
    """Return chosen boxes, (4 + classes + extra, boxes), by their corners."""
    classes = rows[4 : 4 + count]
    half = rows[2:4] / 2
    boxes = np.concatenate([rows[:2] - half, rows[:2] + half]).T
    best = classes.argmax(axis=0)
    scores = classes[best, np.arange(classes.shape[1])]
    sound = np.isfinite(boxes).all(axis=1) & np.isfinite(scores)
    return Candidates(
        np.ascontiguousarray(boxes[sound]), scores[sound], best[sound], rows[4 + count :, sound].T
    )


def _expected(logits: Array) -> Array:
    """Return the expectation of 0, 1, … under softmax(logits) along the second axis."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    weights = np.arange(logits.shape[1], dtype=np.float32)[:, None]
    return np.asarray((powers * weights).sum(axis=1) / powers.sum(axis=1))


def _cells(grids: Sequence[tuple[int, int]], strides: Sequence[float]) -> tuple[Array, Array]:
    """Return (2, cells), the centre of each cell in cells, and the stride of each."""
    centres, sizes = [], []
    for (rows, columns), stride in zip(grids, strides, strict=True):
        y, x = np.indices((rows, columns), np.float32) + np.float32(0.5)
        centres.append(np.stack([x.ravel(), y.ravel()]))
        sizes.append(np.full(rows * columns, stride, np.float32))
    return np.concatenate(centres, axis=1), np.concatenate(sizes)


def _sigmoid(values: Array) -> Array:
    """Return 1 / (1 + exp(-x)); x is bounded so that nothing overflows."""
    return np.asarray(1 / (1 + np.exp(-values.clip(-80, 80))))
