"""Memory formats of tensors: channels-last for images, row-major otherwise, parts of a whole in place."""

from collections.abc import Iterator, Mapping

import numpy as np

from engine.compiler.graph import (
    AdaptivePool,
    Concatenation,
    Constant,
    Convolution,
    Dequantize,
    Fallback,
    GroupNorm,
    Int8Convolution,
    LoweredGraph,
    Node,
    Pad,
    Placeholder,
    Pointwise,
    Pool,
    Quantize,
    Rearrangement,
    Reduction,
    Requantize,
    Reshape,
    Softmax,
    Tensor,
    TransposedConvolution,
    Upsample,
)
from engine.compiler.memory.alignment import aligned
from engine.compiler.memory.view import Buffer, BufferKind, View, whole
from engine.dtypes import Array

CHANNELS_LAST = (0, 2, 3, 1)
"""Order of an image's axes in memory: batch, rows, columns, channels."""
_CHANNELS_LAST = {3: (0, 2, 1), 4: CHANNELS_LAST}
"""Number of axes -> their order where channels lie last: an image may have one row, and no axis for it."""
_IMAGE_NODES = (
    *(Convolution, TransposedConvolution, Pool, AdaptivePool, Upsample),
    *(Quantize, Requantize, Dequantize, Int8Convolution),
)
_LIKE_INPUT = (Pointwise, Concatenation, Reduction, GroupNorm, Pad, Rearrangement)

LARGE_CONSTANT = 1 << 20
"""Bytes of a constant that is not copied for the sake of its alignment, which vectors gain little from."""

Order = tuple[int, ...]


def place(graph: LoweredGraph) -> None:
    """Give every tensor its view, and add the copies that this takes to the graph's nodes."""
    _Placer(graph).place()


class Copy(Node):
    """Elements of one view go to another."""

    __slots__ = ("source", "target")

    def __init__(self, source: View, target: View) -> None:
        super().__init__([], [])
        self.source = source
        self.target = target


class _Placer:
    def __init__(self, graph: LoweredGraph) -> None:
        self._graph = graph
        self._orders: dict[Tensor, Order] = {}
        self._leaving = {
            graph.tensors[slot]: slot for slot in reversed(graph.leaving) if slot in graph.tensors
        }
        self._left: set[int] = set()

    def place(self) -> None:
        """Place all tensors."""
        for node in self._graph.nodes:
            for tensor in node.outputs:
                self._orders[tensor] = self._order(node, tensor)
        for node in reversed(self._graph.nodes):
            if isinstance(node, Concatenation):
                self._place_parts(node)
        nodes: list[Node] = []
        for node in self._graph.nodes:
            nodes += self._place_outputs(node)
        self._graph.nodes = [*nodes, *self._copy_outputs(self._graph.ends)]

    def _order(self, node: Node, tensor: Tensor) -> Order:
        """Return the order in memory, slowest axis first, that suits a node's output."""
        natural = tuple(range(tensor.rank))
        channels_last = _CHANNELS_LAST.get(tensor.rank, natural)
        if isinstance(node, _IMAGE_NODES) or (isinstance(node, Pad) and node.is_spatial):
            return channels_last
        if isinstance(node, Softmax):
            return self._orders[node.inputs[0]]
        if isinstance(node, _LIKE_INPUT):
            orders = [
                self._orders[i]
                for i in node.inputs
                if i.rank == tensor.rank and max(i.shape[2:], default=1) > 1
            ]
            return channels_last if channels_last in orders else natural
        return self._order_of_look(node, tensor) if isinstance(node, Reshape) else natural

    def _order_of_look(self, node: Reshape, tensor: Tensor) -> Order:
        """Return the order in which another look shows a tensor's axes."""
        natural = tuple(range(tensor.rank))
        (source,) = node.inputs
        _, views = _looked_at(node, whole(_arena(source), source.shape, self._orders[source]))
        view = views[node.outputs.index(tensor)]
        channels_last = _CHANNELS_LAST.get(tensor.rank, natural)
        # both fit where integers have one element of four channels: kernels read it as the last axis
        orders = (natural, channels_last) if tensor.scale is None else (channels_last, natural)
        for order in orders:
            steps = [view.strides[axis] for axis in order if view.shape[axis] > 1]
            if steps == sorted(steps, reverse=True):
                return order
        return tuple(sorted(natural, key=lambda axis: -view.strides[axis]))

    def _place_parts(self, node: Concatenation) -> None:
        """Let the producers of a concatenation's parts write where the parts belong."""
        output = node.output
        view = output.view or whole(_arena(output), output.shape, self._orders[output])
        output.view = view
        start = 0
        for tensor in node.inputs:
            extent = tensor.shape[node.axis]
            part = view.sliced(node.axis, start, extent)
            fits = self._orders[tensor] == self._orders[output] or _is_vector(part)
            if tensor.node.writes_anywhere and tensor.view is None and fits:
                tensor.view = part
            start += extent

    def _place_outputs(self, node: Node) -> Iterator[Node]:
        """Place what a node gives; yields it and the copies that it takes."""
        if isinstance(node, Fallback):
            if node.collects:
                yield from self._copy_outputs({self._slot(tensor): node.steps[0] for tensor in node.inputs})
            yield node
            return
        if isinstance(node, Reshape):
            yield from self._look(node)
            return
        for tensor in node.outputs:
            if tensor.view is None:
                tensor.view = self._new_view(node, tensor)
        yield node
        if isinstance(node, Concatenation):
            yield from self._copy_parts(node)

    def _new_view(self, node: Node, tensor: Tensor) -> View:
        if isinstance(node, Constant):
            array = _in_place(np.ascontiguousarray(node.array, np.float32))
            return whole(Buffer(BufferKind.CONSTANT, tensor_size(tensor), lambda: array), tensor.shape)
        if isinstance(node, Placeholder):
            return whole(Buffer(BufferKind.VALUE, tensor_size(tensor), slot=node.slot), tensor.shape)
        order = self._orders[tensor]
        slot = self._leaving.get(tensor)
        if (
            slot is not None
            and not tensor.users
            and not tensor.is_kept
            and order == tuple(range(tensor.rank))
        ):
            return whole(Buffer(BufferKind.OUTPUT, tensor_size(tensor), slot=slot), tensor.shape)
        return whole(_arena(tensor), tensor.shape, order)

    def _look(self, node: Reshape) -> Iterator[Node]:
        (source,) = node.inputs
        place, views = _looked_at(node, _view(source))
        if place is not source.view:
            yield _noted(Copy(_view(source), place), node)
        for tensor, seen in zip(node.outputs, views, strict=True):
            if tensor.view is not None:  # it is a part of a concatenation
                yield _noted(Copy(seen, tensor.view), node)
            else:
                tensor.view = seen
        yield node

    def _copy_parts(self, node: Concatenation) -> Iterator[Node]:
        start = 0
        for tensor in node.inputs:
            part = _view(node.output).sliced(node.axis, start, tensor.shape[node.axis])
            start += tensor.shape[node.axis]
            if _view(tensor) != part:
                yield _noted(Copy(_view(tensor), part), node)

    def _slot(self, tensor: Tensor) -> int:
        return next(slot for slot, other in self._graph.tensors.items() if other is tensor)

    def _copy_outputs(self, slots: Mapping[int, int]) -> Iterator[Node]:
        """Yield the copies of what leaves the graph and does not lie in memory of its own, row by row.

        Args:
            slots: slot -> step that its copy's time counts for.
        """
        for slot, step in slots.items():
            tensor = self._graph.tensors.get(slot)
            if tensor is None or slot in self._left or isinstance(tensor.node, Placeholder | Constant):
                continue  # what kernels do not compute is an array of its own already
            self._left.add(slot)
            view = _view(tensor)
            if view.buffer.kind is not BufferKind.OUTPUT:
                target = whole(Buffer(BufferKind.OUTPUT, tensor_size(tensor), slot=slot), tensor.shape)
                copy = Copy(view, target)
                copy.steps = [step]
                yield copy


def _looked_at(node: Reshape, view: View) -> tuple[View, list[View]]:
    """Return where a look's input has to lie, and its outputs there: where it is, or in a copy that is yet to make.

    Where the elements do not lie evenly enough for the look, they do in one of the orders of a copy.
    """
    views = node.look(view)
    if views is not None:
        return view, views
    for order in _orders_of_copy(node, view):
        copy = whole(Buffer(BufferKind.ARENA, view.size), view.shape, order)
        views = node.look(copy)
        if views is not None:
            return copy, views
    raise ValueError(f"no look at a tensor of shape {view.shape}")


def _orders_of_copy(node: Reshape, view: View) -> Iterator[Order]:
    """Yield orders that the axes of a copy may have: pixels before all parts of an image's channels, or row by row."""
    rank = len(view.shape)
    pixels = [step for extent, step in zip(view.shape[-2:], view.strides[-2:], strict=True) if extent > 1]
    others = [step for extent, step in zip(view.shape[:-2], view.strides[:-2], strict=True) if extent > 1]
    if node.outputs[0].rank == 4 < rank and min(others, default=0) < min(pixels, default=0):
        yield (0, rank - 2, rank - 1, *range(1, rank - 2))
    yield tuple(range(rank))


def tensor_size(tensor: Tensor) -> int:
    """Return the elements of a tensor."""
    size = 1
    for extent in tensor.shape:
        size *= extent
    return size


def _in_place(array: Array) -> Array:
    """Return a constant as kernels read it: large ones, such as tables of embeddings, stay where the file has them."""
    return array if array.nbytes >= LARGE_CONSTANT and array.flags.aligned else aligned(array)


def _arena(tensor: Tensor) -> Buffer:
    return Buffer(BufferKind.ARENA, tensor_size(tensor))


def _is_vector(view: View) -> bool:
    """Whether a tensor's elements are contiguous along its only axis: it has them in any order of its axes."""
    strides = [stride for extent, stride in zip(view.shape, view.strides, strict=True) if extent > 1]
    return not strides or strides == [1]


def _noted(copy: Copy, node: Node) -> Copy:
    copy.steps = node.steps
    return copy


def _view(tensor: Tensor) -> View:
    if tensor.view is None:
        raise ValueError(f"a tensor of shape {tensor.shape} has no place yet")
    return tensor.view
