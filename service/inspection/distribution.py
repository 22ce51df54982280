"""The distribution of an attribute's values."""

from dataclasses import dataclass

import numpy as np

from engine import Array

_BINS = 40
_MAX_ELEMENTS = 1 << 22
"""Maximum elements that are looked at: of more, every second, third … is taken."""
_MAX_SCALE = 1e300
"""Widest range of a histogram; that of a wider one would be infinite."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """The distribution of values; of complex ones, of their absolute values.

    Attributes:
        counted: elements that were looked at.
        minimum: least finite value; None where there is none.
        maximum: greatest finite value; None likewise.
        mean: mean of the finite values; None likewise.
        std: their population standard deviation; None likewise.
        nan: elements that are no numbers.
        inf: elements that are infinite.
        edges: edges of the histogram's classes, ascending; empty where no value is finite.
        counts: finite values in each class, one fewer than there are edges.
    """

    counted: int
    minimum: float | None
    maximum: float | None
    mean: float | None
    std: float | None
    nan: int
    inf: int
    edges: list[float]
    counts: list[int]


def distribution_of(values: Array) -> Distribution:
    """Return the distribution of an array's values, from some of them where it has very many."""
    flat = thinned(values)
    numbers = np.abs(flat) if flat.dtype.kind == "c" else flat
    numbers = numbers.astype(np.float64)
    nan = int(np.isnan(numbers).sum())
    finite = numbers[np.isfinite(numbers)]
    inf = numbers.size - nan - finite.size
    if not finite.size:
        return Distribution(numbers.size, None, None, None, None, nan, inf, [], [])
    edges, counts = _histogram(finite, is_whole=flat.dtype.kind in "biu")
    with np.errstate(over="ignore"):
        mean, std = float(finite.mean()), float(finite.std())
    return Distribution(
        numbers.size, float(finite.min()), float(finite.max()), mean, std, nan, inf, edges, counts
    )


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
