"""From the network's output to boxes: a threshold, and non-maximum suppression among boxes of one class."""

from __future__ import annotations

import numpy as np

from .average_precision import Detections, iou

MOST = 100  # boxes of a picture


def read_boxes(rows: np.ndarray, least: float, overlap: float) -> Detections:
    """Return the boxes of one picture, the likeliest first.

    Args:
        rows: (boxes, 5 + classes): centre, size, objectness and one score per class.
        least: confidence, objectness times the class's score, from which on a box counts.
        overlap: IoU above which the less likely of two boxes of a class is dropped.
    """
    confidences = rows[:, 4:5] * rows[:, 5:]
    classes = confidences.argmax(1)
    scores = confidences.max(1)
    kept = np.flatnonzero(scores >= least)
    kept = kept[np.argsort(-scores[kept], kind="stable")][:1000]
    centres, sizes = rows[kept, :2], rows[kept, 2:4]
    boxes = np.concatenate((centres - sizes / 2, centres + sizes / 2), 1)
    chosen = suppress(boxes, classes[kept], overlap)[:MOST]
    return Detections(boxes[chosen], classes[kept][chosen], scores[kept][chosen])


def suppress(boxes: np.ndarray, classes: np.ndarray, overlap: float) -> np.ndarray:
    """Return the indices of boxes, in order, that overlap none of their class before them by more than `overlap`."""
    close = (iou(boxes, boxes) > overlap) & (classes[:, None] == classes[None])
    alive = np.ones(len(boxes), bool)
    for index in range(len(boxes)):
        if alive[index]:
            alive[index + 1 :] &= ~close[index, index + 1 :]
    return np.flatnonzero(alive)
