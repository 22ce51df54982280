"""Cells of recurrent layers: what makes a new state of a cell's gates, on vectors of hidden units.

Formulas: https://pytorch.org/docs/stable/generated/torch.nn.RNN.html, .GRU.html and .LSTM.html
"""

from collections.abc import Sequence

import numpy as np

from engine.compiler.emit.activations import sigmoid
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRValue
from engine.compiler.emit.vector_math import tanh
from engine.compiler.memory.alignment import aligned_zeros
from engine.dtypes import Array

GATES = {"tanh": 1, "relu": 1, "gru": 3, "lstm": 4}
"""Kind of cell -> how many gates its weights are made of."""


def interleaved(matrix: Array, gates: int, lanes: int) -> Array:
    """Return rows [gate][unit] as (blocks, gates, lanes, columns); units that fill the last block up are 0."""
    hidden, columns = len(matrix) // gates, matrix.shape[1]
    blocks = -(-hidden // lanes)
    padded = np.zeros((gates, blocks * lanes, columns), np.float32)
    padded[:, :hidden] = matrix.reshape(gates, hidden, columns)
    return padded.reshape(gates, blocks, lanes, columns).swapaxes(0, 1)


def grouped(blocks: Array, count: int) -> Array:
    """Return (blocks, gates, lanes, hidden) as [group of `count` blocks][hidden][block of the group][gate][lane]."""
    packed = aligned_zeros((blocks.size,))
    done = 0
    for first in range(0, len(blocks), count):
        group = blocks[first : first + count].transpose(3, 0, 1, 2)
        packed[done : done + group.size] = group.reshape(-1)
        done += group.size
    return packed


def lstm_cell(e: Emitter, gates: Sequence[IRValue], cell: IRValue) -> tuple[IRValue, IRValue]:
    """Return hidden and cell state; gates in the order input, forget, cell, output."""
    entering, forgetting, candidate, leaving = gates
    fresh = e.fmul(sigmoid(e, entering), tanh(e, candidate))
    cell = e.fma(sigmoid(e, forgetting), cell, fresh)
    return e.fmul(sigmoid(e, leaving), tanh(e, cell)), cell


def gru_cell(e: Emitter, gates: Sequence[IRValue], product: IRValue, hidden: IRValue) -> IRValue:
    """Return the hidden state; gates in the order reset, update, new.

    Args:
        e: the kernel.
        gates: sums over inputs and state; of the new gate over the state alone.
        product: the new gate's sum over the inputs.
        hidden: the state before.
    """
    reset, update, new = gates
    new = tanh(e, e.fma(sigmoid(e, reset), new, product))
    return e.fma(sigmoid(e, update), e.fsub(hidden, new), new)
