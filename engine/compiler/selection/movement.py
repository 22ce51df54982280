"""Kernels that move elements: copies, and what pointwise nodes compute."""

from engine.compiler.kernels.elementwise import elementwise
from engine.compiler.kernels.padding import Pad
from engine.compiler.nodes import Pointwise
from engine.compiler.pointwise import Expression, Leaf, substitute
from engine.compiler.selection.call import Selector, selects, view_of
from engine.compiler.storage import Copy
from engine.compiler.view import View


@selects(Copy)
def select_copy(selector: Selector, node: Copy) -> None:
    """Copy a view to another of the same shape."""
    move(selector, Leaf(0), [node.source], node.target)


@selects(Pointwise)
def select_pointwise(selector: Selector, node: Pointwise) -> None:
    """Compute an expression, element by element."""
    output = view_of(node.output)
    views = [view_of(tensor).expanded(output.shape) for tensor in node.inputs]
    # a pointwise node has no result of its own: its inputs are Leaf(1) and on
    leaves: list[Expression] = [Leaf(0), *(Leaf(place) for place in range(len(views)))]
    move(selector, substitute(node.epilogue, leaves), views, output)


def move(selector: Selector, expression: Expression, views: list[View], output: View) -> None:
    """Compute an expression over views of one shape into another."""
    kernel = elementwise(output.shape, [view.strides for view in views], output.strides, expression)
    selector.call(kernel, *views, output)


def pad(selector: Selector, x: View, padded: View, before: tuple[int, int]) -> None:
    """Copy an image into a larger one whose channels lie side by side, with zeros around it.

    Args:
        selector: what adds the call.
        x: the image.
        padded: where it goes.
        before: rows above and columns on the left.
    """
    images, channels, rows, columns = x.shape
    kernel = Pad(
        (images, channels, rows, columns),
        (x.strides[0], x.strides[1], x.strides[2], x.strides[3]),
        (padded.shape[2], padded.shape[3]),
        before,
        (padded.strides[0], padded.strides[2], padded.strides[3]),
    )
    selector.call(kernel, x, padded)
