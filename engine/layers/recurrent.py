"""nn.RNN, nn.GRU and nn.LSTM."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.binding.registry import layer
from engine.binding.results import Results, Traits
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import recurrent as kernels
from engine.kernels.casting import narrow, widen
from engine.layers.checks import check_dtype, check_kind, check_rank, check_shape, check_size
from engine.spec import TensorSpec


class _Kind(NamedTuple):
    """A kind of recurrent layer.

    Attributes:
        gates: how many gates its weights are made of.
        cell: one step.
    """

    gates: int
    cell: kernels.Cell


_RNN = {"tanh": _Kind(1, kernels.tanh_cell), "relu": _Kind(1, kernels.relu_cell)}
_GRU = _Kind(3, kernels.gru_cell)
_LSTM = _Kind(4, kernels.lstm_cell)


class _Sizes(NamedTuple):
    """Sizes of a recurrent layer, from its weights."""

    features: int
    hidden: int
    outputs: int


def _sizes(gates: int, weights: dict[str, Any]) -> _Sizes:
    for name in ("weight_ih_l0", "weight_hh_l0"):
        if weights.get(name) is None:
            raise ArgumentError(name, "is missing", "a matrix")
        check_rank(name, weights[name], 2)
    first, recurrent = weights["weight_ih_l0"], weights["weight_hh_l0"]
    return _Sizes(first.shape[1], first.shape[0] // gates, recurrent.shape[1])


def _weight_shapes(
    gates: int, sizes: _Sizes, num_layers: int, directions: int
) -> Iterator[tuple[str, tuple[int, ...], bool]]:
    """Yield name and shape of every weight, and whether it must be there."""
    rows = gates * sizes.hidden
    for number in range(num_layers):
        features = sizes.outputs * directions if number else sizes.features
        for suffix in (f"l{number}", f"l{number}_reverse")[:directions]:
            yield f"weight_ih_{suffix}", (rows, features), True
            yield f"weight_hh_{suffix}", (rows, sizes.outputs), True
            yield f"bias_ih_{suffix}", (rows,), False
            yield f"bias_hh_{suffix}", (rows,), False
            yield f"weight_hr_{suffix}", (sizes.outputs, sizes.hidden), sizes.outputs != sizes.hidden


def _check_weights(
    input: TensorSpec, gates: int, num_layers: int, directions: int, weights: dict[str, Any]
) -> _Sizes:
    if num_layers < 1:
        raise ArgumentError("num_layers", f"is {num_layers}", "1 or more")
    sizes = _sizes(gates, weights)
    for name, shape, required in _weight_shapes(gates, sizes, num_layers, directions):
        spec = weights.get(name)
        if spec is None and required:
            raise ArgumentError(name, "is missing", f"shape {shape}")
        check_shape(name, spec, shape)
        check_dtype(name, spec, input)
    return sizes


def _infer(
    gates: int,
    input: TensorSpec,
    states: dict[str, TensorSpec | None],
    num_layers: int,
    batch_first: bool,
    bidirectional: bool,
    weights: dict[str, Any],
) -> tuple[TensorSpec, ...]:
    """Return the specs of the output and of each state, `states` being the initial ones by name."""
    check_kind("input", input, "f")
    check_rank("input", input, 2, 3)
    directions = 1 + bidirectional
    sizes = _check_weights(input, gates, num_layers, directions, weights)
    check_size("input", input, input.rank - 1, sizes.features)
    length_axis = 1 if batch_first and input.rank == 3 else 0
    if input.shape[length_axis] == 0:
        raise ArgumentError("input", f"shape {input.shape}", "a sequence of at least one step")
    batch = () if input.rank == 2 else (input.shape[1 - length_axis],)
    widths = (sizes.outputs, sizes.hidden)[: len(states)]
    finals = [input.with_shape((num_layers * directions, *batch, width)) for width in widths]
    for (name, state), final in zip(states.items(), finals, strict=True):
        check_shape(name, state, final.shape)
        check_dtype(name, state, input)
    return input.with_shape((*input.shape[:-1], directions * sizes.outputs)), *finals


def _traits(
    input: TensorSpec, num_layers: int, batch_first: bool, bidirectional: bool, **rest: Any
) -> Traits:
    """Return which results are the same, and in which orders the exporter writes them.

    After a single step of a single layer, the output is the hidden state. Where there is no batch, the exporter writes
    the output before, between or after the states.
    """
    states = tuple(range(1, 3 if "cx" in rest else 2))
    is_batched = input.rank == 3
    steps = input.shape[1 if batch_first and is_batched else 0]
    is_one = steps == 1 and num_layers == 1 and not bidirectional
    orders = [(*states[:place], 0, *states[place:]) for place in range(len(states) + 1)]
    return Traits((0, 0 if is_one else 1, 2)[: len(states) + 1], tuple(orders[:1] if is_batched else orders))


_STATE = Results(("output", "h_n"), _traits)
_STATES = Results(("output", "h_n", "c_n"), _traits)


def _count(outputs: tuple[TensorSpec, ...], input: TensorSpec, **arguments: Any) -> int:
    """Count one product with every weight matrix per step and item of the batch."""
    del outputs
    steps = input.size // input.shape[-1] if input.shape[-1] else 0
    return steps * sum(int(spec.size) for name, spec in arguments.items() if name.startswith("weight_"))


def _run(
    kind: _Kind,
    input: Array,
    initial: Sequence[Array | None],
    num_layers: int,
    batch_first: bool,
    bidirectional: bool,
    weights: dict[str, Array],
) -> tuple[Array, ...]:
    """Return the output and each final state."""
    directions = 1 + bidirectional
    stack = [
        kernels.layer_weights(weights, number, reverse)
        for number in range(num_layers)
        for reverse in (False, True)[:directions]
    ]
    batched = input if input.ndim == 3 else input[:, np.newaxis]
    x = widen(batched.swapaxes(0, 1) if batch_first and input.ndim == 3 else batched)
    states = [
        tuple(
            np.zeros((x.shape[1], width), x.dtype) if given is None else widen(np.atleast_2d(given[place]))
            for given, width in zip(
                initial, (each.state.shape[1], len(each.input) // kind.gates), strict=False
            )
        )
        for place, each in enumerate(stack)
    ]
    output, finals = kernels.run_layers(x, states, kind.cell, stack, directions)
    stacked = [np.stack(state) for state in zip(*finals, strict=True)]
    if input.ndim == 2:
        output, stacked = output[:, 0], [state[:, 0] for state in stacked]
    elif batch_first:
        output = output.swapaxes(0, 1)
    return tuple(narrow(result, input.dtype) for result in (output, *stacked))


def _infer_rnn(
    input: TensorSpec,
    hx: TensorSpec | None,
    num_layers: int,
    batch_first: bool,
    bidirectional: bool,
    nonlinearity: str,
    **weights: Any,
) -> tuple[TensorSpec, ...]:
    if nonlinearity not in _RNN:
        raise ArgumentError("nonlinearity", f"is {nonlinearity!r}", " or ".join(map(repr, _RNN)))
    return _infer(1, input, {"hx": hx}, num_layers, batch_first, bidirectional, weights)


@layer("nn.RNN", infer=_infer_rnn, multiply_adds=_count, results=_STATE)
def rnn(
    input: Array,
    hx: Array | None = None,
    *,
    num_layers: int = 1,
    batch_first: bool = False,
    bidirectional: bool = False,
    nonlinearity: str = "tanh",
    **weights: Array,
) -> tuple[Array, ...]:
    """Run an Elman network; gives the output of every step and the final state.

    Sequences are (length, batch, features), with `batch_first` (batch, length, features), or without a batch
    (length, features); states are (layers · directions, batch, hidden).
    """
    return _run(_RNN[nonlinearity], input, (hx,), num_layers, batch_first, bidirectional, weights)


def _infer_gru(
    input: TensorSpec,
    hx: TensorSpec | None,
    num_layers: int,
    batch_first: bool,
    bidirectional: bool,
    **weights: Any,
) -> tuple[TensorSpec, ...]:
    return _infer(3, input, {"hx": hx}, num_layers, batch_first, bidirectional, weights)


@layer("nn.GRU", infer=_infer_gru, multiply_adds=_count, results=_STATE)
def gru(
    input: Array,
    hx: Array | None = None,
    *,
    num_layers: int = 1,
    batch_first: bool = False,
    bidirectional: bool = False,
    **weights: Array,
) -> tuple[Array, ...]:
    """Run gated recurrent units; shapes as of nn.RNN."""
    return _run(_GRU, input, (hx,), num_layers, batch_first, bidirectional, weights)


def _infer_lstm(
    input: TensorSpec,
    hx: TensorSpec | None,
    cx: TensorSpec | None,
    num_layers: int,
    batch_first: bool,
    bidirectional: bool,
    **weights: Any,
) -> tuple[TensorSpec, ...]:
    return _infer(4, input, {"hx": hx, "cx": cx}, num_layers, batch_first, bidirectional, weights)


@layer("nn.LSTM", infer=_infer_lstm, multiply_adds=_count, results=_STATES)
def lstm(
    input: Array,
    hx: Array | None = None,
    cx: Array | None = None,
    *,
    num_layers: int = 1,
    batch_first: bool = False,
    bidirectional: bool = False,
    **weights: Array,
) -> tuple[Array, ...]:
    """Run long short-term memory; shapes as of nn.RNN, with a final cell state after the final hidden state."""
    return _run(_LSTM, input, (hx, cx), num_layers, batch_first, bidirectional, weights)
