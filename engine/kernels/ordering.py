"""Putting values in order, and what follows from their order: medians, quantiles, running maxima."""

from collections.abc import Callable
from typing import Any

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


def is_nan(x: Array) -> Array:
    """Return which elements are NaN; of integers and bools none is."""
    return np.isnan(x) if x.dtype.kind in "fc" else np.zeros(x.shape, np.bool_)


def nth(x: Array, place: Array | int, axis: int) -> tuple[Array, Array]:
    """Return the values that are `place`-th in order along an axis, of size 1 then, and their indices.

    `place` is one number, or one for each line, with the axis kept. NaN counts as the largest.
    """
    values, indices = ordered(x, x.shape[axis], axis, descending=False)
    shape = tuple(1 if place_ == axis else size for place_, size in enumerate(x.shape))
    places = np.broadcast_to(np.asarray(place), shape)
    return np.take_along_axis(values, places, axis), np.take_along_axis(indices, places, axis)


def median(x: Array, axis: int, *, skip_nan: bool) -> tuple[Array, Array]:
    """Return the lower median along an axis, which keeps size 1, and its index.

    With a NaN in the line it is the first NaN, unless `skip_nan` leaves them out.
    """
    missing = is_nan(x)
    if skip_nan:
        seen = x.shape[axis] - missing.sum(axis, keepdims=True)
        return nth(x, np.maximum(seen - 1, 0) // 2, axis)
    values, indices = nth(x, (x.shape[axis] - 1) // 2, axis)
    first = np.argmax(missing, axis, keepdims=True)
    any_missing = missing.any(axis, keepdims=True)
    return (
        np.where(any_missing, np.take_along_axis(x, first, axis), values),
        np.where(any_missing, first, indices),
    )


def mode(x: Array, axis: int) -> tuple[Array, Array]:
    """Return the most frequent value along an axis, which keeps size 1, the smallest of several, and its last index."""
    values, indices = ordered(x, x.shape[axis], axis, descending=False)
    values, indices = np.moveaxis(values, axis, -1), np.moveaxis(indices, axis, -1)
    places = np.arange(values.shape[-1])
    starts = np.ones(values.shape, np.bool_)
    starts[..., 1:] = values[..., 1:] != values[..., :-1]
    lengths = places - np.maximum.accumulate(np.where(starts, places, 0), -1)
    last = np.argmax(
        lengths, -1, keepdims=True
    )  # the first of the longest runs reaches this length at its end
    found = (np.take_along_axis(array, last, -1) for array in (values, indices))
    value, index = (np.moveaxis(array, -1, axis) for array in found)
    return value, index


def running(x: Array, axis: int, *, largest: bool) -> tuple[Array, Array]:
    """Return the extreme of all values so far along an axis, and the index of the last element that equals it.

    From the first NaN on it is NaN.
    """
    accumulate: Callable[..., Array] = (np.maximum if largest else np.minimum).accumulate
    values = accumulate(x, axis)
    shape = [1] * x.ndim
    shape[axis] = -1
    places = np.arange(x.shape[axis]).reshape(shape)
    return values, np.maximum.accumulate(np.where(is_nan(x) | (x == values), places, 0), axis)


def quantiles(x: Array, q: Array, axis: int, interpolation: str, *, skip_nan: bool) -> Array:
    """Return quantiles along the last axis after `axis` was moved there: (len(q), the other axes).

    Args:
        x: float values.
        q: (n), from 0 to 1, in the dtype of `x`.
        axis: the axis that is reduced.
        interpolation: between the two values around a quantile: linear, lower, higher, nearest or midpoint.
        skip_nan: leave NaN out; otherwise a line with a NaN gives NaN.
    """
    lines = np.sort(np.moveaxis(x, axis, -1), -1)
    missing = is_nan(lines)
    last = np.asarray(lines.shape[-1] - 1)
    highest = last - missing.sum(-1) if skip_nan else np.broadcast_to(last, lines.shape[:-1])
    ranks: Any = q.reshape(-1, *(1,) * highest.ndim) * np.maximum(highest, 0).astype(q.dtype)
    if not skip_nan:
        ranks = np.where(missing.any(-1), q.dtype.type(last), ranks)
    if interpolation in _WHOLE_RANKS:
        ranks = _WHOLE_RANKS[interpolation](ranks)
    below = np.floor(ranks)
    weight = np.full_like(ranks, 0.5) if interpolation == "midpoint" else ranks - below
    low, high = (
        np.take_along_axis(lines[np.newaxis], rank.astype(np.int64)[..., np.newaxis], -1)[..., 0]
        for rank in (below, np.ceil(ranks))
    )
    # as torch.lerp has it: from the nearer end
    between = np.where(weight < 0.5, low + weight * (high - low), high - (high - low) * (1 - weight))
    return np.where(low == high, low, between).astype(x.dtype, copy=False)


_WHOLE_RANKS: dict[str, Callable[[Any], Any]] = {"lower": np.floor, "higher": np.ceil, "nearest": np.rint}
