"""Other looks at a tensor, among the nodes of an operator that takes several."""

from collections.abc import Callable, Sequence

from engine.compiler.graph import Reshape, Tensor
from engine.compiler.lowering.context import LoweringContext
from engine.compiler.memory.view import View


def look(
    context: LoweringContext, tensor: Tensor, shape: Sequence[int], seen: Callable[[View], View | None]
) -> Tensor:
    """Add another look at a tensor: `seen` makes its view of the tensor's, or None where that needs a copy."""

    def views(view: View) -> list[View] | None:
        result = seen(view)
        return None if result is None else [result]

    return context.add(Reshape([context.index], [tensor], look=views), tuple(shape))[0]
