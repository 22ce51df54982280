"""Convolutions and transposed convolutions in one, two and three dimensions.

A transposed convolution multiplies each block of input positions by the weights, which gives the contribution of every
kernel element at every position; those are added to the output, one strided slice for each kernel element.
"""

import math
from collections.abc import Sequence

import numpy as np

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.binding.spatial_arguments import PADDING_MODES, add_batch, padding_pairs, spread
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import checked_shape
from engine.kernels.bfloat16 import operand
from engine.kernels.blocks import cache_blocks, column_buffer, columns_per_block
from engine.kernels.convolution import check_bias, convolution_shape, convolve
from engine.kernels.folding import add_windows
from engine.kernels.padding import pad, padded_shape
from engine.kernels.windows import Pairs, require_positive, require_rank, transposed_output_size
from engine.layers.checks import check_dtype, check_shape
from engine.spec import TensorSpec


def _infer_convolution(
    input: TensorSpec,
    weight: TensorSpec,
    bias: TensorSpec | None,
    stride: Ints,
    padding: Ints | str,
    dilation: Ints,
    groups: int,
    padding_mode: str,
) -> TensorSpec:
    rank = _spatial_rank(weight.rank)
    strides, dilations = spread("stride", stride, rank), spread("dilation", dilation, rank)
    mode = _check_padding_mode(padding_mode)
    batched, unbatched = add_batch(input.shape, rank)
    pairs = padding_pairs(padding, mode, batched[2:], weight.shape[2:], strides, dilations)
    if mode != "constant":
        padded_shape(batched, _flat(pairs), mode)  # an axis may be too short for its mode
    checked_shape(
        [size + sum(pair) for size, pair in zip(batched[2:], pairs, strict=True) if min(pair) >= 0], "padding"
    )
    shape = convolution_shape(batched, weight.shape, strides, pairs, dilations, groups)
    check_shape("bias", bias, weight.shape[:1])
    _check_dtypes(input, weight, bias)
    return input.with_shape(shape[1:] if unbatched else shape)


def _count_convolution(outputs: tuple[TensorSpec], weight: TensorSpec) -> int:
    return outputs[0].size * math.prod(weight.shape[1:])


@layer(
    *("nn.Conv1d", "nn.Conv2d", "nn.Conv3d", "F.conv1d", "F.conv2d", "F.conv3d"),
    infer=_infer_convolution,
    multiply_adds=_count_convolution,
)
def convolution(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Ints = (1,),
    padding: Ints | str = (0,),
    dilation: Ints = (1,),
    groups: int = 1,
    padding_mode: str = "zeros",
) -> Array:
    """Cross-correlate (batch, channels, *spatial), or without batch, with (out, channels / groups, *kernel)."""
    rank = _spatial_rank(weight.ndim)
    strides, dilations = spread("stride", stride, rank), spread("dilation", dilation, rank)
    mode = _check_padding_mode(padding_mode)
    shape, unbatched = add_batch(input.shape, rank)
    pairs = padding_pairs(padding, mode, shape[2:], weight.shape[2:], strides, dilations)
    batched = input.reshape(shape)
    if mode != "constant":
        batched = pad(batched, _flat(pairs), mode)
        pairs = [(0, 0)] * rank
    output = convolve(batched, weight, bias, strides, pairs, dilations, groups)
    return output[0] if unbatched else output


def _infer_transposed(
    input: TensorSpec,
    weight: TensorSpec,
    bias: TensorSpec | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    groups: int,
    dilation: Ints,
) -> TensorSpec:
    rank = _spatial_rank(weight.rank)
    batched, unbatched = add_batch(input.shape, rank)
    strides, paddings = spread("stride", stride, rank), spread("padding", padding, rank)
    extra, dilations = spread("output_padding", output_padding, rank), spread("dilation", dilation, rank)
    shape = transposed_shape(batched, weight.shape, strides, paddings, extra, groups, dilations)
    check_shape("bias", bias, (shape[1],))
    _check_dtypes(input, weight, bias)
    return input.with_shape(shape[1:] if unbatched else shape)


def _count_transposed(input: TensorSpec, weight: TensorSpec) -> int:
    return input.size * math.prod(weight.shape[1:])


@layer(
    *("nn.ConvTranspose1d", "nn.ConvTranspose2d", "nn.ConvTranspose3d"),
    *("F.conv_transpose1d", "F.conv_transpose2d", "F.conv_transpose3d"),
    infer=_infer_transposed,
    multiply_adds=_count_transposed,
)
def transposed_convolution(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Ints = (1,),
    padding: Ints = (0,),
    output_padding: Ints = (0,),
    groups: int = 1,
    dilation: Ints = (1,),
) -> Array:
    """Spread (batch, channels, *spatial), or without batch, by a kernel (channels, out / groups, *kernel)."""
    rank = _spatial_rank(weight.ndim)
    shape, unbatched = add_batch(input.shape, rank)
    output = transposed_convolve(
        input.reshape(shape),
        weight,
        bias,
        spread("stride", stride, rank),
        spread("padding", padding, rank),
        spread("output_padding", output_padding, rank),
        groups,
        spread("dilation", dilation, rank),
    )
    return output[0] if unbatched else output


def _flat(pairs: Pairs) -> list[int]:
    """Return (before, after) of every axis as F.pad takes them, the last axis first."""
    return [size for pair in reversed(pairs) for size in pair]


def _check_dtypes(input: TensorSpec, weight: TensorSpec, bias: TensorSpec | None) -> None:
    check_dtype("weight", weight, input)
    check_dtype("bias", bias, input)


def _spatial_rank(weight_rank: int) -> int:
    if weight_rank < 3:
        raise ArgumentError("weight", f"has {weight_rank} dimensions", "(out, in, *kernel)")
    return weight_rank - 2


def _check_padding_mode(mode: str) -> str:
    if mode not in PADDING_MODES:
        raise ArgumentError("padding_mode", f"got {mode!r}", f"one of {', '.join(PADDING_MODES)}")
    return PADDING_MODES[mode]


def transposed_convolve(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
    dilation: Sequence[int],
) -> Array:
    """Spread every input element over the output, weighted by the kernel: the gradient of a convolution.

    Args:
        input: (batch, channels, *spatial).
        weight: (channels, out_channels / groups, *kernel).
        bias: (out_channels,) or None.
        stride: distance in the output between neighbours of the input, for each spatial axis.
        padding: elements cut off both ends of each axis of the output.
        output_padding: elements added at the end of each axis of the output.
        groups: number of groups of channels.
        dilation: distance between kernel elements for each spatial axis.

    Returns:
        (batch, out_channels, *output) of the input's dtype. float16 is computed in float32; integers wrap.

    Raises:
        ArgumentError: what `transposed_shape` raises, or `bias` is not one value per output channel.
    """
    shape = transposed_shape(input.shape, weight.shape, stride, padding, output_padding, groups, dilation)
    check_bias(bias, shape[1])
    compute = np.dtype(np.float32) if input.dtype == np.float16 else input.dtype
    output = np.zeros(shape, compute)
    if bias is not None:
        output += bias.astype(compute, copy=False).reshape(-1, *(1,) * (input.ndim - 2))
    if input.size:
        source = operand(input.astype(compute, copy=False))
        kernel = operand(weight.astype(compute, copy=False))
        _spread_blocks(source, kernel, stride, padding, groups, dilation, output)
    return output.astype(input.dtype, copy=False)


def transposed_shape(
    input_shape: Sequence[int],
    weight_shape: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
    dilation: Sequence[int],
) -> tuple[int, ...]:
    """Return the shape of a transposed convolution's output.

    Raises:
        ArgumentError: ranks disagree, `groups` does not divide the channels, the weight is for another number
            of channels, a size or step is not positive, `output_padding` is not below `stride` or `dilation`,
            or the output would be empty.
    """
    rank = len(weight_shape) - 2
    if rank < 1 or len(input_shape) != rank + 2:
        problem = f"has {len(input_shape)} axes, the weight {len(weight_shape)}"
        raise ArgumentError("input", problem, "(batch, channels, *spatial) with the weight's number of axes")
    arguments = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    for argument, values in arguments.items():
        require_rank(argument, values, rank)
    require_positive("groups", groups)
    if weight_shape[0] % groups:
        raise ArgumentError("groups", f"got {groups}", f"a divisor of the {weight_shape[0]} channels")
    if input_shape[1] != weight_shape[0]:
        raise ArgumentError("input", f"has {input_shape[1]} channels", f"{weight_shape[0]}")
    axes = zip(input_shape[2:], weight_shape[2:], stride, padding, output_padding, dilation, strict=True)
    return (input_shape[0], weight_shape[1] * groups, *(transposed_output_size(*axis) for axis in axes))


def _spread_blocks(
    input: Array,
    weight: Array,
    stride: Sequence[int],
    padding: Sequence[int],
    groups: int,
    dilation: Sequence[int],
    output: Array,
) -> None:
    batch, spatial, kernel = input.shape[0], input.shape[2:], weight.shape[2:]
    depth, out_channels = weight.shape[0] // groups, weight.shape[1]
    rows = out_channels * math.prod(kernel)
    matrices = weight.reshape(groups, depth, rows).transpose(0, 2, 1)
    flat = input.reshape(batch, groups, depth, -1)
    target = output.reshape(batch, groups, out_channels, *output.shape[2:])
    limit = columns_per_block(rows * output.itemsize)
    for items, parts, region, positions in cache_blocks((batch, groups), spatial, limit):
        source = flat[items, parts, :, positions]
        spread = column_buffer((*source.shape[:2], rows, source.shape[3]), output.dtype)
        np.matmul(matrices[parts], source, out=spread)
        sizes = [cut.stop - cut.start for cut in region]
        spread = spread.reshape(*spread.shape[:2], out_channels, *kernel, *sizes)
        starts = [
            cut.start * step - cut_off for cut, step, cut_off in zip(region, stride, padding, strict=True)
        ]
        add_windows(spread, starts, stride, dilation, target[items, parts])
