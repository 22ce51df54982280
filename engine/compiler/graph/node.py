"""A node of the graph, and the tensors that it reads and gives."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from engine.compiler.memory.view import View
from engine.quantization.tensor_scale import TensorScale

FLOAT = np.dtype(np.float32)
EXACT = 1 << 24
"""Integers up to this are float32 numbers, and so are their negatives."""
Bounds: TypeAlias = tuple[int, int]
"""Least and largest integer of a tensor."""


@dataclass(eq=False, slots=True)
class Tensor:
    """A tensor of float32, or of shorter numbers of which several neighbouring channels share an element.

    Truth values and integers are float32 as well, as far as float32 represents them exactly: 1 and 0, and integers of
    at most `EXACT`. An integer beyond that, which only an input can have, is rounded: it still compares with smaller
    ones as it should.

    Attributes:
        shape: extents; of shorter numbers, elements of four or two channels each along axis 1.
        node: the node that computes it.
        users: nodes that read it, one entry per read.
        is_kept: whether something else reads it: a reference (numpy) layer, or the caller.
        view: its memory, after memory layout.
        scale: scale of 8-bit integers, four to an element; None for others.
        channels: channels of a tensor of shorter numbers; of the last element some may be missing.
        is_bf16: whether it is of bfloat16, two to an element.
        dtype: dtype of its operand.
        bounds: least and largest integer that it may hold, both exact; None where that is not known, or it is no tensor
            of integers or truth values.
    """

    shape: tuple[int, ...]
    node: "Node"
    users: list["Node"] = field(default_factory=list)
    is_kept: bool = False
    view: View | None = None
    scale: TensorScale | None = None
    channels: int = 0
    is_bf16: bool = False
    dtype: np.dtype[Any] = FLOAT
    bounds: Bounds | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def place(self) -> View:
        """Where it lies.

        Raises:
            ValueError: that is not decided yet.
        """
        if self.view is None:
            raise ValueError(f"a tensor of shape {self.shape} has no place")
        return self.view


@dataclass(eq=False, slots=True)
class Node:
    """Something that is computed.

    Attributes:
        steps: places, in the numpy plan, of the operators that it does; the first is the one that it is timed as.
        inputs: the tensors that it reads.
        outputs: the tensors that it computes.
    """

    steps: list[int]
    inputs: list[Tensor]
    outputs: list[Tensor] = field(default_factory=list, init=False)

    own = 1
    """How many of the inputs are the node's own; the epilogue reads the others."""
    writes_anywhere = False
    """Whether its output may lie in a part of another tensor."""

    @property
    def output(self) -> Tensor:
        """The only output."""
        return self.outputs[0]


def connect(node: Node, *shapes: tuple[int, ...]) -> list[Tensor]:
    """Create a node's outputs and register it as a reader of its inputs; the list may be another node's inputs."""
    node.outputs = [Tensor(shape, node) for shape in shapes]
    for tensor in node.inputs:
        tensor.users.append(node)
    return list(node.outputs)
