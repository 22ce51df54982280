"""Non-maximum suppression: of boxes that show the same thing, only the most probable one is kept."""

import numpy as np

from engine import Array

_BLOCK = 128
"""Boxes that are compared with each other at a time."""
_SWEPT = 64
"""Maximum kept boxes of a block that all boxes after it are compared with; more are compared block by block."""
_STEP = 8
"""Kept boxes after which those that they drop are taken out."""


def suppress(boxes: Array, scores: Array, classes: Array | None, threshold: float, most: int) -> Array:
    """Return which boxes are kept, as torchvision's `nms` and `batched_nms` do: greedily, by falling score.

    A box is dropped where its intersection over union with a kept box, of its own class, is larger than the threshold;
    of equal scores the first box comes first.

    Args:
        boxes: float32 (boxes, 4), left, top, right and bottom.
        scores: float32 (boxes,), none below 0.
        classes: (boxes,); None to compare boxes of all classes with each other.
        threshold: largest intersection over union of two boxes that are both kept.
        most: how many are kept at most.

    Returns:
        Numbers of the kept boxes, most probable first.
    """
    order = _falling(scores)
    search = _Search(boxes[order], None if classes is None else classes[order], threshold)
    kept: list[int] = []
    waiting = np.arange(len(order))
    swept = 0  # kept boxes that everything in `waiting` was compared with
    while len(waiting) and len(kept) < most:
        block, waiting = waiting[:_BLOCK], waiting[_BLOCK:]
        if len(kept) > swept:
            block = block[~search.pairs(block, np.array(kept[swept:])).any(axis=1)]
        kept += search.keep(block)
        if len(kept) - swept <= _SWEPT and len(kept) < most:
            waiting = search.sweep(waiting, kept[swept:])
            swept = len(kept)
    return np.asarray(order[kept[:most]])


def _falling(scores: Array) -> Array:
    """Return the order of falling scores; equal ones stay in their order.

    The bits of numbers that are not negative are in the order of the numbers: sorting them with their places below is
    several times as fast as a stable sort of numbers.
    """
    bits = np.ascontiguousarray(scores, np.float32).view(np.uint32)
    keys = (~bits).astype(np.uint64) << np.uint64(32) | np.arange(len(scores), dtype=np.uint64)
    keys.sort()
    return np.asarray(keys & np.uint64(0xFFFFFFFF)).astype(np.intp)


class _Search:
    """Boxes in order of falling score, and whether they overlap.

    Args:
        boxes: (boxes, 4).
        classes: (boxes,), or None.
        threshold: as for `suppress`.
    """

    def __init__(self, boxes: Array, classes: Array | None, threshold: float) -> None:
        self._sides = np.ascontiguousarray(boxes.T)  # one row for each side: numpy reads them without gaps
        self._areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        self._classes = classes
        self._threshold = np.float32(threshold)

    def keep(self, block: Array) -> list[int]:
        """Return the boxes of a block that are kept, in order."""
        overlaps = self.pairs(block, block)
        alive = np.ones(len(block), bool)
        kept = []
        for index, box in enumerate(block.tolist()):
            if alive[index]:
                kept.append(box)
                alive &= ~overlaps[index]
        return kept

    def sweep(self, waiting: Array, kept: list[int]) -> Array:
        """Return those of the waiting boxes that no kept one overlaps."""
        for start in range(0, len(kept), _STEP):
            sides, areas = self._sides[:, waiting], self._areas[waiting]
            classes = None if self._classes is None else self._classes[waiting]
            hit = np.zeros(len(waiting), bool)
            for box in kept[start : start + _STEP]:
                over = self._over(sides, areas, self._sides[:, box], self._areas[box])
                hit |= (
                    over
                    if classes is None or self._classes is None
                    else over & (classes == self._classes[box])
                )
            waiting = waiting[~hit]
        return waiting

    def pairs(self, first: Array, second: Array) -> Array:
        """Return (first, second): whether two boxes overlap."""
        rows, columns = self._sides[:, first, None], self._sides[:, None, second]
        over = self._over(rows, self._areas[first, None], columns, self._areas[None, second])
        if self._classes is not None:
            over &= self._classes[first, None] == self._classes[None, second]
        return over

    def _over(self, sides: Array, areas: Array, others: Array, other_areas: Array) -> Array:
        """Compare intersections over unions with the threshold; two boxes without any area do not overlap."""
        width = np.minimum(sides[2], others[2]) - np.maximum(sides[0], others[0])
        height = np.minimum(sides[3], others[3]) - np.maximum(sides[1], others[1])
        inter = np.maximum(width, 0, out=width)
        inter *= np.maximum(height, 0, out=height)
        union = areas + other_areas
        union -= inter
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.divide(inter, union, out=union) > self._threshold)
