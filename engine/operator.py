"""Nodes and edges of the runtime graph."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine import pnnx
from engine.binding import BoundLayer

INPUT = "pnnx.Input"
"""Type of the operators whose outputs are the graph's inputs."""
OUTPUT = "pnnx.Output"
"""Type of the operators whose inputs are the graph's outputs."""


@dataclass(eq=False, slots=True)
class RuntimeOperand:
    """An edge: a value with one producer and any number of consumers.

    Attributes:
        name: operand name in the file.
        type: shape and dtype that the file declares, None where it declares nothing.
        producer: the operator that gives the value.
        consumers: the operators that take it, in file order; one that takes it twice stands here twice.
    """

    name: str
    type: pnnx.TensorType | None
    producer: "RuntimeOperator"
    consumers: list["RuntimeOperator"] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"RuntimeOperand({self.name!r})"


@dataclass(eq=False, slots=True)
class RuntimeOperator:
    """A node: one operator of the file, its links, and after `build()` its layer.

    Attributes:
        source: the operator as the file gives it.
        index: place in the file.
        inputs: operands that it takes, in order.
        outputs: operands that it gives, in order.
        layer: the bound layer; None until the graph is built.
    """

    source: pnnx.Operator
    index: int
    inputs: list[RuntimeOperand] = field(default_factory=list)
    outputs: list[RuntimeOperand] = field(default_factory=list)
    layer: BoundLayer | None = None

    @property
    def name(self) -> str:
        """Operator name in the file."""
        return self.source.name

    @property
    def type(self) -> str:
        """PNNX type string."""
        return self.source.type

    @property
    def params(self) -> Mapping[str, pnnx.ParameterValue]:
        """Parameters (RuntimeParameter in the course's words) by name."""
        return self.source.params

    @property
    def attrs(self) -> Mapping[str, pnnx.Attribute]:
        """Attributes (RuntimeAttribute in the course's words) by name."""
        return self.source.attrs

    def __repr__(self) -> str:
        return f"RuntimeOperator({self.type!r}, {self.name!r})"
