"""Recurrent layers."""

import numpy as np

from engine.compiler.graph import Node, Recurrent, Tensor
from engine.compiler.lowering.context import LoweringContext, lowers
from engine.kernels.recurrent import layer_weights

_STATES = {"nn.RNN": ("hx",), "nn.GRU": ("hx",), "nn.LSTM": ("hx", "cx")}


@lowers(*_STATES)
def recurrent(context: LoweringContext) -> Node | None:
    """Lower a recurrent layer without projection; its initial states are operands or 0."""
    shape = context.shape("input")
    if shape is None or not context.has_operand("input"):
        return None
    directions = 1 + bool(context.value("bidirectional"))
    stack = [
        layer_weights(context.step.layer.arguments, number, reverse)
        for number in range(context.value("num_layers"))
        for reverse in (False, True)[:directions]
    ]
    if any(weights.projection is not None for weights in stack):
        return None
    size = stack[0].state.shape[1]
    states = _states(context, (len(stack), *_batch(shape, bool(context.value("batch_first"))), size))
    if states is None:
        return None
    kinds = {"nn.LSTM": "lstm", "nn.GRU": "gru"}
    return Recurrent(
        [context.index],
        [context.tensor("input"), *states],
        cell=kinds.get(context.type) or context.value("nonlinearity"),
        stack=stack,
        directions=directions,
        is_batch_first=bool(context.value("batch_first")) and len(shape) == 3,
        results=context.step.layer.results,
    )


def _batch(shape: tuple[int, ...], is_batch_first: bool) -> tuple[int, ...]:
    """Return the axis of sequences in the states, which is not there where the input has none."""
    return (shape[0 if is_batch_first else 1],) if len(shape) == 3 else ()


def _states(context: LoweringContext, shape: tuple[int, ...]) -> list[Tensor] | None:
    """Return the initial states, none where all are 0; None where one is of a kind that kernels do not read."""
    names = _STATES[context.type]
    given = [name for name in names if context.spec(name) is not None]
    if not all(map(context.has_operand, given)):
        return None
    if not given:
        return []
    zeros = np.zeros(shape, np.float32)
    return [context.tensor(name) if name in given else context.make_constant(zeros) for name in names]
