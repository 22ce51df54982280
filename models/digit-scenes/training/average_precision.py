"""Average precision of detections at 101 points of recall, as COCO's evaluation has it (Lin et al., 2014)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Detections(NamedTuple):
    """What is, or is said to be, in one picture.

    Attributes:
        boxes: (n, 4) left, top, right, bottom.
        classes: (n,).
        scores: (n,); of the truth, anything.
    """

    boxes: np.ndarray
    classes: np.ndarray
    scores: np.ndarray


def mean_average_precision(
    found: list[Detections], truth: list[Detections], threshold: float = 0.5
) -> tuple[float, dict[int, float]]:
    """Return the mean over the classes that occur in the truth, and the average precision of each.

    Args:
        found: for each picture, what a detector says.
        truth: for each picture, what is there.
        threshold: least IoU of a hit.
    """
    classes = sorted({int(c) for picture in truth for c in picture.classes})
    by_class = {c: average_precision(found, truth, c, threshold) for c in classes}
    return float(np.mean(list(by_class.values()))), by_class


def average_precision(
    found: list[Detections], truth: list[Detections], chosen: int, threshold: float
) -> float:
    """Mean, over recalls of 0, 0.01, … 1, of the best precision that is reached at that recall or a higher one."""
    scores, hits, total = [], [], 0
    for said, real in zip(found, truth, strict=True):
        mine, theirs = said.classes == chosen, real.classes == chosen
        total += int(theirs.sum())
        order = np.argsort(-said.scores[mine], kind="stable")
        scores.append(said.scores[mine][order])
        hits.append(_hits(said.boxes[mine][order], real.boxes[theirs], threshold))
    order = np.argsort(-np.concatenate(scores), kind="stable")
    hit = np.concatenate(hits)[order]
    if not total or not len(hit):
        return 0.0
    recall = hit.cumsum() / total
    precision = hit.cumsum() / np.arange(1, len(hit) + 1)
    best = np.append(np.maximum.accumulate(precision[::-1])[::-1], 0.0)
    return float(best[np.searchsorted(recall, np.linspace(0, 1, 101), side="left")].mean())


def _hits(boxes: np.ndarray, truth: np.ndarray, threshold: float) -> np.ndarray:
    """Return of boxes, best score first, whether each is the first to match a free box of the truth."""
    ious = iou(boxes, truth)
    taken = np.zeros(len(truth), bool)
    hits = np.zeros(len(boxes), bool)
    for index, row in enumerate(ious):
        free = np.where(taken, -1.0, row)
        if len(free) and free.max() >= threshold:
            taken[free.argmax()] = hits[index] = True
    return hits


def iou(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Intersection over union of boxes (n, 4) and (m, 4) of left, top, right, bottom: (n, m)."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    shared = np.clip(high - low, 0, None).prod(2)
    areas = [(boxes[:, 2:] - boxes[:, :2]).prod(1) for boxes in (a, b)]
    return shared / np.maximum(areas[0][:, None] + areas[1][None] - shared, 1e-9)
