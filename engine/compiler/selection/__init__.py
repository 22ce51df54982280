"""Selection: nodes of the compiler's graph -> calls of kernels. One rule per kind of node."""

from engine.compiler.selection import (
    convolution,
    linear,
    matrix_product,
    movement,
    normalization,
    pooling,
    transposed_convolution,
    upsample,
)
from engine.compiler.selection.call import RULES, Call, Packed, Selector

__all__ = [
    "RULES",
    "Call",
    "Packed",
    "Selector",
    "convolution",
    "linear",
    "matrix_product",
    "movement",
    "normalization",
    "pooling",
    "transposed_convolution",
    "upsample",
]
