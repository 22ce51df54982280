"""Comparison, logical and bitwise layers: torch.eq, logical_and, bitwise_xor and similar."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from engine.binding.arguments import Operand
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.kernels.axes import broadcast
from engine.kernels.elementwise import BINARY, UNARY
from engine.kernels.promotion import scalar_dtype
from engine.kernels.ufunc import Binary, Unary
from engine.spec import TensorSpec

SpecOperand: TypeAlias = TensorSpec | int | float | complex

COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")
LOGICAL = ("logical_and", "logical_or", "logical_xor")
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
NEGATIONS = ("logical_not", "bitwise_not")


def infer_binary(kernel: Binary) -> Callable[..., TensorSpec]:
    """Make the shape rule of a layer that runs a kernel of two operands."""

    def infer(input: SpecOperand, other: SpecOperand) -> TensorSpec:
        shapes = [operand.shape for operand in (input, other) if isinstance(operand, TensorSpec)]
        return TensorSpec(broadcast(*shapes), kernel.result_dtype(input, other))

    return infer


def binary_layer(kernel: Binary) -> Callable[..., Array]:
    """Make a layer of a kernel of two operands: tensors, or a tensor and a number."""

    def forward(input: Operand | bool, other: Operand | bool) -> Array:
        if not isinstance(input, np.ndarray) and not isinstance(other, np.ndarray):
            return kernel(np.asarray(input, scalar_dtype(input)), other)
        return kernel(input, other)

    return forward


def infer_unary(kernel: Unary) -> Callable[..., TensorSpec]:
    """Make the shape rule of a layer that runs a kernel of one operand."""

    def infer(input: TensorSpec) -> TensorSpec:
        return TensorSpec(input.shape, kernel.result_dtype(input))

    return infer


def unary_layer(kernel: Unary) -> Callable[..., Array]:
    """Make a layer of a kernel of one operand."""

    def forward(input: Array) -> Array:
        return kernel(input)

    return forward


for _name in (*COMPARISONS, *LOGICAL, *BITWISE):
    layer(f"torch.{_name}", infer=infer_binary(BINARY[_name]))(binary_layer(BINARY[_name]))

for _name in NEGATIONS:
    layer(f"torch.{_name}", infer=infer_unary(UNARY[_name]))(unary_layer(UNARY[_name]))
