"""Other looks at a tensor: as an operator's own node, or among the nodes of one that takes several."""

from collections.abc import Callable, Sequence

from engine.compiler.graph import Reshape, Tensor
from engine.compiler.lowering.context import LoweringContext
from engine.compiler.memory.view import View


def look_node(step: int, tensor: Tensor, seen: Callable[[View], View | None]) -> Reshape:
    """Return the node of another look: `seen` makes its view of the tensor's, or None where that needs a copy."""

    def views(view: View) -> list[View] | None:
        result = seen(view)
        return None if result is None else [result]

    return Reshape([step], [tensor], look=views)


def look(
    context: LoweringContext, tensor: Tensor, shape: Sequence[int], seen: Callable[[View], View | None]
) -> Tensor:
    """Add the node of another look at a tensor, and return what it shows, of a shape."""
    return context.add(look_node(context.index, tensor, seen), tuple(shape))[0]
