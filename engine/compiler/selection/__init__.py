"""Selection: nodes of the compiler's graph -> calls of kernels. One rule per kind of node."""

from engine.compiler.graph import Convolution, Node, TransposedConvolution
from engine.compiler.selection import (
    convolution,
    int8,
    linear,
    matrix_product,
    movement,
    normalization,
    pooling,
    recurrent,
    transposed_convolution,
)
from engine.compiler.selection.call import RULES, KernelCall, Selector

__all__ = [
    "RULES",
    "KernelCall",
    "Selector",
    "convolution",
    "int8",
    "linear",
    "matrix_product",
    "movement",
    "normalization",
    "pooling",
    "recurrent",
    "rounds_operands",
    "transposed_convolution",
]


def rounds_operands(selector: Selector, node: Node) -> bool:
    """Whether the kernel of a convolution will round the operands of its products to bfloat16; of others never."""
    if isinstance(node, Convolution):
        return convolution.rounds_convolution(selector, node)
    return isinstance(node, TransposedConvolution) and transposed_convolution.rounds_transposed(
        selector, node
    )
