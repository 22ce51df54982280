"""Max, average and LP pooling over windows, in one, two and three dimensions.

The number of spatial axes is part of a type's name, since an input may come with or without its batch axis: each
function here registers the layers of one number.

A window's maximum and sum separate by axis: each axis is reduced separately by combining as many strided slices as the
kernel is long, never window by window. Planes go through in blocks that stay in the second-level cache.
"""

import math
from collections.abc import Sequence

import numpy as np

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.binding.spatial_arguments import add_batch, spread
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.blocks import plane_blocks
from engine.kernels.extremes import lowest, max_over_positions, window_positions
from engine.kernels.padding import pad_constant
from engine.kernels.windows import along, pool_output_size, require_floating, require_rank
from engine.spec import TensorSpec

Windows = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _windows(
    rank: int, kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints = (1,)
) -> Windows:
    """Spread kernel size, stride (by default the kernel size), padding and dilation over the spatial axes."""
    kernel = spread("kernel_size", kernel_size, rank)
    return (
        kernel,
        spread("stride", stride, rank) if stride else kernel,
        spread("padding", padding, rank),
        spread("dilation", dilation, rank),
    )


def _pooled(input: TensorSpec, rank: int, windows: Windows, ceil_mode: bool) -> TensorSpec:
    batched, unbatched = add_batch(input.shape, rank)
    shape = pool_shape(batched, *windows, ceil_mode)
    return input.with_shape(shape[1:] if unbatched else shape)


def _register_max_pool(rank: int) -> None:
    def infer(
        input: TensorSpec,
        kernel_size: Ints,
        stride: Ints | None,
        padding: Ints,
        dilation: Ints,
        ceil_mode: bool,
        return_indices: bool,
    ) -> TensorSpec | list[TensorSpec]:
        windows = _windows(rank, kernel_size, stride, padding, dilation)
        output = _pooled(input, rank, windows, ceil_mode)
        return [output, TensorSpec(output.shape, np.dtype(np.int64))] if return_indices else output

    @layer(f"nn.MaxPool{rank}d", f"F.max_pool{rank}d", infer=infer)
    def forward(
        input: Array,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = (0,),
        dilation: Ints = (1,),
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Array | list[Array]:
        """Take the maximum of every window, and where it lies where `return_indices` is set."""
        windows = _windows(rank, kernel_size, stride, padding, dilation)
        shape, unbatched = add_batch(input.shape, rank)
        batched = input.reshape(shape)
        if not return_indices:
            output = max_pool(batched, *windows, ceil_mode)
            return output[0] if unbatched else output
        maxima, indices = max_pool_with_indices(batched, *windows, ceil_mode)
        return [maxima[0], indices[0]] if unbatched else [maxima, indices]


def _register_avg_pool(rank: int) -> None:
    def infer(
        input: TensorSpec, kernel_size: Ints, stride: Ints | None, padding: Ints, ceil_mode: bool
    ) -> TensorSpec:
        return _pooled(input, rank, _windows(rank, kernel_size, stride, padding), ceil_mode)

    @layer(f"nn.AvgPool{rank}d", f"F.avg_pool{rank}d", infer=infer)
    def forward(
        input: Array,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Array:
        """Take the mean of every window."""
        kernel, strides, paddings, _ = _windows(rank, kernel_size, stride, padding)
        shape, unbatched = add_batch(input.shape, rank)
        batched = input.reshape(shape)
        output = avg_pool(batched, kernel, strides, paddings, ceil_mode, count_include_pad, divisor_override)
        return output[0] if unbatched else output


def _register_lp_pool(rank: int) -> None:
    def infer(input: TensorSpec, kernel_size: Ints, stride: Ints | None, ceil_mode: bool) -> TensorSpec:
        return _pooled(input, rank, _windows(rank, kernel_size, stride, (0,)), ceil_mode)

    @layer(f"nn.LPPool{rank}d", f"F.lp_pool{rank}d", infer=infer)
    def forward(
        input: Array, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
    ) -> Array:
        """Take the `norm_type` norm of every window."""
        kernel, strides, _, _ = _windows(rank, kernel_size, stride, (0,))
        shape, unbatched = add_batch(input.shape, rank)
        output = lp_pool(input.reshape(shape), norm_type, kernel, strides, ceil_mode)
        return output[0] if unbatched else output


for _rank in (1, 2, 3):
    _register_max_pool(_rank)
    _register_avg_pool(_rank)
    _register_lp_pool(_rank)


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
