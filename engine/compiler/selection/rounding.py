"""Precision of a node's kernel before memory layout."""

from engine.compiler.graph import Convolution, Node, TransposedConvolution
from engine.compiler.selection.call import Selector
from engine.compiler.selection.convolution import rounds_convolution
from engine.compiler.selection.transposed_convolution import rounds_transposed


def rounds_operands(selector: Selector, node: Node) -> bool:
    """Whether the kernel of a convolution will round the operands of its products to bfloat16; of others never."""
    if isinstance(node, Convolution):
        return rounds_convolution(selector, node)
    return isinstance(node, TransposedConvolution) and rounds_transposed(selector, node)
