"""Kernels for recurrent layers: the products with the inputs of all steps at once, then the loop over time."""

from dataclasses import dataclass

from engine.compiler.contraction.epilogue import NOTHING
from engine.compiler.graph import Recurrent
from engine.compiler.kernels.cells import GATES, interleaved
from engine.compiler.kernels.recurrent import Recurrence, RecurrentShape
from engine.compiler.memory.view import View
from engine.compiler.memory.weights import Packing
from engine.compiler.selection.call import Selector, row_by_row, selects, view_of
from engine.compiler.selection.linear import copied_rows, linear_kernel
from engine.dtypes import Array
from engine.kernels.recurrent import Weights

_TIME_FIRST = (1, 0, 2)
_SEQUENCE, _HIDDEN, _CELL = 0, 1, 2
"""Places of a recurrent layer's results."""


@dataclass(frozen=True, slots=True)
class Interleaved:
    """Packs weights of the inputs so that a linear layer gives the gates of a block of units side by side.

    Attributes:
        packing: how those of the linear layer are packed.
        gates: gates of a cell.
        lanes: units of a block.
    """

    packing: Packing
    gates: int
    lanes: int

    @property
    def layout(self) -> tuple[object, ...]:
        """The layout of packed weights."""
        return (*self.packing.layout, self.lanes)

    @property
    def packed_sizes(self) -> tuple[int, int]:
        """Elements of packed weights and bias."""
        return self.packing.packed_sizes

    def pack(self, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        """Pack weights (gates · hidden, features) and bias (gates · hidden)."""
        rows = interleaved(weight, self.gates, self.lanes)
        starts = None if bias is None else interleaved(bias[:, None], self.gates, self.lanes).reshape(-1)
        return self.packing.pack(rows.reshape(-1, weight.shape[1])[:, :, None, None], starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """One layer of a recurrent node.

    Attributes:
        node: the node.
        first: place in its stack of the layer's first direction.
        x: what it reads, in the order of the axes in which it lies.
        is_batch_first: whether that is (batch, length, features).
        states: initial states of its directions; none where they are 0.
        out: output of every step as (length, batch, outputs), if requested.
        hidden: final hidden states of its directions, if requested.
        cell: final cell states, if requested.
    """

    node: Recurrent
    first: int
    x: View
    is_batch_first: bool
    states: list[View]
    out: View | None
    hidden: View | None
    cell: View | None

    @property
    def stack(self) -> list[tuple[int, Weights]]:
        """Weights of each direction, with their places in the node's stack."""
        places = range(self.first, self.first + self.node.directions)
        return [(place, self.node.stack[place]) for place in places]

    @property
    def units(self) -> int:
        """Hidden units."""
        return int(self.node.stack[self.first].state.shape[1])


@selects(Recurrent)
def select_recurrent(selector: Selector, node: Recurrent) -> None:
    """Choose the kernels of all layers."""
    x, is_batch_first = _with_batch(view_of(node.inputs[0])), node.is_batch_first
    states = [row_by_row(selector, _with_batch(view_of(tensor))) for tensor in node.inputs[1:]]
    given = [_with_batch(view_of(tensor)) for tensor in node.outputs]
    results = dict(zip(node.results, given, strict=True))
    for first in range(0, len(node.stack), node.directions):
        out = None
        if first + node.directions < len(node.stack):
            width = node.directions * node.stack[first].state.shape[1]
            out = selector.temporary((*_in_time(x, is_batch_first).shape[:2], width))
        elif _SEQUENCE in results:
            out = _in_time(results[_SEQUENCE], node.is_batch_first)
        own = [state.sliced(0, first, node.directions) for state in states]
        hidden, cell = (
            results[place].sliced(0, first, node.directions) if place in results else None
            for place in (_HIDDEN, _CELL)
        )
        layer = _Layer(
            node=node,
            first=first,
            x=x,
            is_batch_first=is_batch_first,
            states=own,
            out=out,
            hidden=hidden,
            cell=cell,
        )
        _select_layer(selector, layer)
        if out is not None:
            x, is_batch_first = out, False


def _select_layer(selector: Selector, layer: _Layer) -> None:
    """Choose the kernels of a layer."""
    products = [_select_products(selector, layer, *own) for own in layer.stack]
    steps, batch, _ = _in_time(layer.x, layer.is_batch_first).shape
    strides, out, cell = _in_time(products[0], layer.is_batch_first).strides, layer.out, layer.node.cell
    shape = RecurrentShape(
        cell=cell, steps=steps, batch=batch, hidden=layer.units, directions=layer.node.directions
    )
    kernel = Recurrence.tuned(
        selector.target,
        selector.threads,
        shape=shape,
        products=(strides[0], strides[1]),
        out=None if out is None else (out.strides[0], out.strides[1], layer.units),
        has_state=bool(layer.states),
        gives=(layer.hidden is not None, layer.cell is not None),
    )
    arguments = []
    for product, (place, weights) in zip(products, layer.stack, strict=True):
        bias = None if cell != "gru" or weights.state_bias is None else weights.state_bias[2 * layer.units :]
        packed = selector.weights(layer.node, kernel, weights.state, bias, (place,))
        arguments += [product, *packed] if cell == "gru" else [product, packed[0]]
    wanted = [view for view in (out, layer.hidden, layer.cell) if view is not None]
    selector.call(kernel, *arguments, *layer.states, *wanted)


def _select_products(selector: Selector, layer: _Layer, place: int, weights: Weights) -> View:
    """Choose the kernel of the products with the inputs in one direction; returns where they lie."""
    gates, blocks = GATES[layer.node.cell], -(-layer.units // selector.lanes)
    products = selector.temporary((*layer.x.shape[:2], gates * blocks * selector.lanes))
    x, out = copied_rows(selector, layer.x), copied_rows(selector, products)
    kernel = linear_kernel(selector, x, out, NOTHING)
    packing = Interleaved(kernel.packing, gates, selector.lanes)
    packed = selector.weights(layer.node, packing, weights.input, _bias(layer.node, weights), (place,))
    selector.call(kernel, x, *packed, out)
    return products


def _bias(node: Recurrent, weights: Weights) -> Array | None:
    """Return the bias of the products with the inputs: both biases, except a GRU's new gate's state bias."""
    if weights.state_bias is None:
        return weights.input_bias
    bias = weights.state_bias.copy()
    if node.cell == "gru":
        bias[2 * len(bias) // 3 :] = 0
    return bias if weights.input_bias is None else bias + weights.input_bias


def _with_batch(view: View) -> View:
    """Return sequences or states with their axis of the batch, which those of one sequence may lack."""
    if len(view.shape) == 3:
        return view
    (length, width), (step, neighbour) = view.shape, view.strides
    return View(view.buffer, view.offset, (length, 1, width), (step, 0, neighbour))


def _in_time(view: View, is_batch_first: bool) -> View:
    """Return sequences as (length, batch, features)."""
    return view.permuted(_TIME_FIRST) if is_batch_first else view
