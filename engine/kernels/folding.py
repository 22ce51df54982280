"""Windows to columns and back (`torch.nn.functional.unfold` and `fold`, also known as im2col and col2im)."""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.padding import pad_constant
from engine.kernels.windows import BlockIndex, clip_steps, conv_output_size, require_rank, window_view


def unfold(
    input: Array,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Array:
    """Lay every window of `input` out as a column.

    Args:
        input: (batch, channels, *spatial), any dtype.
        kernel_size: elements per window and spatial axis.
        dilation: distance between the elements of a window.
        padding: zeros on both sides of each axis.
        stride: distance between windows.

    Returns:
        (batch, channels * elements per window, windows), windows in row-major order.

    Raises:
        ArgumentError: what `unfold_shape` raises.
    """
    shape = unfold_shape(input.shape, kernel_size, dilation, padding, stride)
    padded = pad_constant(input, [(pad, pad) for pad in padding])
    return np.array(window_view(padded, kernel_size, stride, dilation)).reshape(shape)


def unfold_shape(
    input_shape: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> tuple[int, int, int]:
    """Return the shape that `unfold` gives an input of `input_shape`.

    Raises:
        ArgumentError: ranks disagree, a size or step is not positive, or no window fits.
    """
    rank = len(kernel_size)
    if len(input_shape) != rank + 2:
        expected = f"{rank + 2}: (batch, channels, *spatial)"
        raise ArgumentError("input", f"has {len(input_shape)} axes", expected)
    counts = _window_counts(input_shape[2:], kernel_size, dilation, padding, stride)
    return (input_shape[0], input_shape[1] * math.prod(kernel_size), math.prod(counts))


def fold(
    input: Array,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Array:
    """Add the columns that `unfold` would have made back into the place of their windows.

    Args:
        input: (batch, channels * elements per window, windows), any dtype.
        output_size: length of each spatial axis of the output.
        kernel_size: elements per window and spatial axis.
        dilation: distance between the elements of a window.
        padding: elements on both sides of each axis that windows cover and the output leaves out.
        stride: distance between windows.

    Returns:
        (batch, channels, *output_size) of the input's dtype; float16 is summed in float32.

    Raises:
        ArgumentError: what `fold_shape` raises.
    """
    shape = fold_shape(input.shape, output_size, kernel_size, dilation, padding, stride)
    counts = _window_counts(output_size, kernel_size, dilation, padding, stride)
    output = np.zeros(shape, np.float32 if input.dtype == np.float16 else input.dtype)
    columns = input.reshape(*shape[:2], *kernel_size, *counts)
    add_windows(columns, [-pad for pad in padding], stride, dilation, output)
    return output.astype(input.dtype, copy=False)


def fold_shape(
    input_shape: Sequence[int],
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> tuple[int, ...]:
    """Return the shape that `fold` gives an input of `input_shape`.

    Raises:
        ArgumentError: ranks disagree, a size or step is not positive, no window fits, or the input has
            another number of columns than windows fit, or rows that are no multiple of a window's elements.
    """
    if len(input_shape) != 3:
        expected = "3: (batch, channels * elements per window, windows)"
        raise ArgumentError("input", f"has {len(input_shape)} axes", expected)
    require_rank("output_size", output_size, len(kernel_size))
    counts = _window_counts(output_size, kernel_size, dilation, padding, stride)
    elements, windows = math.prod(kernel_size), math.prod(counts)
    if input_shape[1] % elements:
        raise ArgumentError("input", f"has {input_shape[1]} rows", f"a multiple of {elements}")
    if input_shape[2] != windows:
        raise ArgumentError("input", f"has {input_shape[2]} columns", f"{windows}, one for each window")
    return (input_shape[0], input_shape[1] // elements, *output_size)


def add_windows(
    windows: Array, first: Sequence[int], stride: Sequence[int], dilation: Sequence[int], output: Array
) -> None:
    """Add windows to the elements of `output` that they lie over, in place.

    Args:
        windows: (*leading, *kernel, *counts).
        first: where the first window starts on each axis of the output; may be before it.
        stride: distance between windows on each axis.
        dilation: distance between the elements of a window on each axis.
        output: (*leading, *spatial); what lies outside of it is dropped.
    """
    rank = len(stride)
    leading = output.ndim - rank
    kernel, counts = windows.shape[leading : leading + rank], windows.shape[leading + rank :]
    for tap in product(*map(range, kernel)):
        target: BlockIndex = (...,)
        reached: BlockIndex = (...,)
        for axis in range(rank):
            position = first[axis] + tap[axis] * dilation[axis]
            taken, given = clip_steps(position, stride[axis], counts[axis], output.shape[leading + axis])
            target, reached = (*target, taken), (*reached, given)
        products = windows[(slice(None),) * leading + tap]
        output[target] += products[reached]


def _window_counts(
    sizes: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> list[int]:
    for argument, values in (("dilation", dilation), ("padding", padding), ("stride", stride)):
        require_rank(argument, values, len(kernel_size))
    return [
        conv_output_size(size, kernel, step, pad, pad, gap)
        for size, kernel, gap, pad, step in zip(sizes, kernel_size, dilation, padding, stride, strict=True)
    ]
