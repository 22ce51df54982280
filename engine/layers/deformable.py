"""Deformable convolution (`torchvision.ops.deform_conv2d`): every tap of every window has an offset of its own."""

import math
from collections.abc import Sequence

import numpy as np

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.binding.spatial_arguments import spread
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import checked_shape
from engine.kernels.convolution import convolution_shape
from engine.kernels.sampling import Planes, linear_taps
from engine.layers.checks import check_dtype, check_kind, check_rank, check_shape
from engine.spec import TensorSpec, tensor_spec


def _infer_deformable(
    input: TensorSpec,
    offset: TensorSpec,
    weight: TensorSpec,
    bias: TensorSpec | None,
    mask: TensorSpec | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> TensorSpec:
    check_kind("input", input, "f")
    check_rank("input", input, 4)
    check_rank("weight", weight, 4)
    strides, pads, gaps = (
        spread(name, values, 2)
        for name, values in (("stride", stride), ("padding", padding), ("dilation", dilation))
    )
    shape = convolution_shape(input.shape, weight.shape, strides, [(pad, pad) for pad in pads], gaps, groups)
    for name, tensor in (("offset", offset), ("weight", weight), ("bias", bias), ("mask", mask)):
        check_dtype(name, tensor, input)
    check_shape("bias", bias, (weight.shape[0],))
    _check_offsets(input, offset, mask, math.prod(weight.shape[2:]), shape)
    return input.with_shape(checked_shape(shape))


def _check_offsets(
    input: TensorSpec, offset: TensorSpec, mask: TensorSpec | None, taps: int, output: tuple[int, ...]
) -> None:
    check_rank("offset", offset, 4)
    groups = offset.shape[1] // (2 * taps)
    if groups < 1 or input.shape[1] % groups:
        problem = f"has {offset.shape[1]} channels, {2 * taps} for each offset group"
        raise ArgumentError("offset", problem, f"groups that divide the input's {input.shape[1]} channels")
    check_shape("offset", offset, (input.shape[0], groups * 2 * taps, *output[2:]))
    check_shape("mask", mask, (input.shape[0], groups * taps, *output[2:]))


def _count_deformable(outputs: tuple[TensorSpec], weight: TensorSpec) -> int:
    return outputs[0].size * math.prod(weight.shape[1:])


@layer("torchvision.ops.DeformConv2d", infer=_infer_deformable, multiply_adds=_count_deformable)
def deformable_convolution(
    input: Array,
    offset: Array,
    weight: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    stride: Ints = (1,),
    padding: Ints = (0,),
    dilation: Ints = (1,),
    groups: int = 1,
) -> Array:
    """Convolve (batch, channels, height, width) with windows that offsets (and a mask) bend."""
    _infer_deformable(
        tensor_spec(input),
        tensor_spec(offset),
        tensor_spec(weight),
        None if bias is None else tensor_spec(bias),
        None if mask is None else tensor_spec(mask),
        stride,
        padding,
        dilation,
        groups,
    )
    steps = spread("stride", stride, 2), spread("padding", padding, 2), spread("dilation", dilation, 2)
    return _convolve(input, offset, weight, bias, mask, *steps)


def _convolve(
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
