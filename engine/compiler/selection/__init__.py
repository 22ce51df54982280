"""Selection: nodes of the compiler's graph -> calls of kernels. One rule per kind of node."""

from engine.compiler.selection import (
    convolution,
    int8,
    int8_linear,
    linear,
    matrix_product,
    movement,
    normalization,
    pooling,
    recurrent,
    transposed_convolution,
    upsample,
)
from engine.compiler.selection.call import RULES, KernelCall, Selector
from engine.compiler.selection.rounding import rounds_operands

__all__ = [
    "RULES",
    "KernelCall",
    "Selector",
    "convolution",
    "int8",
    "int8_linear",
    "linear",
    "matrix_product",
    "movement",
    "normalization",
    "pooling",
    "recurrent",
    "rounds_operands",
    "transposed_convolution",
    "upsample",
]
