"""Operators of torchvision: deformable convolution and pooling of regions of interest."""

import math

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import checked_shape
from engine.kernels.batches import spread
from engine.kernels.convolution import convolution_shape
from engine.kernels.deformable import deformable_convolve
from engine.kernels.regions import roi_align
from engine.kernels.windows import require_positive
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
    return deformable_convolve(input, offset, weight, bias, mask, *steps)


def _infer_regions(
    input: TensorSpec,
    rois: TensorSpec,
    output_size: Ints,
    spatial_scale: float,
) -> TensorSpec:
    check_kind("input", input, "f")
    check_rank("input", input, 4)
    check_dtype("rois", rois, input)
    check_rank("rois", rois, 2)
    check_shape("rois", rois, (rois.shape[0], 5))
    if not math.isfinite(spatial_scale):
        raise ArgumentError("spatial_scale", f"got {spatial_scale}", "a finite number")
    rows, columns = spread("output_size", output_size, 2)
    require_positive("output_size", min(rows, columns))
    return input.with_shape(checked_shape((rois.shape[0], input.shape[1], rows, columns), "output_size"))


@layer("torchvision.ops.RoIAlign", infer=_infer_regions)
def align_regions(
    input: Array,
    rois: Array,
    output_size: Ints,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Array:
    """Pool regions (regions, 5) of (batch, channels, height, width) to `output_size` cells each."""
    specs = tensor_spec(input), tensor_spec(rois)
    shape = _infer_regions(*specs, output_size, spatial_scale).shape
    rows, columns = shape[2:]
    return roi_align(input, rois, (rows, columns), spatial_scale, sampling_ratio, aligned)
