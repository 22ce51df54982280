"""Layers of an RNN, GRU or LSTM."""

from dataclasses import dataclass

from engine.compiler.graph.node import Node
from engine.kernels.recurrent import Weights


@dataclass(eq=False, slots=True)
class Recurrent(Node):
    """Layers of an RNN, GRU or LSTM; the inputs are the sequences and the initial states, if there are any.

    Attributes:
        cell: "tanh", "relu", "gru" or "lstm".
        stack: weights of each layer and direction: forwards and backwards of the first layer, …
        directions: 1, or 2 where each layer runs backwards as well.
        is_batch_first: whether sequences are (batch, length, features).
        results: which of the sequence of outputs, the final hidden and the final cell states the outputs are.
    """

    cell: str
    stack: list[Weights]
    directions: int
    is_batch_first: bool
    results: tuple[int, ...]

    is_computed = False
