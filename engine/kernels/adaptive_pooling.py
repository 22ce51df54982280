"""Adaptive average and max pooling (`torch.nn.functional.adaptive_avg_pool1d` …).

Cell i of an axis pools the input from floor(i * size / cells) up to, but not including,
ceil((i + 1) * size / cells).
"""

import math
from collections.abc import Sequence

import numpy as np

from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.extremes import max_over_positions
from engine.kernels.sums import total
from engine.kernels.windows import along, require_floating


def adaptive_avg_pool(input: Array, output_size: Sequence[int]) -> Array:
    """Return the means of `output_size` cells per axis.

    Args:
        input: (batch, channels, *spatial), floating; float16 is summed in float32.
        output_size: cells of each spatial axis.

    Returns:
        (batch, channels, *output_size) of the input's dtype.

    Raises:
        ArgumentError: what `adaptive_shape` raises, or `input` is not of a floating dtype.
    """
    require_floating("input", input)
    shape = adaptive_shape(input.shape, output_size)
    pooled = input.astype(np.float32) if input.dtype == np.float16 else input
    if all(cells == 1 for cells in output_size):
        planes = pooled.reshape(*shape[:2], math.prod(input.shape[2:]))
        pooled = np.mean(planes, -1).reshape(shape)
    else:
        for axis, cells in enumerate(output_size, 2):
            pooled = _mean_axis(pooled, axis, cells)
    return pooled.astype(input.dtype, copy=pooled is input)


def adaptive_maxima(input: Array, output_size: Sequence[int]) -> Array:
    """Return the maxima of `output_size` cells per axis, as `adaptive_max_pool` does, but not where they lie.

    Raises:
        ArgumentError: what `adaptive_shape` raises.
    """
    adaptive_shape(input.shape, output_size)
    pooled = input
    for axis, cells in enumerate(output_size, 2):
        pooled = _max_axis(pooled, axis, cells)
    return pooled


def adaptive_max_pool(input: Array, output_size: Sequence[int]) -> tuple[Array, Array]:
    """Return the maxima of `output_size` cells per axis, and where in its plane each lies.

    Args:
        input: (batch, channels, *spatial), real or integer.
        output_size: cells of each spatial axis.

    Returns:
        (batch, channels, *output_size) maxima of the input's dtype, and as many int64 positions in the
        flattened spatial axes: the first of equal maxima, or the last NaN.

    Raises:
        ArgumentError: what `adaptive_shape` raises.
    """
    adaptive_shape(input.shape, output_size)
    return max_over_positions(
        input, [_cells(*axis) for axis in zip(input.shape[2:], output_size, strict=True)]
    )


def adaptive_shape(input_shape: Sequence[int], output_size: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of an adaptive pooling's output.

    Raises:
        ArgumentError: ranks disagree, a size is negative, or a spatial axis of the input is empty.
    """
    if len(input_shape) != len(output_size) + 2:
        expected = f"{len(output_size) + 2}: (batch, channels, *spatial)"
        raise ArgumentError("input", f"has {len(input_shape)} axes", expected)
    if min(output_size) < 0:
        raise ArgumentError("output_size", f"got {tuple(output_size)}", "no negative size")
    if min(input_shape[2:]) < 1:
        raise ArgumentError("input", f"has shape {tuple(input_shape)}", "no empty spatial axis")
    return (*input_shape[:2], *output_size)


def _cells(size: int, cells: int) -> Array:
    """Return the (longest cell, cells) positions of each cell, its last one repeated where it is shorter."""
    index = np.arange(cells)
    first, end = index * size // max(cells, 1), -(-(index + 1) * size // max(cells, 1))
    taps = int((end - first).max(initial=1))
    positions: Array = np.minimum(first + np.arange(taps)[:, None], end - 1)
    return positions


def _max_axis(array: Array, axis: int, cells: int) -> Array:
    table = _cells(array.shape[axis], cells)
    if len(table) > cells > 0:  # few long cells: each separately
        spans = zip(table[0], table[-1], strict=True)
        return np.stack([array[along(axis, slice(first, last + 1))].max(axis) for first, last in spans], axis)
    total: Array = array.take(table[0], axis)
    for positions in table[1:]:
        np.maximum(total, array.take(positions, axis), out=total)
    return total


def _mean_axis(array: Array, axis: int, cells: int) -> Array:
    size = array.shape[axis]
    if cells == size:
        return array
    if cells and size % cells == 0:
        split = array.reshape(*array.shape[:axis], cells, size // cells, *array.shape[axis + 1 :])
        means: Array = total(split, (axis + 1,)) / split.dtype.type(size // cells)
        return means
    table = _cells(size, cells)
    lengths = (np.diff(table, axis=0) > 0).sum(0) + 1
    trailing = (1,) * (array.ndim - axis - 1)
    sums: Array = array.take(table[0], axis)
    for tap, positions in enumerate(table[1:], 1):
        np.add(sums, array.take(positions, axis), out=sums, where=(lengths > tap).reshape(-1, *trailing))
    sums /= lengths.reshape(-1, *trailing).astype(sums.dtype)
    return sums
