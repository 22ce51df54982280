"""LSTM, GRU and RNN of ONNX, which the exporter leaves untranslated when it imports a model.

Operands come in ONNX's order without those that are left out: X, W, R, then B, sequence_lens, initial_h and initial_c,
which are identified by rank. Sequences are (length, batch, features), outputs (length, directions, batch, hidden),
states (directions, batch, hidden). Formulas: https://onnx.ai/onnx/operators/onnx__LSTM.html, __GRU.html and __RNN.html
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.binding.arguments import Strings
from engine.binding.registry import layer
from engine.binding.results import Results
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import recurrent as kernels
from engine.kernels.activation import sigmoid
from engine.kernels.matrix import linear
from engine.layers.checks import check_dtype, check_kind, check_rank, check_shape
from engine.spec import TensorSpec

_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
_LSTM_GATES = (0, 2, 3, 1)  # input, output, forget, cell -> input, forget, cell, output
_GRU_GATES = (1, 0, 2)  # update, reset, new -> reset, update, new
_RNN_GATES = (0,)


def _states(operands: Sequence[Any]) -> tuple[list[Any], Any]:
    """Return the initial states and the bias, which may be None, among the operands behind X, W and R."""
    if len(operands) < 3 or not all(isinstance(operand, np.ndarray | TensorSpec) for operand in operands):
        raise ArgumentError("inputs", f"got {len(operands)} operands", "X, W and R, and what may follow")
    states, bias = [], None
    for place, operand in enumerate(operands[3:], 3):
        rank = len(operand.shape)
        if rank == 3:
            states.append(operand)
        elif rank == 2 and bias is None:
            bias = operand
        else:
            raise ArgumentError(f"inputs.{place}", f"got {rank} dimensions", "a bias or an initial state")
    return states, bias


def _infer(
    gates: int, count: int, operands: Sequence[Any], hidden_size: int, direction: str
) -> tuple[TensorSpec, ...]:
    states, bias = _states(operands)
    if direction not in _DIRECTIONS:
        raise ArgumentError("direction", f"got {direction!r}", " or ".join(_DIRECTIONS))
    x, directions = operands[0], _DIRECTIONS[direction]
    check_kind("inputs.0", x, "f")
    check_rank("inputs.0", x, 3)
    length, batch, features = x.shape
    if not length:
        raise ArgumentError("inputs.0", f"shape {x.shape}", "a sequence of at least one step")
    check_shape("inputs.1", operands[1], (directions, gates * hidden_size, features))
    check_shape("inputs.2", operands[2], (directions, gates * hidden_size, hidden_size))
    check_shape("inputs.3", bias, (directions, 2 * gates * hidden_size))
    if len(states) not in (0, count):
        raise ArgumentError("inputs", f"got {len(states)} initial states", f"none, or {count}")
    state = x.with_shape((directions, batch, hidden_size))
    for place, initial in enumerate(states):
        check_shape(f"inputs.{len(operands) - count + place}", initial, state.shape)
    for place, operand in enumerate(operands):
        check_dtype(f"inputs.{place}", operand, x)
    return (x.with_shape((length, directions, batch, hidden_size)), *(state,) * count)


def _in_order(weights: Array, order: Sequence[int]) -> Array:
    """Return the rows of a weight with the gates in the kernels' order."""
    return np.concatenate([np.split(weights, len(order))[gate] for gate in order])


def _weights(w: Array, r: Array, bias: Array | None, order: Sequence[int]) -> kernels.Weights:
    """Return the weights of one direction."""
    halves = (None, None) if bias is None else [_in_order(half, order) for half in np.split(bias, 2)]
    return kernels.Weights(_in_order(w, order), _in_order(r, order), halves[0], halves[1], None)


def _run(
    cell: kernels.Cell, order: Sequence[int], count: int, operands: Sequence[Array], direction: str
) -> tuple[Array, ...]:
    states, bias = _states(operands)
    x, w, r = operands[:3]
    backwards = (False, True) if direction == "bidirectional" else (direction == "reverse",)
    outputs, finals = [], []
    for place, is_backwards in enumerate(backwards):
        weights = _weights(w[place], r[place], None if bias is None else bias[place], order)
        zero = np.zeros((x.shape[1], r.shape[2]), x.dtype)
        initial = tuple(state[place] for state in states) or (zero,) * count
        line = x[::-1] if is_backwards else x
        output, final = kernels.run_layers(line, [initial], cell, [weights], 1)
        outputs.append(output[::-1] if is_backwards else output)
        finals.append(final[0])
    return (np.stack(outputs, 1), *(np.stack(state) for state in zip(*finals, strict=True)))


def _check_activations(given: Strings | None, expected: tuple[str, ...]) -> None:
    if given is not None and any(
        name.lower() != expected[place % len(expected)].lower() for place, name in enumerate(given)
    ):
        raise ArgumentError("activations", f"got {given}", f"{expected}")


def _check_plain(clip: float | None, layout: int) -> None:
    if clip is not None:
        raise ArgumentError("clip", f"got {clip}", "no limit")
    if layout != 0:
        raise ArgumentError("layout", f"got {layout}", "0")


def _rule(
    gates: int, count: int, expected: Callable[[Strings | None], tuple[str, ...]]
) -> Callable[..., tuple[TensorSpec, ...]]:
    """Make the shape rule of cells with so many gates and kinds of state, and the only activations that they have."""

    def infer(
        *operands: Any,
        hidden_size: int,
        direction: str,
        activations: Strings | None,
        clip: float | None,
        layout: int,
    ) -> tuple[TensorSpec, ...]:
        _check_activations(activations, expected(activations))
        _check_plain(clip, layout)
        return _infer(gates, count, operands, hidden_size, direction)

    return infer


def _is_relu(activations: Strings | None) -> bool:
    return activations is not None and activations[:1] in (("Relu",), ("relu",))


_infer_lstm = _rule(4, 2, lambda _: ("Sigmoid", "Tanh", "Tanh"))
_infer_gru = _rule(3, 1, lambda _: ("Sigmoid", "Tanh"))
_infer_rnn = _rule(1, 1, lambda given: ("Relu",) if _is_relu(given) else ("Tanh",))


@layer("LSTM", infer=_infer_lstm, results=Results(("Y", "Y_h", "Y_c")))
def onnx_lstm(
    *operands: Array,
    hidden_size: int,
    direction: str = "forward",
    activations: Strings | None = None,
    clip: float | None = None,
    layout: int = 0,
) -> tuple[Array, ...]:
    """Run long short-term memory: every step's output, the final hidden and the final cell state."""
    del hidden_size, activations, clip, layout
    return _run(kernels.lstm_cell, _LSTM_GATES, 2, operands, direction)


def _reset_first_cell(
    products: Array, state: kernels.CellState, weights: kernels.Weights
) -> kernels.CellState:
    """Blend the state with a new one, as gru_cell, but reset the state before its product for the new one."""
    (hidden,) = state
    size = hidden.shape[1]
    bias = np.zeros(3 * size, hidden.dtype) if weights.state_bias is None else weights.state_bias
    gates = products[:, : 2 * size] + linear(hidden, weights.state[: 2 * size], bias[: 2 * size])
    opened = np.empty_like(gates)
    sigmoid(gates, opened)
    inner = linear(opened[:, :size] * hidden, weights.state[2 * size :], bias[2 * size :])
    new = np.tanh(products[:, 2 * size :] + inner)
    return (new + opened[:, size:] * (hidden - new),)


@layer("GRU", infer=_infer_gru, results=Results(("Y", "Y_h")))
def onnx_gru(
    *operands: Array,
    hidden_size: int,
    direction: str = "forward",
    linear_before_reset: int = 0,
    activations: Strings | None = None,
    clip: float | None = None,
    layout: int = 0,
) -> tuple[Array, ...]:
    """Run gated recurrent units: every step's output and the final state."""
    del hidden_size, activations, clip, layout
    cell = kernels.gru_cell if linear_before_reset else _reset_first_cell
    return _run(cell, _GRU_GATES, 1, operands, direction)


@layer("RNN", infer=_infer_rnn, results=Results(("Y", "Y_h")))
def onnx_rnn(
    *operands: Array,
    hidden_size: int,
    direction: str = "forward",
    activations: Strings | None = None,
    clip: float | None = None,
    layout: int = 0,
) -> tuple[Array, ...]:
    """Run an Elman network: every step's output and the final state."""
    del hidden_size, clip, layout
    cell = kernels.relu_cell if _is_relu(activations) else kernels.tanh_cell
    return _run(cell, _RNN_GATES, 1, operands, direction)
