"""Layers that compare, and that combine truth values and bits: torch.eq, logical_and, bitwise_xor and kin."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from engine.arguments import Operand
from engine.dtypes import Array
from engine.kernels.axes import broadcast
from engine.kernels.elementwise import BINARY, UNARY
from engine.kernels.ufunc import Binary, Unary
from engine.registry import layer
from engine.spec import TensorSpec

SpecOperand: TypeAlias = TensorSpec | int | float | complex

COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")
LOGICAL = ("logical_and", "logical_or", "logical_xor")
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
NEGATIONS = ("logical_not", "bitwise_not")


def _infer_binary(kernel: Binary) -> Callable[..., TensorSpec]:
    def infer(input: SpecOperand, other: SpecOperand) -> TensorSpec:
        shapes = [operand.shape for operand in (input, other) if isinstance(operand, TensorSpec)]
        return TensorSpec(broadcast(*shapes), kernel.result_dtype(input, other))

    return infer


def _binary_layer(kernel: Binary) -> Callable[..., Array]:
    def forward(input: Operand | bool, other: Operand | bool) -> Array:
        lone = not isinstance(input, np.ndarray) and not isinstance(other, np.ndarray)
        return kernel(np.asarray(input) if lone else input, other)

    return forward


def _infer_unary(kernel: Unary) -> Callable[..., TensorSpec]:
    def infer(input: TensorSpec) -> TensorSpec:
        return TensorSpec(input.shape, kernel.result_dtype(input))

    return infer


def _unary_layer(kernel: Unary) -> Callable[..., Array]:
    def forward(input: Array) -> Array:
        return kernel(input)

    return forward


for _name in (*COMPARISONS, *LOGICAL, *BITWISE):
    layer(f"torch.{_name}", infer=_infer_binary(BINARY[_name]))(_binary_layer(BINARY[_name]))

for _name in NEGATIONS:
    layer(f"torch.{_name}", infer=_infer_unary(UNARY[_name]))(_unary_layer(UNARY[_name]))
