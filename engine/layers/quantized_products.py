"""Convolution and matrix product of the integers of quantized tensors, summed exactly and quantized again.

Weights are int8 with a scale and a zero point for each output channel. Current exporters write no scale for a weight
that has one for all channels, so such a file cannot be run; where a file does hold one, it is taken.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.binding.spatial_arguments import spread
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.convolution import convolution_shape, convolve
from engine.kernels.matrix import linear
from engine.kernels.quantization import check_quantization, requantize
from engine.layers.checks import check_shape
from engine.spec import QuantizedSpec, QuantizedTensor, Spec, TensorSpec, spec_of, tensor_spec

_SCALES = "weight.q_per_channel_scales"
_ZERO_POINTS = "weight.q_per_channel_zero_points"
_REAL = np.dtype(np.float32)


@dataclass(frozen=True, slots=True)
class Filters:
    """Quantized weights, made ready.

    Attributes:
        values: (out, …) whole numbers, zero points taken off, in a dtype that products can be summed in exactly.
        scales: float32 (out), scales of `values`.
        bias: float32 (out), or None.
    """

    values: Array
    scales: Array
    bias: Array | None


def _filters(weight: Array, bias: Array | None, attributes: dict[str, Array]) -> Filters:
    """Return a quantized weight from the file's attributes; a single scale applies to all channels.

    Raises:
        ArgumentError: an attribute is missing or of another shape.
    """
    if weight.dtype != np.int8 or weight.ndim < 2:
        raise ArgumentError("weight", f"is {tensor_spec(weight)}", "int8 (out, in, …)")
    out = len(weight)
    if _SCALES not in attributes:
        raise ArgumentError(_SCALES, "is missing: the file has no scale of the weight")
    scales = _per_channel(_SCALES, attributes[_SCALES], out)
    zero_points = _per_channel(_ZERO_POINTS, attributes.get(_ZERO_POINTS, np.zeros(1)), out)
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise ArgumentError(_SCALES, "are not all above 0", "finite numbers above 0")
    if bias is not None:
        check_shape("bias", tensor_spec(bias), (out,))
        bias = bias.astype(_REAL)
    centred = weight.astype(np.float64) - zero_points.reshape(out, *[1] * (weight.ndim - 1))
    sums = np.abs(centred).sum(tuple(range(1, weight.ndim)))
    exact = sums.max(initial=0) * np.iinfo(np.uint8).max < 2**24
    return Filters(centred.astype(np.float32 if exact else np.float64), scales.astype(_REAL), bias)


def _per_channel(name: str, array: Array, out: int) -> Array:
    if array.size not in (1, out):
        raise ArgumentError(name, f"has shape {array.shape}", f"({out},)")
    return np.broadcast_to(array.reshape(-1), (out,))


def _centred(input: QuantizedTensor, filters: Filters) -> Array:
    """Return the input's integers with the zero point taken off."""
    centred: Array = input.values.astype(filters.values.dtype)
    centred -= input.zero_point
    return centred


def _finish(
    sums: Array, input: QuantizedTensor, filters: Filters, scale: float | None, zero_point: int, relu: bool
) -> QuantizedTensor | Array:
    """Dequantize sums of products, or requantize them where there is a scale."""
    channels = (-1, *[1] * (filters.values.ndim - 2))
    sum_scales = (filters.scales * np.float32(input.scale)).reshape(channels)
    bias = None if filters.bias is None else filters.bias.reshape(channels)
    if scale is None:
        real: Array = (sums * sum_scales).astype(_REAL)
        real = real if bias is None else real + bias
        return np.maximum(real, 0) if relu else real
    dtype = input.values.dtype
    check_quantization(scale, zero_point, dtype)
    return QuantizedTensor(
        requantize(sums, bias, sum_scales, scale, zero_point, dtype, relu), scale, zero_point
    )


def _result_spec(
    inputs: tuple[Spec, ...], shape: tuple[int, ...], scale: float | None, zero_point: int
) -> TensorSpec:
    given = _quantized_input(inputs)
    if scale is None:
        return TensorSpec(shape, _REAL)
    check_quantization(scale, zero_point, given.dtype)
    return given.with_shape(shape)


def _quantized_input(inputs: tuple[Spec, ...]) -> QuantizedSpec:
    if len(inputs) != 1:
        raise ArgumentError("inputs", f"got {len(inputs)} operands", "1")
    if not isinstance(inputs[0], QuantizedSpec) or inputs[0].dtype.itemsize != 1:
        raise ArgumentError("inputs.0", f"is {inputs[0]}", "a quantized tensor of 8-bit integers")
    return inputs[0]


def _prepare_filters(
    weight: Array,
    bias: Array | None = None,
    scale: float | None = None,
    zero_point: int = 0,
    **attributes: Array,
) -> dict[str, Any]:
    return {"filters": _filters(weight, bias, attributes), "scale": scale, "zero_point": zero_point}


def _prepare_convolution(
    weight: Array,
    bias: Array | None = None,
    scale: float | None = None,
    zero_point: int = 0,
    stride: Ints = (1,),
    padding: Ints = (0,),
    dilation: Ints = (1,),
    groups: int = 1,
    padding_mode: str = "zeros",
    **attributes: Array,
) -> dict[str, Any]:
    if padding_mode != "zeros":
        raise ArgumentError("padding_mode", f"got {padding_mode!r}", "'zeros'")
    prepared = _prepare_filters(weight, bias, scale, zero_point, **attributes)
    steps = {"stride": stride, "padding": padding, "dilation": dilation}
    return prepared | {name: spread(name, values, 2) for name, values in steps.items()} | {"groups": groups}


def _infer_convolution(
    *inputs: Spec,
    weight: TensorSpec,
    scale: float | None,
    zero_point: int,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> TensorSpec:
    steps, pads, gaps = (
        spread("stride", stride, 2),
        spread("padding", padding, 2),
        spread("dilation", dilation, 2),
    )
    given = _quantized_input(inputs)
    shape = convolution_shape(given.shape, weight.shape, steps, [(pad, pad) for pad in pads], gaps, groups)
    return _result_spec(inputs, shape, scale, zero_point)


def _count_products(*inputs: Spec, outputs: tuple[TensorSpec], weight: TensorSpec) -> int:
    del inputs
    return outputs[0].size * math.prod(weight.shape[1:])


def _convolve(
    inputs: tuple[QuantizedTensor, ...],
    filters: Filters,
    scale: float | None,
    zero_point: int,
    steps: tuple[Ints, Ints, Ints, int],
    relu: bool,
) -> QuantizedTensor | Array:
    _quantized_input(tuple(spec_of(value) for value in inputs))
    stride, padding, dilation, groups = steps
    pairs = [(pad, pad) for pad in padding]
    sums = convolve(_centred(inputs[0], filters), filters.values, None, stride, pairs, dilation, groups)
    return _finish(sums, inputs[0], filters, scale, zero_point, relu)


def _register_convolution(type_name: str, relu: bool) -> None:
    @layer(
        type_name,
        infer=_infer_convolution,
        multiply_adds=_count_products,
        prepare=_prepare_convolution,
        takes_quantized=True,
    )
    def forward(
        *inputs: Any,
        filters: Filters,
        scale: float | None,
        zero_point: int,
        stride: Ints,
        padding: Ints,
        dilation: Ints,
        groups: int,
    ) -> QuantizedTensor | Array:
        """Convolve the integers of (batch, channels, height, width); without a `scale` the result is real."""
        return _convolve(inputs, filters, scale, zero_point, (stride, padding, dilation, groups), relu)


def _infer_linear(*inputs: Spec, weight: TensorSpec, scale: float | None, zero_point: int) -> TensorSpec:
    given = _quantized_input(inputs)
    if weight.rank != 2:
        raise ArgumentError("weight", f"has {weight.rank} axes", "2: (out, in)")
    if not given.rank or given.shape[-1] != weight.shape[1]:
        raise ArgumentError("inputs.0", f"has shape {given.shape}", f"(…, {weight.shape[1]})")
    return _result_spec(inputs, (*given.shape[:-1], weight.shape[0]), scale, zero_point)


def _register_linear(type_name: str, relu: bool) -> None:
    @layer(
        type_name,
        infer=_infer_linear,
        multiply_adds=_count_products,
        prepare=_prepare_filters,
        takes_quantized=True,
    )
    def forward(
        *inputs: Any, filters: Filters, scale: float | None, zero_point: int
    ) -> QuantizedTensor | Array:
        """Multiply the integers of (…, in) with those of the weight; without a `scale` the result is real."""
        specs = tuple(spec_of(value) for value in inputs)
        _infer_linear(*specs, weight=tensor_spec(filters.values), scale=scale, zero_point=zero_point)
        sums = linear(_centred(inputs[0], filters), filters.values, None)
        return _finish(sums, inputs[0], filters, scale, zero_point, relu)


_register_convolution("nn.quantized.Conv2d", relu=False)
_register_convolution("nn.intrinsic.quantized.ConvReLU2d", relu=True)
_register_linear("nn.quantized.Linear", relu=False)
_register_linear("nn.intrinsic.quantized.LinearReLU", relu=True)
