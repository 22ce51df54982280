"""Search and counting layers under their ATen names: nonzero, searchsorted, bincount and similar."""

from typing import Any

import numpy as np

from engine.binding.arguments import Ints, Operand
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import axes, axis, reduced_shape
from engine.kernels.promotion import BOOL, INT64
from engine.layers.checks import check_kind, check_rank, check_shape
from engine.spec import UNKNOWN, TensorSpec, Unknown

MAX_BINS = 2**28
"""Maximum length of a `bincount` result, which depends on data and so is not part of a run's memory plan."""

_INT32 = np.dtype(np.int32)


def _infer_truth(input: TensorSpec, dim: Ints, keepdim: bool) -> TensorSpec:
    dtype = input.dtype if input.dtype == np.uint8 else BOOL
    return TensorSpec(reduced_shape(input.shape, axes(dim, input.rank), keepdim), dtype)


@layer("aten::any", infer=_infer_truth)
def any_true(input: Array, dim: Ints = (), keepdim: bool = False) -> Array:
    """Return whether anything along some dimensions, or anywhere, is not zero; of bytes as a byte."""
    found = np.any(input, axes(dim, input.ndim), keepdims=keepdim)
    return np.asarray(found, input.dtype if input.dtype == np.uint8 else BOOL)


@layer("aten::all", infer=_infer_truth)
def all_true(input: Array, dim: Ints = (), keepdim: bool = False) -> Array:
    """Return whether nothing along some dimensions, or anywhere, is zero; of bytes as a byte."""
    found = np.all(input, axes(dim, input.ndim), keepdims=keepdim)
    return np.asarray(found, input.dtype if input.dtype == np.uint8 else BOOL)


def _infer_count_nonzero(input: TensorSpec, dim: Ints) -> TensorSpec:
    return TensorSpec(reduced_shape(input.shape, axes(dim, input.rank), False), INT64)


@layer("aten::count_nonzero", infer=_infer_count_nonzero)
def count_nonzero(input: Array, dim: Ints = ()) -> Array:
    """Count what is not zero, along some dimensions or everywhere."""
    return np.asarray(np.count_nonzero(input, axes(dim, input.ndim)), np.int64)


def _infer_places() -> Unknown:
    return UNKNOWN


@layer("aten::nonzero", "aten::argwhere", infer=_infer_places)
def nonzero(input: Array) -> Array:
    """Find the indices of what is not zero, one element a row."""
    return np.argwhere(input).astype(np.int64, copy=False)


@layer("aten::nonzero_numpy", "aten::where", infer=_infer_places)
def nonzero_list(input: Array) -> list[Array]:
    """Find the indices of what is not zero, one vector for each dimension."""
    return list(np.nonzero(np.atleast_1d(input)))


def _infer_bincount(input: TensorSpec, weights: TensorSpec | None, minlength: int) -> Unknown:
    check_kind("input", input, "iu")
    check_rank("input", input, 1)
    if weights is not None:
        check_kind("weights", weights, "biuf")
        check_shape("weights", weights, input.shape)
    if not 0 <= minlength <= MAX_BINS:
        raise ArgumentError("minlength", f"got {minlength}", f"0 to {MAX_BINS}")
    return UNKNOWN


@layer("aten::bincount", infer=_infer_bincount)
def bincount(input: Array, weights: Array | None = None, minlength: int = 0) -> Array:
    """Count how often each number from 0 on comes up, or add up the weights of each."""
    if input.size and not 0 <= input.min() <= input.max() < MAX_BINS:
        raise ArgumentError("input", f"got {input.min()} to {input.max()}", f"0 to {MAX_BINS - 1}")
    counts = np.bincount(input, minlength=minlength).astype(np.int64, copy=False)
    if weights is None or not input.size:
        return counts
    sums = np.zeros(counts.shape, np.float32 if weights.dtype == np.float32 else np.float64)
    np.add.at(sums, input, weights.astype(sums.dtype))
    return sums


def _infer_histc(input: TensorSpec, bins: int, min: float, max: float) -> TensorSpec:
    check_kind("input", input, "f")
    if bins < 1 or min > max or not np.isfinite([min, max]).all():
        raise ArgumentError("bins", f"got {bins} from {min} to {max}", "at least 1, between ordered bounds")
    return input.with_shape((bins,))


@layer("aten::histc", infer=_infer_histc)
def histc(input: Array, bins: int = 100, min: float = 0, max: float = 0) -> Array:
    """Count the values in bins of one width."""
    if min == max and not np.all(np.isfinite(input)):
        raise ArgumentError("input", "got NaN or infinity", "finite values, as no bounds are given")
    return _histogram(input, bins, min, max)


def _infer_searchsorted(
    sorted_sequence: TensorSpec,
    input: TensorSpec | float,
    out_int32: bool,
    right: bool,
    side: str | None,
    sorter: TensorSpec | None,
) -> TensorSpec:
    shape = input.shape if isinstance(input, TensorSpec) else ()
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ArgumentError("side", f"got {side!r}, right {right}", "'left' or 'right', and no contradiction")
    if sorter is not None and (sorter.shape != sorted_sequence.shape or sorter.dtype != INT64):
        raise ArgumentError("sorter", f"got {sorter}", f"shape {sorted_sequence.shape} in int64")
    if isinstance(input, TensorSpec) and input.dtype != sorted_sequence.dtype:
        raise ArgumentError("input", f"got dtype {input.dtype}", f"{sorted_sequence.dtype}")
    if sorted_sequence.rank != 1 and (not shape or shape[:-1] != sorted_sequence.shape[:-1]):
        raise ArgumentError("input", f"got shape {shape}", f"{sorted_sequence.shape} but for the last")
    return TensorSpec(shape, _INT32 if out_int32 else INT64)


@layer("aten::searchsorted", infer=_infer_searchsorted)
def searchsorted(
    sorted_sequence: Array,
    input: Operand,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Array | None = None,
) -> Array:
    """Find where values fit into sorted lines: before equal ones, or behind them with `right`."""
    lines = sorted_sequence if sorter is None else np.take_along_axis(sorted_sequence, sorter, -1)
    places = _search_sorted(lines, np.asarray(input), right=right or side == "right")
    return places.astype(np.int32 if out_int32 else np.int64, copy=False)


def _infer_bucketize(
    input: TensorSpec | float, boundaries: TensorSpec, out_int32: bool, right: bool
) -> TensorSpec:
    check_rank("boundaries", boundaries, 1)
    return _infer_searchsorted(boundaries, input, out_int32, right, None, None)


@layer("aten::bucketize", infer=_infer_bucketize)
def bucketize(input: Operand, boundaries: Array, out_int32: bool = False, right: bool = False) -> Array:
    """Find between which boundaries values are: those equal to one before it, or behind it with `right`."""
    return searchsorted(boundaries, input, out_int32, right)


def _chosen(results: tuple[Array, Array, Array], inverse: bool, counts: bool) -> tuple[Array, Array, Array]:
    empty = np.empty((0,), np.int64)
    return results[0], results[1] if inverse else empty, results[2] if counts else empty


def _infer_unique(input: TensorSpec) -> Unknown:
    check_kind("input", input, "biuf")
    return UNKNOWN


@layer("aten::_unique2", infer=_infer_unique)
def unique(
    input: Array, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Array, Array, Array]:
    """Give the different values in order, where each element's is, and how many there are of each."""
    del sorted
    return _chosen(_unique_values(input), return_inverse, return_counts)


@layer("aten::unique_consecutive", infer=_infer_unique)
def unique_consecutive(
    input: Array, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Array, Array, Array]:
    """Give one value for each run of equal elements, the run of each element, and how long each is."""
    if dim is not None and not (input.ndim == 1 and axis(dim, 1) == 0):
        raise ArgumentError("dim", f"got {dim}", "None, or the dimension of a vector")
    return _chosen(_runs(input), return_inverse, return_counts)


def _infer_one_hot(input: TensorSpec, num_classes: int) -> TensorSpec | Unknown:
    if input.dtype != INT64:
        raise ArgumentError("input", f"got dtype {input.dtype}", "int64")
    return UNKNOWN if num_classes == -1 else _with_classes(input, num_classes)


def _with_classes(input: TensorSpec, num_classes: int) -> TensorSpec:
    if num_classes < 1:
        raise ArgumentError("num_classes", f"got {num_classes}", "1 or more, or -1")
    return input.with_shape((*input.shape, num_classes))


@layer("aten::one_hot", infer=_infer_one_hot)
def one_hot(input: Array, num_classes: int = -1) -> Array:
    """Give vectors that are 1 at each element's class and 0 elsewhere; -1 takes as many classes as there are."""
    if not input.size and num_classes == -1:
        raise ArgumentError("num_classes", "got -1", "a number, as the input is empty")
    classes = int(input.max()) + 1 if num_classes == -1 else num_classes
    if input.size and (input.min() < 0 or input.max() >= classes):
        raise ArgumentError("input", f"got from {input.min()} to {input.max()}", f"from 0 to {classes - 1}")
    return np.asarray(input[..., np.newaxis] == np.arange(classes), np.int64)


def _search_sorted(lines: Array, values: Array, *, right: bool) -> Array:
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


def _histogram(x: Array, bins: int, low: float, high: float) -> Array:
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


def _unique_values(x: Array) -> tuple[Array, Array, Array]:
    """Return the different values in order, where each element's is among them, and how many elements have it.

    Every NaN is a value of its own.
    """
    values, places, counts = np.unique(
        x.reshape(-1), return_inverse=True, return_counts=True, equal_nan=False
    )
    return values, places.reshape(x.shape), counts


def _runs(x: Array) -> tuple[Array, Array, Array]:
    """Return the value of each run of equal elements, the run of each element, and how long each run is."""
    line = x.reshape(-1)
    starts = np.ones(line.shape, np.bool_)
    starts[1:] = line[1:] != line[:-1]
    first: Any = np.flatnonzero(starts)
    places = (np.cumsum(starts) - 1).reshape(x.shape)
    return line[first], places, np.diff(np.append(first, line.size))
