"""Pooling and reductions."""

from engine.compiler.graph.node import Node
from engine.light_dataclass import dataclass


@dataclass(eq=False, slots=True)
class Pool(Node):
    """Maximum or mean over windows of (batch, channels, height, width), or of (batch, channels, length).

    Attributes:
        how: "max" or "mean".
        window: rows and columns.
        stride: rows and columns.
        padding: above and left; what lies outside is left out.
        dilation: rows and columns.
        counts_padding: for "mean", whether zeros of the padding are counted.
        divisor: for "mean", a fixed divisor in place of the count.
    """

    how: str
    window: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int] = (1, 1)
    counts_padding: bool = True
    divisor: int | None = None

    writes_anywhere = True


@dataclass(eq=False, slots=True)
class AdaptivePool(Node):
    """Maximum or mean over as many even windows as the output has pixels."""

    how: str

    writes_anywhere = True


@dataclass(eq=False, slots=True)
class Reduction(Node):
    """Sum, mean, maximum or minimum over axes, which stay with one element each."""

    how: str
    axes: tuple[int, ...]
