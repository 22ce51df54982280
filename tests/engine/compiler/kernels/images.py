"""Images for kernels, channels last, and what the numpy routines make of them."""

from collections.abc import Callable

import numpy as np

from engine.dtypes import Array
from engine.kernels.convolution import convolve

Pair = tuple[int, int]

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, np.float32(0)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
"""One whose code is short, and one whose code a kernel holds once, in a loop."""


def numbers(*shape: int, seed: int = 0) -> Array:
    """Return normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def steps(view: Array) -> tuple[int, ...]:
    """Return the strides of an array, in elements."""
    return tuple(stride // view.itemsize for stride in view.strides)


def strides(rows: int, columns: int, channels: int) -> tuple[int, int, int]:
    """Return the strides of images, rows and pixels that lie without gaps."""
    return rows * columns * channels, columns * channels, channels


def output_size(x: Array, kernel: Pair, stride: Pair, dilation: Pair, padding: Pair = (0, 0)) -> Pair:
    """Return rows and columns of the output; `padding` is what both sides of an axis have together."""
    rows, columns = (
        (extent + pads - (taps - 1) * gap - 1) // step + 1
        for extent, pads, taps, gap, step in zip(x.shape[1:3], padding, kernel, dilation, stride, strict=True)
    )
    return rows, columns


def convolved(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Pair = (1, 1),
    dilation: Pair = (1, 1),
    groups: int = 1,
    padding: Pair = (0, 0),
) -> Array:
    """Return the numpy routine's result, channels last; of an odd padding the larger part comes after."""
    pairs = [(pads // 2, pads - pads // 2) for pads in padding]
    y = convolve(x.transpose(0, 3, 1, 2), weight, bias, stride, pairs, dilation, groups)
    return np.ascontiguousarray(y.transpose(0, 2, 3, 1))
