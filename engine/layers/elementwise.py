"""Elementwise layers outside expressions: clamp, where, masked_fill, complex and similar.

What PNNX folds into expressions (add, mul, sqrt, …) is in `engine.expression`; what compares is in `comparison`.
"""

from typing import TypeAlias

import numpy as np

from engine.binding.arguments import Number, Operand
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import elementwise
from engine.kernels.axes import broadcast
from engine.kernels.casting import cast
from engine.kernels.elementwise import UNARY
from engine.kernels.promotion import real_dtype, result_type
from engine.layers.checks import check_kind, keeps
from engine.layers.view_rules import view_layer
from engine.spec import TensorSpec

SpecNumber: TypeAlias = TensorSpec | int | float | complex | bool


def _shape(*operands: SpecNumber | None, argument: str) -> tuple[int, ...]:
    shapes = [operand.shape for operand in operands if isinstance(operand, TensorSpec)]
    return broadcast(*shapes, argument=argument)


def _infer_clamp(input: TensorSpec, min: SpecNumber | None, max: SpecNumber | None) -> TensorSpec:
    bounds = [bound for bound in (min, max) if bound is not None]
    if not bounds:
        raise ArgumentError("min", "got neither min nor max", "a bound")
    result = TensorSpec(_shape(input, *bounds, argument="min"), result_type(input, *bounds))
    check_kind("input", result, "biuf")
    return result


@layer("torch.clamp", infer=_infer_clamp)
def clamp(input: Array, min: Operand | None = None, max: Operand | None = None) -> Array:
    """Limit to [min, max]; where the bounds cross, `max` wins."""
    return elementwise.clamp(input, min, max)


def _infer_lgamma(input: TensorSpec) -> TensorSpec:
    return TensorSpec(input.shape, UNARY["lgamma"].result_dtype(input))


@layer("torch.lgamma", infer=_infer_lgamma)
def lgamma(input: Array) -> Array:
    """Take the logarithm of the absolute value of the gamma function."""
    return UNARY["lgamma"](input)


@layer("torch.positive", infer=keeps("iufc"))
def positive(input: Array) -> Array:
    """Give the tensor itself."""
    return input


def _infer_where(condition: TensorSpec, input: SpecNumber, other: SpecNumber) -> TensorSpec:
    check_kind("condition", condition, "bu")
    return TensorSpec(_shape(condition, input, other, argument="condition"), result_type(input, other))


@layer("torch.where", infer=_infer_where)
def where(condition: Array, input: Operand | bool, other: Operand | bool) -> Array:
    """Choose `input` where the condition holds, `other` elsewhere."""
    dtype = result_type(input, other)
    chosen, rest = cast(np.asarray(input), dtype), cast(np.asarray(other), dtype)
    return np.where(condition != 0, chosen, rest)


def _infer_masked_fill(input: TensorSpec, mask: TensorSpec, value: SpecNumber) -> TensorSpec:
    check_kind("mask", mask, "b")
    if isinstance(value, TensorSpec) and value.shape:
        raise ArgumentError(
            "value", f"got {value.rank} dimensions", "a number or a tensor without dimensions"
        )
    return input.with_shape(_shape(input, mask, argument="mask"))


@layer("Tensor.masked_fill", infer=_infer_masked_fill)
def masked_fill(input: Array, mask: Array, value: Array | Number | bool) -> Array:
    """Put `value` where the mask holds."""
    return np.where(mask, cast(np.asarray(value), input.dtype), input)


def _infer_complex(real: TensorSpec, imag: TensorSpec) -> TensorSpec:
    check_kind("real", real, "f")
    if imag.dtype != real.dtype:
        raise ArgumentError("imag", f"got dtype {imag.dtype}", f"that of real, {real.dtype}")
    return TensorSpec(broadcast(real.shape, imag.shape, argument="imag"), _complex_of(real))


def _complex_of(part: Array | TensorSpec) -> np.dtype[np.complexfloating]:
    return np.dtype(np.complex128 if part.dtype.itemsize == 8 else np.complex64)


@layer("torch.complex", infer=_infer_complex)
def complex_of_parts(real: Array, imag: Array) -> Array:
    """Put complex numbers together from their parts."""
    result = np.empty(np.broadcast(real, imag).shape, _complex_of(real))
    part = result.real.dtype
    result.real, result.imag = cast(real, part), cast(imag, part)
    return result


def _part(input: TensorSpec) -> TensorSpec:
    return TensorSpec(input.shape, real_dtype(input.dtype))


@view_layer("torch.real")
def real(input: Array) -> Array:
    """Give the real part."""
    return input.real


def _infer_imag(input: TensorSpec) -> TensorSpec:
    check_kind("input", input, "c")
    return _part(input)


@layer("torch.imag", infer=_infer_imag)
def imag(input: Array) -> Array:
    """Give the imaginary part."""
    return input.imag


def _infer_view_as_real(input: TensorSpec) -> TensorSpec:
    check_kind("input", input, "c")
    return _part(input).with_shape((*input.shape, 2))


@layer("torch.view_as_real", infer=_infer_view_as_real)
def view_as_real(input: Array) -> Array:
    """Give the real and the imaginary parts along a new last dimension."""
    return np.stack((input.real, input.imag), -1)


def _infer_view_as_complex(input: TensorSpec) -> TensorSpec:
    check_kind("input", input, "f")
    if input.shape[-1:] != (2,):
        raise ArgumentError("input", f"got shape {input.shape}", "a last dimension of 2")
    return TensorSpec(input.shape[:-1], _complex_of(input))


@layer("torch.view_as_complex", infer=_infer_view_as_complex)
def view_as_complex(input: Array) -> Array:
    """Take the two values along the last dimension for the parts of complex numbers."""
    return complex_of_parts(input[..., 0], input[..., 1])
