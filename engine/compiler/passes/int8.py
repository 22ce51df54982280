"""Integers instead of float32: kernels store and read them directly, and unread tensors are removed."""

from collections.abc import Collection

from engine.compiler.emit.int8 import WORD_CHANNELS
from engine.compiler.graph import (
    Convolution,
    Dequantize,
    EpilogueNode,
    Int8Convolution,
    LoweredGraph,
    Node,
    Quantize,
    Tensor,
)


def keep_int8(graph: LoweredGraph) -> None:
    """Let kernels read and store integers where they can, and remove unused conversions.

    To be called after fusion: then it is known what each kernel computes before it stores.
    """
    leaving = {graph.tensors[slot] for slot in graph.leaving if slot in graph.tensors}
    for node in graph.nodes:
        if isinstance(node, Int8Convolution | Convolution) and _has_whole_words(node):
            _read_integers(node)
    gone: set[Node] = set()
    for node in reversed(graph.nodes):
        if isinstance(node, Quantize | Dequantize) and not _is_needed(node.output, leaving):
            node.inputs[0].users.remove(node)
            gone.add(node)
    for node in graph.nodes:
        if node not in gone and isinstance(node, Quantize) and _may_store(node, leaving):
            _store_integers(node)
            gone.add(node)
    for slot, tensor in graph.tensors.items():
        if tensor.node in gone and isinstance(tensor.node, Dequantize):
            graph.tensors[slot] = tensor.node.inputs[0]
    graph.nodes = [node for node in graph.nodes if node not in gone]


def _read_integers(node: EpilogueNode) -> None:
    """Let an epilogue read the integers of its operands, where these have as many elements as the result."""
    for place in range(node.own, len(node.inputs)):
        tensor = node.inputs[place]
        source = tensor.node
        if isinstance(source, Dequantize) and tensor.shape == node.output.shape and tensor.rank > 2:
            tensor.users.remove(node)
            node.inputs[place] = source.inputs[0]
            source.inputs[0].users.append(node)


def _is_needed(tensor: Tensor, leaving: Collection[Tensor]) -> bool:
    return bool(tensor.users) or tensor.is_kept or tensor in leaving


def _may_store(node: Quantize, leaving: Collection[Tensor]) -> bool:
    """Whether the node that computes a tensor can store its integers, as the tensor itself is unread."""
    (tensor,) = node.inputs
    is_own = tensor.users == [node] and not tensor.is_kept and tensor not in leaving
    return is_own and isinstance(tensor.node, Int8Convolution) and _has_whole_words(tensor.node)


def _has_whole_words(node: Int8Convolution | Convolution) -> bool:
    """Whether the filters of each group begin where an element of four channels does."""
    weight = node.weights.integers if isinstance(node, Int8Convolution) else node.weight
    filters = len(weight) // node.groups
    is_depthwise = filters == weight.shape[1] == 1
    return node.groups == 1 or is_depthwise or filters % WORD_CHANNELS == 0


def _store_integers(node: Quantize) -> None:
    (tensor,) = node.inputs
    producer = tensor.node
    producer.outputs = [node.output]
    node.output.node = producer
    tensor.users.clear()
