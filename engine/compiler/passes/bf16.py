"""Tensors of bfloat16 between kernels: where every reader rounds to it anyhow, it is stored, and half as much moves.

Results stay the same to the bit: what a reader would round is rounded once, by the kernel that computes it.
"""

from collections.abc import Callable

from engine.compiler.graph import (
    Concatenation,
    Convolution,
    LoweredGraph,
    Node,
    Pool,
    Tensor,
    TransposedConvolution,
)

PAIR = 2
"""Channels of an element."""
_CHANNELS = 1
_RANK = 4


def keep_bf16(graph: LoweredGraph, rounds: Callable[[Node], bool]) -> None:
    """Choose the images that are stored in pairs of bfloat16; see `Tensor.is_bf16`.

    To be called after fusion: then it is known what each kernel computes before it stores.

    Args:
        graph: the graph.
        rounds: whether the kernel of a convolution rounds its operands to bfloat16.
    """
    rounding: set[Node] = {
        node for node in graph.nodes if isinstance(node, Convolution | TransposedConvolution) and rounds(node)
    }
    leaving = {graph.tensors[slot] for slot in graph.leaving if slot in graph.tensors}
    passing = {node for node in graph.nodes if _passes_on(node)}
    marked = {
        node.output
        for node in (*rounding, *passing)
        if node.output not in leaving and _is_even(node.output) and node.output.users
    }
    while gone := {tensor for tensor in marked if not _may_stay(tensor, marked, rounding, passing)}:
        marked -= gone
    for tensor in marked:
        tensor.channels = tensor.shape[_CHANNELS]
        tensor.shape = (tensor.shape[0], tensor.channels // PAIR, *tensor.shape[2:])
        tensor.is_bf16 = True


def _passes_on(node: Node) -> bool:
    """Whether a node's results are elements of its inputs: rounding them before or after is the same."""
    if isinstance(node, Pool):
        return node.how == "max" and node.dilation == (1, 1)
    return isinstance(node, Concatenation) and node.axis == _CHANNELS


def _is_even(tensor: Tensor) -> bool:
    """Whether a tensor is an image of several columns whose channels are whole pairs."""
    is_image = tensor.rank == _RANK and tensor.shape[3] > 1
    return is_image and not tensor.is_kept and tensor.scale is None and tensor.shape[_CHANNELS] % PAIR == 0


def _may_stay(tensor: Tensor, marked: set[Tensor], rounding: set[Node], passing: set[Node]) -> bool:
    """Whether all that reads a tensor takes pairs, and what it is made of is there in pairs where it has to be."""
    if tensor.node in passing and not marked.issuperset(tensor.node.inputs):
        return False
    return all(
        user.output in marked if user in passing else user in rounding and tensor not in user.inputs[1:]
        for user in tensor.users
    )
