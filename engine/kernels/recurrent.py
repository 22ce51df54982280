"""Recurrent layers: Elman RNN, GRU and LSTM, several layers deep and in both directions.

Sequences are (length, batch, features), float32 or float64; a state is (batch, hidden). The products with the inputs
are done for all steps at once; only those with the state wait for the step before.

Formulas: https://pytorch.org/docs/stable/generated/torch.nn.RNN.html, .GRU.html and .LSTM.html
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from engine.dtypes import Array
from engine.kernels.activation import sigmoid
from engine.kernels.matrix import linear

CellState: TypeAlias = tuple[Array, ...]
"""Hidden state of one layer in one direction; of an LSTM the cell state as well."""


@dataclass(frozen=True)
class Weights:
    """Weights of one layer in one direction; biases and the projection may be None.

    Attributes:
        input: (gates · hidden, features).
        state: (gates · hidden, outputs).
        input_bias, state_bias: (gates · hidden).
        projection: (outputs, hidden); None where the output is the hidden state itself.
    """

    input: Array
    state: Array
    input_bias: Array | None
    state_bias: Array | None
    projection: Array | None


Cell: TypeAlias = Callable[[Array, CellState, Weights], CellState]
"""`cell(products, state, weights)`: one step from W x + b and the state before; the output is the new state's first."""


def layer_weights(attributes: Mapping[str, Array], layer: int, reverse: bool) -> Weights:
    """Collect a layer's weights, which go by PyTorch's names: `weight_ih_l0`, …, `weight_ih_l0_reverse`.

    Raises:
        KeyError: a weight is missing.
    """
    suffix = f"l{layer}_reverse" if reverse else f"l{layer}"
    return Weights(
        attributes[f"weight_ih_{suffix}"],
        attributes[f"weight_hh_{suffix}"],
        attributes.get(f"bias_ih_{suffix}"),
        attributes.get(f"bias_hh_{suffix}"),
        attributes.get(f"weight_hr_{suffix}"),
    )


def run_layers(
    x: Array, states: list[CellState], cell: Cell, weights: list[Weights], directions: int
) -> tuple[Array, list[CellState]]:
    """Run layer after layer over a sequence.

    Args:
        x: (length, batch, features).
        states: initial state of each layer and direction: forward and backward of the first layer, …
        cell: one step.
        weights: in the same order.
        directions: 1, or 2 where each layer runs backwards as well and the outputs are joined.

    Returns:
        The last layer's outputs, (length, batch, directions · outputs), and all final states.
    """
    final: list[CellState] = []
    for first in range(0, len(weights), directions):
        outputs = []
        for place in range(first, first + directions):
            output, state = _run(x, states[place], cell, weights[place], backwards=place > first)
            outputs.append(output)
            final.append(state)
        x = outputs[0] if directions == 1 else np.concatenate(outputs, axis=2)
    return x, final


def _run(
    x: Array, state: CellState, cell: Cell, weights: Weights, *, backwards: bool
) -> tuple[Array, CellState]:
    products = linear(x, weights.input, weights.input_bias)
    output = np.empty((*x.shape[:2], state[0].shape[1]), x.dtype)
    steps = range(len(x))
    for step in reversed(steps) if backwards else steps:
        state = cell(products[step], state, weights)
        output[step] = state[0]
    return output, state


def _recur(products: Array, hidden: Array, weights: Weights) -> Array:
    """Compute W x + b + U h + c, W x + b being given. A new array."""
    total = linear(hidden, weights.state, weights.state_bias)
    total += products
    return total


def tanh_cell(products: Array, state: CellState, weights: Weights) -> CellState:
    """Compute tanh(W x + b + U h + c)."""
    total = _recur(products, state[0], weights)
    return (np.tanh(total, out=total),)


def relu_cell(products: Array, state: CellState, weights: Weights) -> CellState:
    """Compute max(W x + b + U h + c, 0)."""
    total = _recur(products, state[0], weights)
    return (np.maximum(total, 0, out=total),)


def gru_cell(products: Array, state: CellState, weights: Weights) -> CellState:
    """Blend the state with a new one; gates in the order reset, update, new."""
    (hidden,) = state
    size = hidden.shape[1]
    inner = linear(hidden, weights.state, weights.state_bias)
    gates = _sigmoid(products[:, : 2 * size] + inner[:, : 2 * size])
    new = gates[:, :size] * inner[:, 2 * size :]
    new += products[:, 2 * size :]
    np.tanh(new, out=new)
    return (new + gates[:, size:] * (hidden - new),)


def lstm_cell(products: Array, state: CellState, weights: Weights) -> CellState:
    """Update cell and hidden state; gates in the order input, forget, cell, output."""
    hidden, cell = state
    gates = _recur(products, hidden, weights)
    size = cell.shape[1]
    entering_forgetting = _sigmoid(gates[:, : 2 * size])
    candidate = np.tanh(gates[:, 2 * size : 3 * size])
    candidate *= entering_forgetting[:, :size]
    cell = entering_forgetting[:, size:] * cell
    cell += candidate
    hidden = _sigmoid(gates[:, 3 * size :])
    hidden *= np.tanh(cell)
    return (hidden if weights.projection is None else linear(hidden, weights.projection, None)), cell


def _sigmoid(x: Array) -> Array:
    out = np.empty_like(x)
    sigmoid(x, out)
    return out
