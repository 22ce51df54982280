"""Functions of single elements that come under their ATen names: the exporter has no names of its own for them."""

from typing import Any

import numpy as np

from engine.binding.arguments import Number, Operand
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import elementwise
from engine.kernels.axes import broadcast
from engine.kernels.casting import cast, narrow, widen
from engine.kernels.elementwise import BINARY
from engine.kernels.functions import MORE_BINARY, MORE_UNARY
from engine.kernels.promotion import BOOL, FLOAT64, Dtype, floating, result_type
from engine.layers.checks import check_kind, keeps
from engine.layers.comparison import binary_layer, infer_binary, infer_unary, unary_layer
from engine.spec import TensorSpec

for _name, _unary in MORE_UNARY.items():
    layer(f"aten::{_name}", infer=infer_unary(_unary))(unary_layer(_unary))

for _name, _binary in MORE_BINARY.items():
    layer(f"aten::{_name}", infer=infer_binary(_binary))(binary_layer(_binary))


def _shape(*operands: Any) -> tuple[int, ...]:
    return broadcast(*(operand.shape for operand in operands if isinstance(operand, TensorSpec)))


def _double(*operands: Any) -> Dtype:
    return np.promote_types(result_type(*operands), FLOAT64)


def _infer_float_power(input: TensorSpec | Number, exponent: TensorSpec | Number) -> TensorSpec:
    return TensorSpec(_shape(input, exponent), _double(input, exponent))


@layer("aten::float_power", infer=_infer_float_power)
def float_power(input: Operand, exponent: Operand) -> Array:
    """Raise to a power in float64 or complex128, whatever the operands are."""
    dtype = _double(input, exponent)
    return BINARY["pow"](*(np.asarray(operand, dtype) for operand in (input, exponent)))


def _infer_bound(input: TensorSpec, bound: TensorSpec | Number) -> TensorSpec:
    result = TensorSpec(_shape(input, bound), result_type(input, bound))
    check_kind("input", result, "biuf")
    return result


@layer("aten::clamp_min", infer=_infer_bound)
def clamp_min(input: Array, bound: Operand) -> Array:
    """Limit from below."""
    return elementwise.clamp(input, bound, None)


@layer("aten::clamp_max", infer=_infer_bound)
def clamp_max(input: Array, bound: Operand) -> Array:
    """Limit from above."""
    return elementwise.clamp(input, None, bound)


@layer("aten::nan_to_num", infer=keeps("biufc"))
def nan_to_num(
    input: Array, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """Put numbers for NaN (0) and the infinities (the largest and the least of the dtype)."""
    if input.dtype.kind not in "fc":
        return input
    return np.nan_to_num(input, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


def _infer_logit(input: TensorSpec) -> TensorSpec:
    check_kind("input", input, "biuf")
    return TensorSpec(input.shape, floating(input.dtype))


@layer("aten::logit", infer=_infer_logit)
def logit(input: Array, eps: float | None = None) -> Array:
    """Compute log(x / (1 - x)), `x` limited to [eps, 1 - eps] where `eps` is given."""
    dtype = floating(input.dtype)
    x = widen(cast(input, dtype))
    if eps is not None:
        x = np.clip(x, x.dtype.type(eps), 1 - x.dtype.type(eps))
    return narrow(np.log(x / (1 - x)), dtype)


def _infer_isclose(input: TensorSpec, other: TensorSpec, rtol: float, atol: float) -> TensorSpec:
    if other.dtype != input.dtype:
        raise ArgumentError("other", f"got dtype {other.dtype}", f"that of input, {input.dtype}")
    if rtol < 0 or atol < 0:
        raise ArgumentError("rtol", f"got {rtol}, atol {atol}", "no negative tolerance")
    return TensorSpec(broadcast(input.shape, other.shape), BOOL)


@layer("aten::isclose", infer=_infer_isclose)
def isclose(
    input: Array, other: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Array:
    """Return where |input - other| is at most atol + rtol · |other|."""
    close = np.asarray(input == other)
    if input.dtype.kind in "fc":
        difference = np.abs(input - other)
        close = close | (np.isfinite(difference) & (difference <= atol + np.abs(rtol * other)))
        return np.asarray(close | (np.isnan(input) & np.isnan(other)) if equal_nan else close)
    signed, base = (cast(np.asarray(x), np.dtype(np.int64)) for x in (input, other))
    return np.asarray(close | (np.abs(signed - base) <= atol + np.abs(rtol * base)))


def _infer_lerp(input: TensorSpec, end: TensorSpec, weight: TensorSpec | float) -> TensorSpec:
    check_kind("input", input, "fc")
    for name, spec in (("end", end), ("weight", weight)):
        if isinstance(spec, TensorSpec) and spec.dtype != input.dtype:
            raise ArgumentError(name, f"got dtype {spec.dtype}", f"that of input, {input.dtype}")
    return input.with_shape(_shape(input, end, weight))


@layer("aten::lerp", infer=_infer_lerp)
def lerp(input: Array, end: Array, weight: Operand) -> Array:
    """Go the share `weight` of the way from `input` to `end`, reckoned from the nearer of the two."""
    start, stop = widen(input), widen(end)
    share = cast(np.asarray(weight), start.dtype)
    way = stop - start
    return narrow(np.where(np.abs(share) < 0.5, start + share * way, stop - way * (1 - share)), input.dtype)


def _infer_addcmul(input: TensorSpec, tensor1: TensorSpec, tensor2: TensorSpec, value: Number) -> TensorSpec:
    dtype = result_type(input, tensor1, tensor2)
    if isinstance(value, float) and dtype.kind in "iu":
        raise ArgumentError("value", f"is {value}", "an int, as the tensors are of integers")
    result = TensorSpec(_shape(input, tensor1, tensor2), dtype)
    check_kind("input", result, "iufc")
    return result


@layer("aten::addcmul", infer=_infer_addcmul)
def addcmul(input: Array, tensor1: Array, tensor2: Array, value: Number = 1) -> Array:
    """Compute input + value · tensor1 · tensor2."""
    dtype = result_type(input, tensor1, tensor2)
    x, a, b = (widen(cast(operand, dtype)) for operand in (input, tensor1, tensor2))
    return narrow(x + cast(np.asarray(value), x.dtype) * a * b, dtype)


def _infer_addcdiv(input: TensorSpec, tensor1: TensorSpec, tensor2: TensorSpec, value: Number) -> TensorSpec:
    result = _infer_addcmul(input, tensor1, tensor2, value)
    check_kind("input", result, "fc")
    return result


@layer("aten::addcdiv", infer=_infer_addcdiv)
def addcdiv(input: Array, tensor1: Array, tensor2: Array, value: Number = 1) -> Array:
    """Compute input + value · tensor1 / tensor2."""
    dtype = result_type(input, tensor1, tensor2)
    x, a, b = (widen(cast(operand, dtype)) for operand in (input, tensor1, tensor2))
    return narrow(x + cast(np.asarray(value), x.dtype) * a / b, dtype)
