"""Kernels of maxima over windows of elements that hold several channels, and what numpy makes of such windows."""

import numpy as np

from engine.compiler.contraction.shapes import ImageStrides
from engine.compiler.emit.target import Target
from engine.compiler.kernels.word_pooling import WordPooling
from engine.dtypes import Array
from tests.engine.compiler.kernels.images import Pair, output_size, strides

WINDOWS: tuple[tuple[Pair, Pair, Pair], ...] = (
    ((2, 2), (2, 2), (0, 0)),
    ((3, 3), (2, 1), (1, 1)),
    ((5, 5), (1, 1), (2, 2)),
    ((3, 1), (1, 2), (2, 0)),
)
"""Sizes of windows, with their strides and paddings."""


def pooling(
    target: Target, x: Array, words: int, window: Pair, stride: Pair, padding: Pair, *, is_bf16: bool = False
) -> WordPooling:
    """Return the kernel for an image (images, rows, columns, channels), so many elements to a pixel."""
    images, rows, columns, _ = x.shape
    size = _size(x, window, stride, padding)
    return WordPooling(
        images=images,
        words=words,
        x_size=(rows, columns),
        size=size,
        window=window,
        stride=stride,
        padding=padding,
        strides=ImageStrides(strides(rows, columns, words), strides(*size, words)),
        lanes=target.lanes,
        is_bf16=is_bf16,
    )


def largest_of_windows(x: Array, window: Pair, stride: Pair, padding: Pair, lowest: float) -> Array:
    """Return the largest numbers of each window, channels last; around the image there is the lowest number."""
    edges = ((0, 0), (padding[0],) * 2, (padding[1],) * 2, (0, 0))
    padded = np.pad(x, edges, constant_values=lowest)
    size = _size(x, window, stride, padding)
    found = np.zeros((len(x), *size, x.shape[3]), x.dtype)
    for row, column in np.ndindex(size):
        top, left = row * stride[0], column * stride[1]
        found[:, row, column] = padded[:, top : top + window[0], left : left + window[1]].max((1, 2))
    return found


def _size(x: Array, window: Pair, stride: Pair, padding: Pair) -> Pair:
    return output_size(x, window, stride, (1, 1), (2 * padding[0], 2 * padding[1]))
