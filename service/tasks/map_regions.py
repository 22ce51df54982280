"""Regions of a map whose pixels touch, and the smallest rectangle around each."""

from dataclasses import dataclass

import numpy as np

from engine import Array


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle in any direction.

    Attributes:
        centre: x and y.
        along: unit vector of its first side, x and y.
        sides: length along `along`, and across it.
    """

    centre: Array
    along: Array
    sides: Array

    @property
    def across(self) -> Array:
        """Unit vector of its second side."""
        return np.array([-self.along[1], self.along[0]])

    def grown(self, distance: float) -> "Rectangle":
        """Return it with all sides moved outwards."""
        return Rectangle(self.centre, self.along, self.sides + 2 * distance)

    def corners(self) -> Array:
        """Return its corners (4, 2): upper left, upper right, lower right, lower left."""
        half, other = self.along * self.sides[0] / 2, self.across * self.sides[1] / 2
        points = self.centre + np.array([-half - other, half - other, half + other, other - half])
        points = points[np.argsort(points[:, 0], kind="stable")]
        left, right = (side[np.argsort(side[:, 1], kind="stable")] for side in (points[:2], points[2:]))
        return np.array([left[0], right[0], right[1], left[1]])

    def mean(self, values: Array) -> float:
        """Return the mean of those values of a map (rows, columns) whose places (column, row) lie within it."""
        corners = self.corners()
        (left, top), (right, bottom) = np.floor(corners.min(axis=0)), np.ceil(corners.max(axis=0))
        rows = np.arange(max(0, int(top)), min(values.shape[0], int(bottom) + 1))[:, None]
        columns = np.arange(max(0, int(left)), min(values.shape[1], int(right) + 1))
        x, y = columns - self.centre[0], rows - self.centre[1]
        is_within = abs(x * self.along[0] + y * self.along[1]) <= self.sides[0] / 2 + 0.5
        is_within &= abs(x * self.across[0] + y * self.across[1]) <= self.sides[1] / 2 + 0.5
        found = values[rows, columns][is_within]
        return float(found.mean()) if found.size else 0.0


def find_regions(mask: Array, most: int) -> list[Array]:
    """Return the outline of each region of pixels that touch, also at corners.

    Args:
        mask: bool (rows, columns).
        most: regions at most, the largest ones.

    Returns:
        Of each region the first and the last pixel of each row, (points, 2), as column and row.
    """
    width = mask.shape[1] + 2
    edges = np.flatnonzero(np.diff(np.pad(mask, ((0, 0), (1, 1))).ravel()))
    starts, ends = edges[::2] + 1, edges[1::2] + 1
    if not len(starts):
        return []
    regions = _joined(starts, ends, width)
    sizes = np.bincount(regions, ends - starts)
    chosen = np.argsort(-sizes, kind="stable")[: min(most, np.count_nonzero(sizes))]
    order = np.argsort(regions, kind="stable")
    bounds = np.searchsorted(regions[order], [chosen, chosen + 1])
    runs = [order[first:last] for first, last in bounds.T.tolist()]
    return [_outline(starts[places] - 1, ends[places] - 2, width) for places in runs]


def smallest_rectangle(points: Array) -> Rectangle:
    """Return the rectangle of least area around points (points, 2); a side of it lies along their convex hull."""
    hull = _convex_hull(points)
    sides = np.roll(hull, -1, axis=0) - hull
    lengths = np.hypot(sides[:, 0], sides[:, 1])
    if not lengths.any():
        return Rectangle(hull[0], np.array([1.0, 0.0]), np.zeros(2))
    along = sides[lengths > 0] / lengths[lengths > 0, None]
    axes = np.stack([along, np.stack([-along[:, 1], along[:, 0]], axis=1)], axis=1)
    places = axes @ hull.T  # (sides of the hull, axes, points)
    low, high = places.min(axis=2), places.max(axis=2)
    best = int((high - low).prod(axis=1).argmin())
    return Rectangle((low + high)[best] / 2 @ axes[best], axes[best, 0], (high - low)[best])


def _joined(starts: Array, ends: Array, width: int) -> Array:
    """Return for each run of pixels the first run of its region.

    Args:
        starts: of the runs, ascending, in a map whose rows follow one another.
        ends: behind the last pixel of each.
        width: of a row; its first and its last pixel belong to no run.
    """
    first = np.searchsorted(ends, starts + width, "left")
    counts = (np.searchsorted(starts, ends + width, "right") - first).clip(0)
    above = np.repeat(np.arange(len(starts)), counts)
    below = np.arange(counts.sum()) + np.repeat(first - counts.cumsum() + counts, counts)
    regions = np.arange(len(starts))
    while True:
        ones, others = regions[above], regions[below]
        if (ones == others).all():
            return regions
        lower = np.minimum(ones, others)
        np.minimum.at(regions, ones, lower)
        np.minimum.at(regions, others, lower)
        while (regions[regions] != regions).any():
            regions = regions[regions]


def _outline(first: Array, last: Array, width: int) -> Array:
    """Return the first and the last pixel of each row of a region, of whose runs several may lie in a row."""
    rows, places = np.unique(first // width, return_index=True)
    left, right = first[places] % width, np.maximum.reduceat(last, places) % width
    return np.stack([np.concatenate([left, right]), np.concatenate([rows, rows])], axis=1).astype(float)


def _convex_hull(points: Array) -> Array:
    """Return the corners of the convex hull in order (Andrew's monotone chain)."""
    ordered = np.unique(points, axis=0).tolist()
    if len(ordered) < 3:
        return np.array(ordered)
    return np.array([*_half_hull(ordered), *_half_hull(ordered[::-1])])


def _half_hull(points: list[list[float]]) -> list[list[float]]:
    kept: list[list[float]] = []
    for x, y in points:
        while len(kept) > 1:
            (left, top), (middle, height) = kept[-2:]
            if (middle - left) * (y - top) - (height - top) * (x - left) > 0:
                break
            kept.pop()
        kept.append([x, y])
    return kept[:-1]
