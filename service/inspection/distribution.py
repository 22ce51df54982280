"""The distribution of an attribute's values."""

from typing import Any

import numpy as np

from engine import Array

_BINS = 40
_MAX_ELEMENTS = 1 << 22
"""Maximum elements that are looked at: of more, every second, third … is taken."""
_MAX_SCALE = 1e300
"""Widest range of a histogram; that of a wider one would be infinite."""


def describe_distribution(values: Array) -> dict[str, Any]:
    """Return the distribution of an array's values, from some of them where it has very many; of complex ones by size.

    Returns:
        `counted`, the elements that were looked at; `nan` and `inf`, those that are no numbers, and infinite; `min`,
        `max`, `mean` and `std`, the population's, of the finite ones, and their `histogram`, ascending `edges` and
        `counts`, one fewer. Figures of the finite ones are None where there are none.
    """
    flat = thinned(values)
    numbers = np.abs(flat) if flat.dtype.kind == "c" else flat
    numbers = numbers.astype(np.float64)
    nan = int(np.isnan(numbers).sum())
    finite = numbers[np.isfinite(numbers)]
    found: dict[str, Any] = {"counted": numbers.size, "nan": nan, "inf": numbers.size - nan - finite.size}
    if not finite.size:
        return found | dict.fromkeys(("min", "max", "mean", "std", "histogram"))
    with np.errstate(over="ignore"):
        mean, std = float(finite.mean()), float(finite.std())
    edges, counts = _histogram(finite, is_whole=flat.dtype.kind in "biu")
    found |= {"min": float(finite.min()), "max": float(finite.max()), "mean": mean, "std": std}
    return found | {"histogram": {"edges": edges, "counts": counts}}


def thinned(values: Array) -> Array:
    """Return the elements of an array in a row, or where they are very many, every second, third … of them."""
    flat = values.reshape(-1)
    return flat[:: -(-flat.size // _MAX_ELEMENTS) or 1]


def _histogram(finite: Array, is_whole: bool) -> tuple[list[float], list[int]]:
    """Return edges and counts; of few whole numbers each is in the middle of a class of its own."""
    low, high = float(finite.min()), float(finite.max())
    if is_whole and high - low < _BINS:
        counts, edges = np.histogram(finite, int(high - low) + 1, (low - 0.5, high + 0.5))
    elif high - low < _MAX_SCALE and high - low > np.spacing(max(abs(low), abs(high))) * _BINS:
        counts, edges = np.histogram(finite, _BINS, (low, high))
    else:
        return [low, high], [finite.size]
    return edges.tolist(), counts.tolist()
