"""Convolution over any number of spatial axes, as matrix products (`torch.nn.functional.conv1d` to `conv3d`).

One strategy serves them all: the windows of a block of output positions are gathered into the columns of a
matrix, and one matrix product with the weights writes that block of the output. Blocks are cut so that the
columns stay in the second-level cache between being written and being multiplied. A 1x1 convolution of
stride 1 multiplies its input where it lies, without gathering.
"""

import math
from collections.abc import Sequence

import numpy as np

from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.bfloat16 import operand
from engine.kernels.blocks import cache_blocks, column_buffer, columns_per_block
from engine.kernels.padding import pad_constant
from engine.kernels.windows import (
    BlockIndex,
    Pairs,
    conv_output_size,
    require_positive,
    require_rank,
    window_view,
)


def convolve(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Sequence[int],
    padding: Pairs,
    dilation: Sequence[int],
    groups: int = 1,
) -> Array:
    """Cross-correlate `input` with `weight`, as deep-learning libraries call convolution.

    Args:
        input: (batch, channels, *spatial).
        weight: (out_channels, channels / groups, *kernel).
        bias: (out_channels,) or None.
        stride: one step for each spatial axis.
        padding: (before, after) zeros of each spatial axis.
        dilation: distance between kernel elements for each spatial axis.
        groups: number of groups of channels.

    Returns:
        (batch, out_channels, *output) of the input's dtype. float16 is computed in float32; integers wrap.

    Raises:
        ArgumentError: what `convolution_shape` raises, or `bias` is not one value per output channel.
    """
    shape = convolution_shape(input.shape, weight.shape, stride, padding, dilation, groups)
    check_bias(bias, weight.shape[0])
    compute = np.dtype(np.float32) if input.dtype == np.float16 else input.dtype
    output = np.empty(shape, compute)
    if output.size:
        padded = pad_constant(operand(input.astype(compute, copy=False)), padding)
        weight = operand(weight.astype(compute, copy=False))
        _convolve_blocks(padded, weight, bias, stride, dilation, groups, output)
    return output.astype(input.dtype, copy=False)


def convolution_shape(
    input_shape: Sequence[int],
    weight_shape: Sequence[int],
    stride: Sequence[int],
    padding: Pairs,
    dilation: Sequence[int],
    groups: int = 1,
) -> tuple[int, ...]:
    """Return the shape of a convolution's output.

    Raises:
        ArgumentError: ranks disagree, `groups` does not divide the channels, the weight is for another number
            of channels, a size or step is not positive, or the kernel exceeds the padded input.
    """
    rank = len(weight_shape) - 2
    if rank < 1 or len(input_shape) != rank + 2:
        problem = f"has {len(input_shape)} axes, the weight {len(weight_shape)}"
        raise ArgumentError("input", problem, "(batch, channels, *spatial) with the weight's number of axes")
    for argument, values in (("stride", stride), ("padding", padding), ("dilation", dilation)):
        require_rank(argument, values, rank)
    channels = weight_shape[1] * groups
    require_positive("groups", groups)
    if weight_shape[0] % groups:
        raise ArgumentError("groups", f"got {groups}", f"a divisor of the {weight_shape[0]} output channels")
    if input_shape[1] != channels:
        raise ArgumentError("input", f"has {input_shape[1]} channels", f"{channels}")
    output = (
        conv_output_size(size, k, s, before, after, d)
        for size, k, s, (before, after), d in zip(
            input_shape[2:], weight_shape[2:], stride, padding, dilation, strict=True
        )
    )
    return (input_shape[0], weight_shape[0], *output)


def check_bias(bias: Array | None, out_channels: int) -> None:
    """Raise an `ArgumentError` unless `bias` is None or one value per output channel."""
    if bias is not None and bias.shape != (out_channels,):
        raise ArgumentError("bias", f"has shape {bias.shape}", f"({out_channels},), one per output channel")


def _convolve_blocks(
    padded: Array,
    weight: Array,
    bias: Array | None,
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    output: Array,
) -> None:
    batch, spatial = output.shape[0], output.shape[2:]
    out_channels, depth = weight.shape[0] // groups, math.prod(weight.shape[1:])
    matrices = weight.reshape(groups, out_channels, depth)
    offsets = None if bias is None else bias.astype(output.dtype, copy=False).reshape(groups, out_channels, 1)
    products = output.reshape(batch, groups, out_channels, -1)
    split = padded.reshape(batch, groups, -1, *padded.shape[2:])
    pointwise = all(k == s == 1 for k, s in zip(weight.shape[2:], stride, strict=True))
    windows = split if pointwise else window_view(split, weight.shape[2:], stride, dilation)
    limit = columns_per_block(depth * output.itemsize)
    for items, parts, region, positions in cache_blocks((batch, groups), spatial, limit):
        index: BlockIndex = (items, parts, ..., *region)
        gathered = windows[index]
        if pointwise:
            columns = gathered.reshape(*gathered.shape[:2], depth, -1)
        else:
            buffer = column_buffer(gathered.shape, gathered.dtype)
            np.copyto(buffer, gathered)
            columns = buffer.reshape(*gathered.shape[:2], depth, -1)
        block = products[items, parts, :, positions]
        np.matmul(matrices[parts], columns, out=block)
        if offsets is not None:
            block += offsets[parts]
