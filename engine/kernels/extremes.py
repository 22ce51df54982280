"""Maxima with their positions, over windows given as a table of positions for each axis, and the way back."""

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.blocks import plane_blocks


def lowest(dtype: np.dtype[Any]) -> Any:
    """Return the value that is below every other: -inf, or the least integer."""
    return -np.inf if np.issubdtype(dtype, np.inexact) else np.iinfo(dtype).min


def window_positions(size: int, count: int, kernel: int, stride: int, padding: int, dilation: int) -> Array:
    """Return the input positions of every pooling window of one axis.

    Returns:
        int64 (kernel, count): column w holds the positions inside the input that window w covers, in order,
        the last one repeated where the window covers fewer than `kernel`. Of a window that covers none it
        holds the first position after the input that the window would visit.
    """
    first = np.arange(count) * stride - padding
    end = np.minimum(first + dilation * (kernel - 1), size - 1)
    first += np.maximum(0, -(first // dilation)) * dilation
    last = first + np.maximum(0, (end - first) // dilation) * dilation
    positions: Array = np.minimum(first + dilation * np.arange(kernel)[:, None], last)
    return positions


def max_over_positions(input: Array, positions: Sequence[Array]) -> tuple[Array, Array]:
    """Return the maximum of every window, and where in its plane it lies.

    Args:
        input: (batch, channels, *spatial), real or integer.
        positions: for each spatial axis a (taps, windows) table of positions in it. Repetitions are harmless;
            a window whose first position lies after the axis is empty.

    Returns:
        (batch, channels, *windows) maxima in the input's dtype (`lowest` of an empty window), and as many
        int64 positions in the flattened spatial axes: the first of equal maxima, or the last NaN.
    """
    sizes = input.shape[2:]
    shape = (*input.shape[:2], *(table.shape[1] for table in positions))
    best, at = np.empty(shape, input.dtype), np.empty(shape, np.int64)
    index = np.arange(math.prod(sizes)).reshape(1, *sizes)
    for source, maxima, places in plane_blocks(input, best, at):
        values, origins = source, np.broadcast_to(index, source.shape)
        for axis in reversed(range(len(sizes))):
            table = np.minimum(positions[axis], sizes[axis] - 1)
            values, origins = _reduce_axis(values, origins, axis + 1, table)
        maxima[...], places[...] = values, origins
    starts = [table[0] for table in positions]
    empty = reduce(np.logical_or.outer, [start >= size for start, size in zip(starts, sizes, strict=True)])
    if empty.any():
        best[..., empty] = lowest(input.dtype)
        at[..., empty] = reduce(np.add.outer, _scaled(starts, sizes))[empty]
    return best, at


def max_unpool(input: Array, indices: Array, output_size: Sequence[int]) -> Array:
    """Put maxima back where they came from, among zeros.

    Args:
        input: (batch, channels, *spatial) maxima.
        indices: as many integers, positions in the flattened spatial axes of the output.
        output_size: length of each spatial axis of the output.

    Returns:
        (batch, channels, *output_size) of the input's dtype. Of several maxima for one position one stays.

    Raises:
        ArgumentError: `indices` has another shape than `input`, or a position outside the output.
    """
    if indices.shape != input.shape:
        raise ArgumentError("indices", f"has shape {indices.shape}", f"{input.shape}, the input's")
    batch, channels = input.shape[:2]
    plane = math.prod(output_size)
    if indices.size and not 0 <= indices.min() <= indices.max() < plane:
        raise ArgumentError("indices", f"goes from {indices.min()} to {indices.max()}", f"0 to {plane - 1}")
    output = np.zeros((batch, channels, plane), input.dtype)
    windows = math.prod(input.shape[2:])
    positions, maxima = (array.reshape(batch, channels, windows) for array in (indices, input))
    np.put_along_axis(output, positions, maxima, axis=2)
    return output.reshape(batch, channels, *output_size)


def _reduce_axis(values: Array, at: Array, axis: int, table: Array) -> tuple[Array, Array]:
    best, best_at = values.take(table[0], axis), at.take(table[0], axis)
    for tap in table[1:]:
        candidate = values.take(tap, axis)
        better = (candidate > best) | np.isnan(candidate)
        np.copyto(best, candidate, where=better)
        np.copyto(best_at, at.take(tap, axis), where=better)
    return best, best_at


def _scaled(starts: Sequence[Array], sizes: Sequence[int]) -> list[Array]:
    return [start * math.prod(sizes[axis + 1 :]) for axis, start in enumerate(starts)]
