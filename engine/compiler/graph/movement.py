"""Nodes that move elements: margins, resizing, views, other orders, concatenation."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.compiler.emit.pointwise import ZERO, Literal
from engine.compiler.graph.node import Node
from engine.compiler.memory.view import View


@dataclass(eq=False, slots=True)
class Pad(Node):
    """Margins around a tensor.

    Attributes:
        margins: places before and after, for each axis; negative ones crop.
        mode: "constant", "reflect", "replicate" or "circular".
        value: what a constant margin holds.
    """

    margins: tuple[tuple[int, int], ...]
    mode: str = "constant"
    value: Literal = ZERO

    writes_anywhere = True

    @property
    def is_spatial(self) -> bool:
        """Whether batch and channels of an image, or of an image of one row, stay as they are."""
        return len(self.margins) in (3, 4) and not any(map(any, self.margins[:2]))


@dataclass(eq=False, slots=True)
class Upsample(Node):
    """Resizing of (batch, channels, height, width), or of (batch, channels, length).

    Attributes:
        how: "nearest", "nearest-exact", "bilinear" or "bicubic".
        scales: scale factors that the operator names, None where it gives a size.
        align_corners: whether corner pixels stay corner pixels.
    """

    how: str
    scales: tuple[float, float] | None
    align_corners: bool

    writes_anywhere = True


@dataclass(eq=False, slots=True)
class Reshape(Node):
    """Another look at the same elements, or several.

    Attributes:
        look: view of the input -> views of the outputs, or None where the elements have to be copied first.
    """

    look: Callable[[View], list[View] | None]


@dataclass(eq=False, slots=True)
class Rearrangement(Node):
    """The input's elements in another order: its axes are taken apart, permuted, and put together as the output's.

    Attributes:
        parts: extents of the input's axes once they are taken apart.
        axes: which of them come first, second, …
    """

    parts: tuple[int, ...]
    axes: tuple[int, ...]

    writes_anywhere = True


@dataclass(eq=False, slots=True)
class Gather(Node):
    """Elements of the first input at the indices in the others, which are in range.

    Attributes:
        kept: for each axis of the first input, the axis of the output that goes along it; None for an axis indexed by
            the next of the other inputs.
        start: first axis of the output of those that the indices are spread over.
        spread: number of these axes.
    """

    kept: tuple[int | None, ...]
    start: int
    spread: int

    writes_anywhere = True


@dataclass(eq=False, slots=True)
class Concatenation(Node):
    """Tensors side by side along an axis."""

    axis: int

    writes_anywhere = True
