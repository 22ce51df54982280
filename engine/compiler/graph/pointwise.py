"""Nodes that end in pointwise work on their results."""

from dataclasses import dataclass, field

from engine.compiler.emit.pointwise import Leaf, PointwiseExpression
from engine.compiler.graph.node import Node


@dataclass(eq=False, slots=True)
class EpilogueNode(Node):
    """A node that may go on to do pointwise work on its results.

    Attributes:
        epilogue: that work, as an expression over the result (`Leaf(0)`) and the inputs after the node's own.
    """

    epilogue: PointwiseExpression = field(default=Leaf(0), init=False)

    writes_anywhere = True

    @property
    def channel_axis(self) -> int:
        """Axis of the output that lies innermost."""
        return 1


@dataclass(eq=False, slots=True)
class Pointwise(EpilogueNode):
    """An expression over elements of its inputs, broadcast as numpy does: an epilogue of nothing, from `Leaf(1)` on."""

    own = 0
    writes_anywhere = True
