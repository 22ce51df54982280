"""Putting values in order."""

import numpy as np

from engine.dtypes import Array


def ordered(x: Array, count: int, axis: int, *, descending: bool) -> tuple[Array, Array]:
    """Return the first `count` values in order along an axis, and their int64 indices.

    Equal values keep their order. NaN counts as the largest.
    """
    if descending:
        # Sorting the reversed axis and reversing the outcome keeps equal values in order; NaN, last, comes first.
        backwards = np.flip(np.argsort(np.flip(x, axis), axis, stable=True), axis)
        order = x.shape[axis] - 1 - backwards
    else:
        order = np.argsort(x, axis, stable=True)
    chosen = order[(slice(None),) * axis + (slice(count),)]
    return np.take_along_axis(x, chosen, axis), chosen.astype(np.int64, copy=False)
