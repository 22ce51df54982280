"""Softmax and normalisations."""

from dataclasses import dataclass

from engine.compiler.graph.node import Node
from engine.dtypes import Array


@dataclass(eq=False, slots=True)
class Softmax(Node):
    """Softmax along an axis, or its logarithm; with `skip_masked` 0 where all of it is -inf, instead of NaN."""

    axis: int
    is_log: bool = False
    skip_masked: bool = False


@dataclass(eq=False, slots=True)
class LayerNorm(Node):
    """Normalisation over the last axes, scaled and shifted.

    Attributes:
        axes: how many axes.
        weight: scale, or None.
        bias: shift, or None.
        eps: added to the variance.
        is_centred: whether the mean is taken off first; RMS normalisation does not.
    """

    axes: int
    weight: Array | None
    bias: Array | None
    eps: float
    is_centred: bool = True


@dataclass(eq=False, slots=True)
class GroupNorm(Node):
    """Normalisation over groups of channels of an image or a sequence, scaled and shifted per channel."""

    groups: int
    weight: Array | None
    bias: Array | None
    eps: float
