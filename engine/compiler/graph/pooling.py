"""Pooling and reductions."""

from dataclasses import dataclass

from engine.compiler.graph.node import Node


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
class Scan(Node):
    """A pass along an axis.

    Attributes:
        how: "cumsum" for running sums; "argmax" or "argmin" for the place of an extreme, where the axis stays with one
            element.
        axis: the axis.
    """

    how: str
    axis: int


@dataclass(eq=False, slots=True)
class Reduction(Node):
    """Sum, mean, maximum or minimum over axes, which stay with one element each."""

    how: str
    axes: tuple[int, ...]
