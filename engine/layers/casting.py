"""Layers that change the dtype of a tensor, or put other values in its place: to, type_as, copy, fill."""

import numpy as np

from engine.binding.arguments import DType, Number
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import broadcast
from engine.kernels.casting import cast
from engine.layers.view_rules import view_layer
from engine.spec import TensorSpec


def _infer_to(input: TensorSpec, dtype: DType | None) -> TensorSpec:
    return TensorSpec(input.shape, dtype or input.dtype)


@layer("Tensor.to", infer=_infer_to)
def to(input: Array, dtype: DType | None = None) -> Array:
    """Change the dtype. Device, memory format and whether to copy have no meaning here."""
    return cast(input, dtype or input.dtype)


def _infer_type_as(input: TensorSpec, other: TensorSpec) -> TensorSpec:
    return TensorSpec(input.shape, other.dtype)


@layer("Tensor.type_as", infer=_infer_type_as)
def type_as(input: Array, other: Array) -> Array:
    """Change the dtype to that of `other`."""
    return cast(input, other.dtype)


def _infer_copy(self: TensorSpec, src: TensorSpec) -> TensorSpec:
    if broadcast(self.shape, src.shape, argument="src") != self.shape:
        raise ArgumentError("src", f"got shape {src.shape}", f"one that expands to {self.shape}")
    return self


@layer("Tensor.copy", infer=_infer_copy)
def copy(self: Array, src: Array) -> Array:
    """Give the values of `src` in the shape and dtype of `self`."""
    return np.broadcast_to(cast(src, self.dtype), self.shape)


@view_layer("Tensor.fill")
def fill(input: Array, value: Array | Number | bool) -> Array:
    """Give one value in the shape and dtype of `input`."""
    if np.ndim(value):
        expected = "a number or a tensor without dimensions"
        raise ArgumentError("value", f"got {np.ndim(value)} dimensions", expected)
    return np.broadcast_to(cast(np.asarray(value), input.dtype), input.shape)
