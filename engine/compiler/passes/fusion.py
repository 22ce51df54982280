"""Fusion of pointwise operators into the node that computes their operand, without an intermediate tensor.

So do zeros around an image move into the convolutions that read it. Sums of parallel convolutions of one image, as
RepVGG and MobileOne have, become one convolution: where one kernel lies within another, padded with zeros, weights are
added, and a batch normalization of the image is a convolution with one row and one column.
"""

from collections.abc import Collection, Iterator
from math import prod

import numpy as np

from engine.compiler.emit.pointwise import (
    MAX_NODES,
    Apply,
    Leaf,
    PointwiseExpression,
    apply,
    size,
    substitute,
)
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
        folds_scales: whether scales and shifts per channel are folded into weights, and weights of parallel
            convolutions added. Weights that are rounded stay as the model has them, so that they can be compared with
            it.
    """
    order = {node: place for place, node in enumerate(graph.nodes)}
    leaving = {graph.tensors[slot] for slot in graph.leaving if slot in graph.tensors}
    gone: set[Node] = {node for node in graph.nodes if isinstance(node, Pad) and _fold_margins(node, leaving)}
    for node in graph.nodes:
        current: Node = node
        if folds_scales and isinstance(node, Pointwise):
            gone |= _merge_convolutions(node, leaving)
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
    factors = _affine(node, producer.channel_axis)
    if factors is None or node.inputs[0].node is not producer:
        return False
    scale, shift = factors
    spread = (-1,) + (1,) * (producer.weight.ndim - 1)
    producer.weight = (producer.weight * scale.reshape(spread)).astype(np.float32)
    bias = 0.0 if producer.bias is None else producer.bias
    producer.bias = (bias * scale + shift).astype(np.float32)
    producer.is_computed = True
    _take_place(producer, node)
    return True


def _affine(node: Pointwise, channel_axis: int = 1) -> tuple[Array, Array] | None:
    """Return scale and shift of `x * scale + shift` over constants per channel, None for any other expression."""
    match node.epilogue:
        case Apply("add", (Apply("mul", (Leaf(1), Leaf(2))), Leaf(3))):
            factors = [tensor.node for tensor in node.inputs[1:]]
        case _:
            return None
    if len(factors) != 2:
        return None
    channels = node.output.shape[channel_axis]
    arrays = [
        factor.array.reshape(-1).astype(np.float64)
        for factor in factors
        if isinstance(factor, Constant)
        and factor.array.size == channels
        and spreads(factor.array.shape, node.output.shape, channel_axis)
    ]
    return (arrays[0], arrays[1]) if len(arrays) == 2 else None


def _merge_convolutions(node: Pointwise, leaving: Collection[Tensor]) -> set[Node]:
    """Add the weights of convolutions that a node sums; returns the nodes that the remaining ones do as well.

    Args:
        node: the node, whose epilogue reads one term for those that became one.
        leaving: tensors that leave the graph.
    """
    terms = list(_terms(node.epilogue))
    branches = [
        tensor.node
        for place, tensor in enumerate(node.inputs, 1)
        if _is_only_summed(tensor, node, terms, place) and tensor not in leaving
    ]
    hosts = sorted(
        (branch for branch in branches if isinstance(branch, Convolution)),
        key=lambda convolution: -prod(convolution.weight.shape[2:]),
    )
    gone: set[Node] = set()
    for host in hosts:
        for branch in branches:
            if host not in gone and branch not in gone and branch is not host and _merge(branch, host):
                gone.add(branch)
    if gone:
        _remove_terms(node, gone)
    return gone


def _terms(expression: PointwiseExpression) -> Iterator[PointwiseExpression]:
    """Yield the terms of a sum, in their order."""
    match expression:
        case Apply("add", (left, right)):
            yield from _terms(left)
            yield from _terms(right)
        case _:
            yield expression


def _is_only_summed(tensor: Tensor, node: Pointwise, terms: list[PointwiseExpression], place: int) -> bool:
    """Whether a convolution or pointwise node gives a tensor that is needed for nothing but one term of the sum."""
    source = tensor.node
    return (
        isinstance(source, Convolution | Pointwise)
        and (isinstance(source, Pointwise) or source.epilogue == Leaf(0))
        and tensor.users == [node]
        and not tensor.is_kept
        and tensor.shape == node.output.shape
        and sum(_count(term, place) for term in terms) == 1
        and Leaf(place) in terms
    )


def _count(expression: PointwiseExpression, place: int) -> int:
    if isinstance(expression, Apply):
        return sum(_count(argument, place) for argument in expression.arguments)
    return int(expression == Leaf(place))


def _merge(branch: Node, host: Convolution) -> bool:
    """Add a branch's weights to those of a convolution of the same image; returns whether its kernel lies within."""
    if branch.inputs[0] is not host.inputs[0]:
        return False
    convolution = _as_convolution(branch, host)
    if convolution is None:
        return False
    weight, bias, padding, dilation = convolution
    window = []
    for axis in range(2):
        size, extent, step = weight.shape[2 + axis], host.weight.shape[2 + axis], host.dilation[axis]
        start, remainder = divmod(host.padding[axis] - padding[axis], step)
        has_same_steps = size == 1 or dilation[axis] == step
        if remainder or not has_same_steps or not 0 <= start <= extent - size:
            return False
        window.append(slice(start, start + size))
    total = host.weight.astype(np.float64)
    total[:, :, window[0], window[1]] += weight
    host.weight = total.astype(np.float32)
    if bias is not None:
        own = 0.0 if host.bias is None else host.bias.astype(np.float64)
        host.bias = (own + bias).astype(np.float32)
    host.is_computed = True
    host.steps += branch.steps
    for tensor in branch.inputs:
        tensor.users.remove(branch)
    branch.inputs.clear()
    return True


def _as_convolution(
    branch: Node, host: Convolution
) -> tuple[Array, Array | None, tuple[int, int, int, int], tuple[int, int]] | None:
    """Return weight, bias, padding and dilation of a branch with a convolution's stride and groups, if it has these."""
    match branch:
        case Convolution(stride=host.stride, groups=host.groups):
            return branch.weight, branch.bias, branch.padding, branch.dilation
        case Pointwise() if host.stride == (1, 1) and (factors := _affine(branch)) is not None:
            scale, shift = factors
            filters, channels = host.weight.shape[:2]
            if filters != channels * host.groups:
                return None
            weight = np.zeros((filters, channels, 1, 1))
            places = np.arange(filters)
            weight[places, places % channels, 0, 0] = scale
            return weight, shift, (0, 0, 0, 0), (1, 1)
        case _:
            return None


def _remove_terms(node: Pointwise, gone: Collection[Node]) -> None:
    """Leave out of a sum what is part of another term."""
    kept = [tensor for tensor in node.inputs if tensor.node not in gone]
    removed = {Leaf(place) for place, tensor in enumerate(node.inputs, 1) if tensor.node in gone}
    first, *others = (term for term in _terms(node.epilogue) if term not in removed)
    for term in others:
        first = apply("add", first, term)
    leaves = [Leaf(0), *(Leaf(kept.index(t) + 1) if t in kept else Leaf(0) for t in node.inputs)]
    node.inputs[:] = kept
    node.epilogue = substitute(first, leaves)
