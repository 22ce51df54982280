"""Max, average and LP pooling over any number of spatial axes (`torch.nn.functional.max_pool1d` …).

A window's maximum and sum separate by axis: each axis is reduced separately by combining as many strided slices as the
kernel is long, never window by window. Planes go through in blocks that stay in the second-level cache.
"""

import math
from collections.abc import Sequence

import numpy as np

from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.blocks import plane_blocks
from engine.kernels.extremes import lowest, max_over_positions, window_positions
from engine.kernels.padding import pad_constant
from engine.kernels.windows import along, pool_output_size, require_floating, require_rank


def max_pool(
    input: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool = False,
) -> Array:
    """Return the maximum of every window; NaN if the window holds one.

    Args:
        input: (batch, channels, *spatial), real or integer.
        kernel_size: elements per window and spatial axis.
        stride: distance between windows.
        padding: elements lower than any value, on both sides of each axis; at most half the kernel size.
        dilation: distance between the elements of a window.
        ceil_mode: keep windows that hang over the end.

    Returns:
        (batch, channels, *output) of the input's dtype.

    Raises:
        ArgumentError: what `pool_shape` raises.
    """
    shape = pool_shape(input.shape, kernel_size, stride, padding, dilation, ceil_mode)
    output = np.empty(shape, input.dtype)
    kernel_size = _reaching_taps(input.shape[2:], kernel_size, padding, dilation)
    pads = _pads(input.shape[2:], shape[2:], kernel_size, stride, padding, dilation)
    for source, target in plane_blocks(input, output):
        block = pad_constant(source, pads, lowest(input.dtype))
        for axis, (count, kernel, step, gap) in enumerate(
            zip(shape[2:], kernel_size, stride, dilation, strict=True), 1
        ):
            taps = [_tap(block, axis, tap * gap, step, count) for tap in range(kernel)]
            block = _combine(np.maximum, taps)
        target[...] = block
    return output


def max_pool_with_indices(
    input: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool = False,
) -> tuple[Array, Array]:
    """Return `max_pool` of the same arguments, and where in its plane each maximum lies.

    Returns:
        The maxima, and int64 positions in the flattened spatial axes: the first of equal maxima, or the last
        NaN.

    Raises:
        ArgumentError: what `pool_shape` raises.
    """
    shape = pool_shape(input.shape, kernel_size, stride, padding, dilation, ceil_mode)
    kernel_size = _reaching_taps(input.shape[2:], kernel_size, padding, dilation)
    positions = []
    for size, count, kernel, step, before, gap in zip(
        input.shape[2:], shape[2:], kernel_size, stride, padding, dilation, strict=True
    ):
        positions.append(window_positions(size, count, kernel, step, before, gap))
    return max_over_positions(input, positions)


def avg_pool(
    input: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Return the mean of every window.

    Args:
        input: (batch, channels, *spatial), real or integer. float16 is summed in float32, integers divide
            towards zero.
        kernel_size: elements per window and spatial axis.
        stride: distance between windows.
        padding: zeros on both sides of each axis; at most half the kernel size.
        ceil_mode: keep windows that hang over the end.
        count_include_pad: divide by the window's size with the padding in it (not with what hangs over the
            padding); otherwise by the number of input elements in it.
        divisor_override: divide every sum by this instead.

    Returns:
        (batch, channels, *output) of the input's dtype.

    Raises:
        ArgumentError: what `pool_shape` raises, or `divisor_override` is 0.
    """
    ones = (1,) * len(kernel_size)
    shape = pool_shape(input.shape, kernel_size, stride, padding, ones, ceil_mode)
    if divisor_override == 0:
        raise ArgumentError("divisor_override", "got 0", "any other number")
    compute = np.dtype(np.float32) if input.dtype == np.float16 else input.dtype
    output = np.empty(shape, input.dtype)
    sizes = _window_sizes(input.shape[2:], shape[2:], kernel_size, stride, padding, count_include_pad)
    divisor = sizes if divisor_override is None else np.array(divisor_override)
    kernel_size = _reaching_taps(input.shape[2:], kernel_size, padding, ones)
    pads = _pads(input.shape[2:], shape[2:], kernel_size, stride, padding, ones)
    for source, target in plane_blocks(input, output):
        block = pad_constant(source.astype(compute, copy=False), pads)
        for axis, (count, kernel, step) in enumerate(zip(shape[2:], kernel_size, stride, strict=True), 1):
            block = _combine(np.add, [_tap(block, axis, tap, step, count) for tap in range(kernel)])
        target[...] = _divide(block, divisor)
    return output


def lp_pool(
    input: Array,
    norm_type: float,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    ceil_mode: bool = False,
) -> Array:
    """Return the `norm_type` norm of every window: the root of the sum of powers, where that sum is positive.

    A window that hangs over the end counts its mean for every element it should have, as in PyTorch.

    Args:
        input: (batch, channels, *spatial) of a floating dtype.
        norm_type: the power; not 0.
        kernel_size: elements per window and spatial axis.
        stride: distance between windows.
        ceil_mode: keep windows that hang over the end.

    Returns:
        (batch, channels, *output) of the input's dtype.

    Raises:
        ArgumentError: what `pool_shape` raises, `input` is not of a floating dtype, or `norm_type` is 0.
    """
    require_floating("input", input)
    if norm_type == 0:
        raise ArgumentError("norm_type", "got 0", "any other number")
    padding = (0,) * len(kernel_size)
    scalar = input.dtype.type
    powers: Array = np.power(input, scalar(norm_type))
    means = avg_pool(powers, kernel_size, stride, padding, ceil_mode)
    sums = means * scalar(math.prod(kernel_size)) + scalar(0)  # -0 becomes 0, whose roots differ
    norms: Array = np.power(sums, scalar(1 / norm_type))
    return norms


def pool_shape(
    input_shape: Sequence[int],
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool = False,
) -> tuple[int, ...]:
    """Return the shape of a pooling's output.

    Raises:
        ArgumentError: ranks disagree, a size or step is not positive, padding exceeds half the kernel, or the
            input has no room for a window.
    """
    rank = len(kernel_size)
    if len(input_shape) != rank + 2:
        expected = f"{rank + 2}: (batch, channels, *spatial)"
        raise ArgumentError("input", f"has {len(input_shape)} axes", expected)
    for argument, values in (("stride", stride), ("padding", padding), ("dilation", dilation)):
        require_rank(argument, values, rank)
    output = (
        pool_output_size(size, k, s, p, d, ceil_mode)
        for size, k, s, p, d in zip(input_shape[2:], kernel_size, stride, padding, dilation, strict=True)
    )
    return (*input_shape[:2], *output)


def _reaching_taps(
    sizes: Sequence[int], kernel_size: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> tuple[int, ...]:
    """Count the elements of a window that reach the input: in ceil mode a window may be longer than all of it."""
    return tuple(
        min(kernel, -(-(size + before) // gap))
        for size, kernel, before, gap in zip(sizes, kernel_size, padding, dilation, strict=True)
    )


def _pads(
    sizes: Sequence[int],
    counts: Sequence[int],
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> list[tuple[int, int]]:
    """Pad each axis to just where its last window ends, which may be before the input's own end."""
    return [
        (before, (count - 1) * step + gap * (kernel - 1) + 1 - before - size)
        for size, count, kernel, step, before, gap in zip(
            sizes, counts, kernel_size, stride, padding, dilation, strict=True
        )
    ]


def _tap(block: Array, axis: int, first: int, step: int, count: int) -> Array:
    return block[along(axis, slice(first, first + (count - 1) * step + 1, step))]


def _combine(operation: np.ufunc, taps: Sequence[Array]) -> Array:
    if len(taps) == 1:
        return taps[0]
    total: Array = operation(taps[0], taps[1])
    for tap in taps[2:]:
        operation(total, tap, out=total)
    return total


def _window_sizes(
    sizes: Sequence[int],
    counts: Sequence[int],
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    count_include_pad: bool,
) -> Array:
    """Count the elements that each window divides by, as an array of the output's spatial shape."""
    total = np.ones((), np.int64)
    for size, count, kernel, step, pad in zip(sizes, counts, kernel_size, stride, padding, strict=True):
        first = np.arange(count) * step - pad
        last = np.minimum(first + kernel, size + pad)
        if not count_include_pad:
            first, last = np.maximum(first, 0), np.minimum(last, size)
        total = np.multiply.outer(total, last - first)
    return total


def _divide(total: Array, divisor: Array) -> Array:
    if np.issubdtype(total.dtype, np.integer):
        quotient: Array = np.sign(total) * np.sign(divisor) * (np.abs(total) // np.abs(divisor))
        return quotient
    mean: Array = total / divisor.astype(total.dtype)
    return mean
