"""Convolutions and transposed convolutions in one, two and three dimensions."""

import math

from engine.binding.arguments import Ints
from engine.binding.padding_arguments import PADDING_MODES, padding_pairs
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import checked_shape
from engine.kernels.batches import add_batch, spread
from engine.kernels.convolution import convolution_shape, convolve
from engine.kernels.padding import pad, padded_shape
from engine.kernels.transposed_convolution import transposed_convolve, transposed_shape
from engine.kernels.windows import Pairs
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
