"""Looking for places: binary search in sorted lines, and counting into bins."""

from typing import Any

import numpy as np

from engine.dtypes import Array


def search_sorted(lines: Array, values: Array, *, right: bool) -> Array:
    """Find where values would have to be put into sorted lines to keep them sorted.

    Halves the range in every step as PyTorch does, so that lines with NaN, or not sorted, give the same places.

    Args:
        lines: (…, count), or (count) for all values.
        values: (…, asked); any shape where `lines` has one dimension.
        right: whether a value that is there already is passed.

    Returns:
        int64 places from 0 to count, in the shape of `values`.
    """
    low = np.zeros(values.shape, np.int64)
    high = np.full(values.shape, lines.shape[-1])
    while np.any(unresolved := low < high):
        middle = (low + high) // 2
        at = np.minimum(middle, max(lines.shape[-1] - 1, 0))
        seen = lines[at] if lines.ndim == 1 else np.take_along_axis(lines, at, -1)
        before = unresolved & ~(seen > values if right else seen >= values)
        low = np.where(before, middle + 1, low)
        high = np.where(unresolved & ~before, middle, high)
    return low


def histogram(x: Array, bins: int, low: float, high: float) -> Array:
    """Count values in `bins` of one width between two bounds, both included; equal bounds are those of the values.

    Returns:
        Counts in the dtype of `x`.
    """
    values = x.reshape(-1)
    if low == high and values.size:
        low, high = float(values.min()), float(values.max())
    if low == high:
        low, high = low - 1, high + 1
    inside = values[(values >= low) & (values <= high)]
    edges = np.linspace(low, high, bins + 1).astype(x.dtype)
    places = np.clip(np.searchsorted(edges, inside, "right") - 1, 0, bins - 1)
    return np.bincount(places, minlength=bins).astype(x.dtype)


def unique(x: Array) -> tuple[Array, Array, Array]:
    """Return the different values in order, where each element's is among them, and how many elements have it.

    Every NaN is a value of its own.
    """
    values, places, counts = np.unique(
        x.reshape(-1), return_inverse=True, return_counts=True, equal_nan=False
    )
    return values, places.reshape(x.shape), counts


def runs(x: Array) -> tuple[Array, Array, Array]:
    """Return the value of each run of equal elements, the run of each element, and how long each run is."""
    line = x.reshape(-1)
    starts = np.ones(line.shape, np.bool_)
    starts[1:] = line[1:] != line[:-1]
    first: Any = np.flatnonzero(starts)
    places = (np.cumsum(starts) - 1).reshape(x.shape)
    return line[first], places, np.diff(np.append(first, line.size))
