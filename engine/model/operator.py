"""Nodes and edges of the runtime graph."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from weakref import ref

from engine import pnnx
from engine.binding.bound_layer import BoundLayer
from engine.errors import StateError

INPUT = "pnnx.Input"
"""Type of the operators whose outputs are the graph's inputs."""
OUTPUT = "pnnx.Output"
"""Type of the operators whose inputs are the graph's outputs."""


class RuntimeOperand:
    """An edge: a value with one producer and any number of consumers.

    Operators hold their operands, and operands know their operators only weakly: so an unused graph and its weights are
    freed by reference counting, without a garbage collection.

    Attributes:
        name: operand name in the file.
        type: shape and dtype that the file declares, None where it declares nothing.
    """

    __slots__ = ("_consumers", "_producer", "name", "type")

    def __init__(self, name: str, type: pnnx.TensorType | None, producer: "RuntimeOperator") -> None:
        self.name = name
        self.type = type
        self._producer = ref(producer)
        self._consumers: list[ref[RuntimeOperator]] = []

    @property
    def producer(self) -> "RuntimeOperator":
        """The operator that gives the value.

        Raises:
            StateError: the graph is gone.
        """
        return self._follow(self._producer)

    @property
    def consumers(self) -> "list[RuntimeOperator]":
        """The operators that take the value, in file order; one that takes it twice stands here twice.

        Raises:
            StateError: the graph is gone.
        """
        return [self._follow(consumer) for consumer in self._consumers]

    def add_consumer(self, operator: "RuntimeOperator") -> None:
        """Take note of one more operator that takes the value."""
        self._consumers.append(ref(operator))

    def _follow(self, operator: "ref[RuntimeOperator]") -> "RuntimeOperator":
        found = operator()
        if found is None:
            raise StateError(
                f"operand {self.name!r}: its graph is gone; keep the graph as long as its operands"
            )
        return found

    def __repr__(self) -> str:
        return f"RuntimeOperand({self.name!r})"


@dataclass(eq=False, slots=True, weakref_slot=True)
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
