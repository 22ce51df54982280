"""Deformable convolution (`torchvision.ops.deform_conv2d`): every tap of every window has an offset of its own."""

import math
from collections.abc import Sequence

import numpy as np

from engine.dtypes import Array
from engine.kernels.sampling import Planes, linear_taps


def deformable_convolve(
    input: Array,
    offset: Array,
    weight: Array,
    bias: Array | None,
    mask: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Array:
    """Convolve with windows of elements at learned offsets, interpolated (arXiv:1703.06211, 1811.11168).

    Args:
        input: (batch, channels, height, width), zero outside.
        offset: (batch, offset groups * taps * 2, rows, columns): per tap how far down and how far right of its
            place in the window to read. Each offset group has as many neighbouring channels.
        weight: (out channels, channels / groups, kernel height, kernel width).
        bias: (out channels,) or None.
        mask: (batch, offset groups * taps, rows, columns) factors of what is read, or None.
        stride: distance between windows along each of the two axes.
        padding: how far windows begin before the first element of each axis.
        dilation: distance between the elements of a window along each axis.

    Returns:
        (batch, out channels, rows, columns) of the input's dtype. The shapes must fit: see the layer's rule.
    """
    batch, channels = input.shape[:2]
    size, kernel = offset.shape[2:], weight.shape[2:]
    taps, windows = math.prod(kernel), math.prod(size)
    groups = channels // weight.shape[1]
    split = offset.shape[1] // (2 * taps)
    compute = np.dtype(np.float32) if input.dtype == np.float16 else input.dtype
    shifts = offset.astype(compute, copy=False).reshape(batch, split, taps, 2, windows)
    factors = (
        None if mask is None else mask.astype(compute, copy=False).reshape(batch, split, taps, windows, 1)
    )
    places = [_regular(*axis) for axis in zip(size, kernel, stride, padding, dilation, strict=True)]
    rows, columns = _over_windows(*places)
    matrices = weight.astype(compute, copy=False).reshape(groups, weight.shape[0] // groups, -1)
    output = np.empty((batch, groups, matrices.shape[1], windows), compute)
    items = np.arange(split)[:, None, None]
    for item in range(batch):
        planes = Planes(input[item].reshape(split, channels // split, *input.shape[2:]))
        down, right = shifts[item, :, :, 0], shifts[item, :, :, 1]
        read = planes.sample(items, (linear_taps(rows + down), linear_taps(columns + right)))
        if factors is not None:
            read *= factors[item]
        np.matmul(matrices, read.transpose(0, 3, 1, 2).reshape(groups, -1, windows), out=output[item])
    convolved = output.reshape(batch, weight.shape[0], *size)
    if bias is not None:
        convolved += bias.astype(compute, copy=False)[:, None, None]
    return convolved.astype(input.dtype, copy=False)


def _regular(count: int, kernel: int, stride: int, padding: int, dilation: int) -> Array:
    """Return where along one axis the (taps, windows) of an ordinary convolution read."""
    return np.arange(kernel)[:, None] * dilation + np.arange(count) * stride - padding


def _over_windows(rows: Array, columns: Array) -> tuple[Array, Array]:
    """Return the row and the column (taps, windows) that each tap of each window reads, windows row by row."""
    down, right = np.broadcast_arrays(rows[:, None, :, None], columns[None, :, None, :])
    shape = (rows.shape[0] * columns.shape[0], rows.shape[1] * columns.shape[1])
    return down.reshape(shape), right.reshape(shape)
