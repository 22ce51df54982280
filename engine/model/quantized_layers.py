"""PyTorch's quantized layers as float32 layers on values rounded to quantized ones."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.binding.bound_layer import BoundLayer
from engine.binding.registry import Layer
from engine.errors import ArgumentError
from engine.expression import compile_source
from engine.kernels.quantization import check_quantization
from engine.layers import BUILT_IN
from engine.layers.quantized import quantized_dtype
from engine.layers.quantized_products import Filters
from engine.quantization.layer import Int8Layer
from engine.quantization.tensor_scale import TensorScale
from engine.quantization.weights import MAX_TERMS, QuantizedWeights
from engine.spec import Value

_CONVOLUTIONS = ("nn.quantized.Conv2d", "nn.intrinsic.quantized.ConvReLU2d")
_LINEARS = ("nn.quantized.Linear", "nn.intrinsic.quantized.LinearReLU")
CONTRACTIONS = (*_CONVOLUTIONS, *_LINEARS)
"""Types of layers that multiply integers."""
_WITH_RELU = (_CONVOLUTIONS[1], _LINEARS[1])
POINTWISE = {
    "pnnx.custom_op.quantized.add": "add(@0,@1)",
    "pnnx.custom_op.quantized.add_relu": "max(add(@0,@1),0.0)",
    "pnnx.custom_op.quantized.mul": "mul(@0,@1)",
    "pnnx.custom_op.quantized.mul_relu": "max(mul(@0,@1),0.0)",
}
"""Types of layers that compute element by element, and what they compute."""
_STEPS = ("stride", "padding", "dilation", "groups")


class UnfitError(Exception):
    """An operator that only the reference implementation of quantized tensors supports."""


@dataclass(frozen=True, slots=True)
class Integers:
    """How a tensor is quantized.

    Attributes:
        scale: with a zero point counted from the lowest integer.
        is_signed: whether integers are int8 rather than uint8.
    """

    scale: TensorScale
    is_signed: bool


def integers_of_quantize(bound: BoundLayer, given: Mapping[str, Value]) -> Integers:
    """Return what `nn.quantized.Quantize` and its like quantize to.

    Args:
        bound: the layer.
        given: arguments that operands carry; None for those known only at run time.

    Raises:
        UnfitError: it is known only at run time, or is not 8-bit.
    """
    arguments = dict(bound.arguments) | dict(given)
    zero_point = arguments["zero_point"]
    is_shown = isinstance(zero_point, int) and isinstance(arguments["scale"], int | float)
    if not is_shown or bound.operand_places.get("input") != 0:
        raise UnfitError
    try:
        dtype = quantized_dtype(arguments["dtype"], zero_point, arguments["output_dtype"])
    except ArgumentError as error:
        raise UnfitError from error
    return rounding_sums(_integers(arguments["scale"], zero_point, dtype))


def integers_of_result(bound: BoundLayer, source: Integers) -> Integers | None:
    """Return how the result of a quantized layer is quantized, None where it is real.

    Args:
        bound: the layer.
        source: how its first input is quantized: the result has the same dtype.

    Raises:
        UnfitError: it is an operand, or its value in the file is invalid.
    """
    names = ("arg_2", "arg_3") if bound.layer.type in POINTWISE else ("scale", "zero_point")
    if not all(name in bound.arguments for name in names):
        raise UnfitError
    scale, zero_point = (bound.arguments[name] for name in names)
    dtype = np.dtype(np.int8 if source.is_signed else np.uint8)
    if scale is None:
        return None
    found = _integers(scale, zero_point, dtype)
    return found if bound.layer.type in CONTRACTIONS else rounding_sums(found)


def rounding_sums(integers: Integers) -> Integers:
    """Return the same for results that PyTorch rounds when it has added the zero point."""
    return replace(integers, scale=replace(integers.scale, rounds_sum=True))


def _integers(scale: float, zero_point: int, dtype: np.dtype[Any]) -> Integers:
    if dtype.itemsize != 1:
        raise UnfitError
    try:
        check_quantization(scale, zero_point, dtype)
    except ArgumentError as error:
        raise UnfitError from error
    is_signed = dtype.kind == "i"
    lowest = int(np.iinfo(dtype).min)
    return Integers(TensorScale(float(np.float32(scale)), zero_point - lowest, lowest=lowest), is_signed)


def _built_in(type_name: str) -> Layer:
    found = BUILT_IN.find(type_name)
    if found is None:
        raise KeyError(type_name)
    return found


def as_float32(bound: BoundLayer) -> BoundLayer:
    """Return the layer that gives its first input as float32."""
    return bound.substitute(_built_in("Tensor.to"), {"dtype": np.dtype(np.float32)})


def as_join(bound: BoundLayer) -> BoundLayer:
    """Return `nn.quantized.cat` as the layer that joins real numbers."""
    return bound.substitute(_built_in("torch.cat"), {"dim": bound.arguments["dim"]})


def as_expression(bound: BoundLayer) -> BoundLayer:
    """Return a sum or product of quantized tensors as that of real numbers."""
    return bound.substitute(
        _built_in("pnnx.Expression"), {"expr": compile_source(POINTWISE[bound.layer.type])}
    )


def as_contraction(bound: BoundLayer, source: Integers) -> tuple[BoundLayer, Int8Layer]:
    """Return a convolution or linear layer of real numbers, and how it multiplies integers.

    Raises:
        UnfitError: its weights are no integers of 8 bits once zero points are taken off, or sums may overflow.
    """
    filters: Filters = bound.arguments["filters"]
    limits = np.iinfo(np.int8)
    weight = filters.values
    if weight.min(initial=0) < limits.min or weight.max(initial=0) > limits.max or not weight.size:
        raise UnfitError
    if weight[0].size > MAX_TERMS or not np.isfinite(filters.scales * np.float32(source.scale.scale)).all():
        raise UnfitError
    is_linear = bound.layer.type in _LINEARS
    static = {} if is_linear else {name: bound.arguments[name] for name in _STEPS} | {"padding_mode": "zeros"}
    # shape rules ask for the shape of weights; the numbers themselves exist as integers only
    shape_only = np.broadcast_to(np.float32(0), weight.shape)
    given = static | {"weight": shape_only, "bias": filters.bias}
    layer = bound.substitute(_built_in("nn.Linear" if is_linear else "nn.Conv2d"), given)
    int8 = Int8Layer(
        forward=layer.layer.forward,
        static=static,
        weights=QuantizedWeights(weight.astype(np.int8), filters.scales.astype(np.float32)),
        bias=filters.bias,
        input_scale=source.scale,
        channel_axis=-1 if is_linear else -3,
        relu=bound.layer.type in _WITH_RELU,
    )
    return layer, int8
