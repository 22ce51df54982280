"""Nodes for what kernels do not compute: values of a run, constants, operators that numpy runs."""

from dataclasses import dataclass

from engine.compiler.graph.node import Node
from engine.dtypes import Array


@dataclass(eq=False, slots=True)
class Placeholder(Node):
    """A tensor whose value is set during a run: an input, or the output of a reference (numpy) layer.

    Attributes:
        slot: the operand's slot.
    """

    slot: int


@dataclass(eq=False, slots=True)
class Constant(Node):
    """A tensor that no input changes."""

    array: Array


@dataclass(eq=False, slots=True)
class Ramp(Node):
    """An arithmetic sequence whose length follows from the length of the inputs."""

    start: float
    step: float

    own = 0


@dataclass(eq=False, slots=True)
class Fallback(Node):
    """An operator that its layer's numpy forward runs.

    It reads slots; `inputs` are the tensors among them that kernels compute.

    Attributes:
        collects: whether it only puts them together, for the caller: then they have to be arrays of their own.
    """

    collects: bool = False
