"""Fusion of pointwise operators into the node that computes their operand, without an intermediate tensor.

So do zeros around an image move into the convolutions that read it.
"""

from collections.abc import Collection

import numpy as np

from engine.compiler.emit.pointwise import MAX_NODES, Apply, Leaf, PointwiseExpression, size, substitute
from engine.compiler.graph import (
    Constant,
    Convolution,
    EpilogueNode,
    Linear,
    LoweredGraph,
    Node,
    Pad,
    Pointwise,
    Tensor,
)
from engine.dtypes import Array

MAX_OPERANDS = 6
"""Tensors that an epilogue reads; each takes a register for its address."""


def fuse(graph: LoweredGraph, folds_scales: bool = True) -> None:
    """Move zeros around images into the convolutions that read them, and pointwise nodes into their producers.

    Args:
        graph: the graph.
        folds_scales: whether scales and shifts per channel are folded into weights. Weights that are rounded stay as
            the model has them, so that they can be compared with it.
    """
    order = {node: place for place, node in enumerate(graph.nodes)}
    leaving = {graph.tensors[slot] for slot in graph.leaving if slot in graph.tensors}
    gone: set[Node] = {node for node in graph.nodes if isinstance(node, Pad) and _fold_margins(node, leaving)}
    for node in graph.nodes:
        current: Node = node
        # what has moved into another pointwise node may move on with it
        while isinstance(current, Pointwise) and (producer := _best_producer(current, order, leaving)):
            if not (folds_scales and _fold_affine(producer, current)):
                _absorb(producer, current)
            # the producer now runs where the pointwise node did: everything that it reads is there by then
            order[producer] = order[current]
            gone.add(current)
            current = producer
    graph.nodes = sorted((node for node in graph.nodes if node not in gone), key=order.__getitem__)


def _fold_margins(node: Pad, leaving: Collection[Tensor]) -> bool:
    """Make zeros around an image the padding of the convolutions that alone read it; returns whether it could."""
    is_zeros = node.mode == "constant" and node.value.value == 0 and min(map(min, node.margins)) >= 0
    users = [user for user in node.output.users if isinstance(user, Convolution)]
    is_shared = node.output.is_kept or node.output in leaving or len(users) != len(node.output.users)
    if not is_zeros or not node.is_spatial or is_shared or not users:
        return False
    (source,) = node.inputs
    (above, below), (before, after) = node.margins[2:] if source.rank == 4 else ((0, 0), node.margins[2])
    source.users.remove(node)
    for user in users:
        top, left, bottom, right = user.padding
        user.padding = (top + above, left + before, bottom + below, right + after)
        user.inputs[0] = source
        source.users.append(user)
    users[0].steps += node.steps
    return True


def _best_producer(
    node: Pointwise, order: dict[Node, int], leaving: Collection[Tensor]
) -> EpilogueNode | None:
    """Return the node that computes an operand and may do this one's work as well, the last of several."""
    shape = node.output.shape
    candidates = [
        tensor.node
        for tensor in node.inputs
        if isinstance(tensor.node, EpilogueNode)
        and tensor.shape == shape
        and all(user is node for user in tensor.users)
        and not tensor.is_kept
        and tensor not in leaving
        and _may_take(tensor.node, node, tensor)
    ]
    return max(candidates, key=order.__getitem__, default=None)


def _may_take(producer: EpilogueNode, node: Pointwise, via: Tensor) -> bool:
    others = [tensor for tensor in node.inputs if tensor is not via]
    if len(producer.inputs) - producer.own + len(others) > MAX_OPERANDS:
        return False
    uses = sum(tensor is via for tensor in node.inputs)
    if size(node.epilogue) + uses * size(producer.epilogue) > MAX_NODES:
        return False
    if isinstance(producer, Pointwise):
        return True
    return all(spreads(tensor.shape, node.output.shape, producer.channel_axis) for tensor in others)


def spreads(shape: tuple[int, ...], over: tuple[int, ...], channel_axis: int) -> bool:
    """Return whether a tensor spreads over another as an epilogue's operand: in full, per channel, or as one number."""
    padded = (1,) * (len(over) - len(shape)) + shape
    if padded == over or all(extent == 1 for extent in padded):
        return True
    per_channel = [axis for axis, extent in enumerate(padded) if extent != 1]
    return per_channel == [channel_axis] or (
        channel_axis == 1 and per_channel == [0, 1] and padded[:2] == over[:2]
    )


def _absorb(producer: EpilogueNode, node: Pointwise) -> None:
    """Make a pointwise node's work the end of its producer's."""
    leaves: list[PointwiseExpression] = [Leaf(0)]
    for tensor in node.inputs:
        if tensor.node is producer:
            leaves.append(producer.epilogue)
        else:
            producer.inputs.append(tensor)
            leaves.append(Leaf(len(producer.inputs) - producer.own))
            tensor.users[tensor.users.index(node)] = producer
    producer.epilogue = substitute(node.epilogue, leaves)
    _take_place(producer, node)


def _take_place(producer: EpilogueNode, node: Pointwise) -> None:
    producer.steps += node.steps
    producer.outputs = node.outputs
    node.output.node = producer
    node.inputs.clear()  # it and what it read would keep each other, and the weights, until the garbage is collected


def _fold_affine(producer: EpilogueNode, node: Pointwise) -> bool:
    """Fold multiplication and addition by constants per channel into weights and bias; returns whether it could."""
    if not isinstance(producer, Convolution | Linear) or producer.epilogue != Leaf(0):
        return False
    factors = _affine(node, producer)
    if factors is None:
        return False
    scale, shift = factors
    spread = (-1,) + (1,) * (producer.weight.ndim - 1)
    producer.weight = (producer.weight * scale.reshape(spread)).astype(np.float32)
    bias = 0.0 if producer.bias is None else producer.bias
    producer.bias = (bias * scale + shift).astype(np.float32)
    producer.is_computed = True
    _take_place(producer, node)
    return True


def _affine(node: Pointwise, producer: EpilogueNode) -> tuple[Array, Array] | None:
    """Return scale and shift of `x * scale + shift` over constants per channel, None for any other expression."""
    match node.epilogue:
        case Apply("add", (Apply("mul", (Leaf(1), Leaf(2))), Leaf(3))):
            factors = [tensor.node for tensor in node.inputs[1:]]
        case _:
            return None
    if node.inputs[0].node is not producer or len(factors) != 2:
        return None
    channels = node.output.shape[producer.channel_axis]
    arrays = [
        factor.array.reshape(-1).astype(np.float64)
        for factor in factors
        if isinstance(factor, Constant)
        and factor.array.size == channels
        and spreads(factor.array.shape, node.output.shape, producer.channel_axis)
    ]
    return (arrays[0], arrays[1]) if len(arrays) == 2 else None
