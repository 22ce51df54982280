"""The outputs of YOLO networks: which head they are of, and the boxes that they stand for.

The head type is inferred from the output shapes. What remains open, `model.toml` says; what contradicts it is
refused when the model is loaded.

| head | outputs | of a box |
|---|---|---|
| `yolov5` | (batch, boxes, 5 + classes), decoded | centre, size, objectness, classes |
| `yolov5-raw` | three maps (batch, anchors * (5 + classes), rows, columns) | the same as logits, by anchor |
| `yolov8` | (batch, 4 + classes + extra, cells), decoded | centre, size, classes |
| `yolov8-raw` | maps (batch, 4 * bins + classes + extra, rows, columns), or all cells in one | distances, logits |

The last is read by `service.tasks.yolo_v8_raw`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine import Array
from service.errors import ServiceError


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
        boxes = item_of(outputs, self.outputs[0], item, 2)
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
            maps = _by_anchor(item_of(outputs, place, item, None), len(anchors))
            with np.errstate(divide="ignore"):
                least = np.log(confidence) - np.log1p(-confidence)
            anchor, row, column = np.nonzero(maps[:, 4] > least)
            values = sigmoid(maps[anchor, :, row, column].T)
            cells = np.stack([column, row]).astype(np.float32)
            values[:2] = (values[:2] * 2 + cells - np.float32(0.5)) * np.float32(stride)
            values[2:4] = (values[2:4] * 2) ** 2 * anchors[anchor].T
            parts.append(values)
        return np.concatenate(parts, axis=1)


class DecodedV8Head(Head):
    """Boxes of YOLOv8 and YOLO11 in pixels, and their probabilities.

    Args:
        outputs: as for every head.
        extra: as for every head.
        cells_first: whether the output is (batch, cells, 4 + classes + extra).
    """

    name = "yolov8"

    def __init__(self, outputs: Sequence[int], extra: int = 0, cells_first: bool = False) -> None:
        super().__init__(outputs, extra)
        self._cells_first = cells_first

    def candidates(self, outputs: Sequence[Array], item: int, confidence: float) -> Candidates:
        """Return boxes that are probable enough."""
        rows = item_of(outputs, self.outputs[0], item, 2)
        rows = rows.T if self._cells_first else rows
        classes = rows[4 : len(rows) - self.extra]
        chosen = np.flatnonzero(classes.max(axis=0, initial=0) > confidence)
        return _candidates(rows[:, chosen], len(classes))


def unreadable(problem: str) -> ServiceError:
    """Return the error for outputs of a request that are not those of the head."""
    message = f"the outputs of this request hold no boxes: {problem}"
    return ServiceError(
        422, "no_boxes", message, {"expected": "outputs of the shapes that the file declares"}
    )


def item_of(outputs: Sequence[Array], place: int, item: int, rank: int | None) -> Array:
    """Return an item of an output as float32.

    Args:
        outputs: the graph's.
        place: of the output.
        item: place in the batch.
        rank: of the item; None for any.

    Raises:
        ServiceError: 422 `no_boxes` where the output has another rank, or is of another type or batch.
    """
    output = outputs[place]
    is_array = output.ndim >= 3 and rank in (None, output.ndim - 1) and item < len(output)
    if not is_array or output.dtype.kind != "f":
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


def sigmoid(values: Array) -> Array:
    """Return 1 / (1 + exp(-x)); x is bounded so that nothing overflows."""
    return np.asarray(1 / (1 + np.exp(-values.clip(-80, 80))))
