"""Selection: nodes of the compiler's graph -> calls of kernels. One rule per kind of node."""

from engine.compiler.selection import (
    convolution,
    integer_linear,
    integers,
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

__all__ = [
    "RULES",
    "KernelCall",
    "Selector",
    "convolution",
    "integer_linear",
    "integers",
    "linear",
    "matrix_product",
    "movement",
    "normalization",
    "pooling",
    "recurrent",
    "transposed_convolution",
    "upsample",
]
