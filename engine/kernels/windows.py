"""Sliding-window geometry: how many windows fit along an axis, and views of an array window by window.

Sizes are in elements, one axis at a time. The formulas are those in PyTorch's documentation of `Conv2d`,
`ConvTranspose2d` and `MaxPool2d`.
"""

from collections.abc import Sequence
from types import EllipsisType
from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from engine.dtypes import Array
from engine.errors import ArgumentError

Pairs: TypeAlias = Sequence[tuple[int, int]]
"""(before, after) of each axis, in elements."""

BlockIndex: TypeAlias = tuple[slice | EllipsisType, ...]
"""Index of a block of an array."""


def conv_output_size(
    size: int, kernel: int, stride: int = 1, pad_before: int = 0, pad_after: int = 0, dilation: int = 1
) -> int:
    """Return how many windows of `kernel` elements, `dilation` apart, fit into the padded axis.

    Raises:
        ArgumentError: a size or step is not positive, padding is negative, or no window fits.
    """
    require_positive("kernel_size", kernel)
    require_positive("stride", stride)
    require_positive("dilation", dilation)
    if pad_before < 0 or pad_after < 0:
        raise ArgumentError("padding", f"got ({pad_before}, {pad_after})", "no negative padding")
    padded = size + pad_before + pad_after
    extent = dilation * (kernel - 1) + 1
    if extent > padded:
        problem = f"a window spans {extent} elements, the padded input only {padded}"
        raise ArgumentError("kernel_size", problem, f"at most {padded}")
    return (padded - extent) // stride + 1


def transposed_output_size(
    size: int, kernel: int, stride: int = 1, padding: int = 0, output_padding: int = 0, dilation: int = 1
) -> int:
    """Return the length of an axis of a transposed convolution's output.

    Raises:
        ArgumentError: a size or step is not positive, a padding is negative or `output_padding` not below
            `stride` or `dilation`, or the output would be empty.
    """
    require_positive("kernel_size", kernel)
    require_positive("stride", stride)
    require_positive("dilation", dilation)
    if padding < 0:
        raise ArgumentError("padding", f"got {padding}", "no negative padding")
    limit = max(stride, dilation)
    if not 0 <= output_padding < limit:
        expected = f"at least 0 and less than {limit}, the larger of stride and dilation"
        raise ArgumentError("output_padding", f"got {output_padding}", expected)
    output = (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1
    if output < 1:
        raise ArgumentError("input", f"an axis of {size} gives an output axis of {output}", "a larger input")
    return output


def pool_output_size(
    size: int, kernel: int, stride: int, padding: int = 0, dilation: int = 1, ceil_mode: bool = False
) -> int:
    """Return how many pooling windows an axis has.

    With `ceil_mode` windows may hang over the end, as long as they start inside the input or the padding
    before it.

    Raises:
        ArgumentError: a size or step is not positive, padding exceeds half the kernel, or no window fits.
    """
    require_positive("kernel_size", kernel)
    require_positive("stride", stride)
    require_positive("dilation", dilation)
    if not 0 <= padding <= kernel // 2:
        raise ArgumentError("padding", f"got {padding}", f"0 to {kernel // 2}, half the kernel size {kernel}")
    span = size + 2 * padding - (dilation * (kernel - 1) + 1)
    output = span // stride + 1
    if ceil_mode:
        output = -(-span // stride) + 1
        if (output - 1) * stride >= size + padding:
            output -= 1
    if output < 1:
        raise ArgumentError(
            "input", f"an axis of {size} has no room for a window of {kernel}", "a larger input"
        )
    return output


def window_view(array: Array, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Array:
    """View the last n axes of `array` window by window, without copying.

    Returns:
        A read-only view of shape (…, *kernel, *windows), n = len(kernel): element (…, k, w) is
        array[…, w * stride + k * dilation]. Trailing elements that fill no window are left out.
    """
    rank = len(kernel)
    leading = array.ndim - rank
    sizes, steps = array.shape[leading:], array.strides[leading:]
    windows = [
        conv_output_size(size, k, s, dilation=d)
        for size, k, s, d in zip(sizes, kernel, stride, dilation, strict=True)
    ]
    tap_steps = [step * d for step, d in zip(steps, dilation, strict=True)]
    window_steps = [step * s for step, s in zip(steps, stride, strict=True)]
    shape = (*array.shape[:leading], *kernel, *windows)
    strides = (*array.strides[:leading], *tap_steps, *window_steps)
    return as_strided(array, shape, strides, writeable=False)


def clip_steps(first: int, step: int, count: int, size: int) -> tuple[slice, slice]:
    """Return which of the positions first, first + step, … (`count` of them) lie inside an axis of `size`.

    Returns:
        The slice of the axis that they pick, and the slice of the steps that reach it.
    """
    start = max(0, -(first // step))
    stop = min(count, (size - 1 - first) // step + 1)
    if stop <= start:
        return slice(0, 0), slice(0, 0)
    return slice(first + start * step, first + (stop - 1) * step + 1, step), slice(start, stop)


def require_positive(argument: str, value: int) -> None:
    """Raise an `ArgumentError` unless `value` is at least 1."""
    if value < 1:
        raise ArgumentError(argument, f"got {value}", "at least 1")


def require_rank(argument: str, values: Sequence[object], rank: int) -> None:
    """Raise an `ArgumentError` unless there is one value for each of `rank` spatial axes."""
    if len(values) != rank:
        raise ArgumentError(argument, f"has {len(values)} values", f"{rank}, one for each spatial axis")


def require_floating(argument: str, array: Array) -> None:
    """Raise an `ArgumentError` unless `array` is of a floating dtype."""
    if not np.issubdtype(array.dtype, np.floating):
        raise ArgumentError(argument, f"has dtype {array.dtype}", "a floating dtype")


def along(axis: int, cut: slice) -> BlockIndex:
    """Return the index that applies `cut` to one axis, counted from the front, and keeps the others whole."""
    return (slice(None),) * axis + (cut,)
