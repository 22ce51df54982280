"""Convolutions and products of matrices."""

from dataclasses import dataclass

from engine.compiler.emit.pointwise import PointwiseExpression
from engine.compiler.graph.node import Node
from engine.compiler.graph.pointwise import EpilogueNode
from engine.dtypes import Array


@dataclass(eq=False, slots=True, kw_only=True)
class WindowedNode(EpilogueNode):
    """Base of convolutions and transposed convolutions.

    Attributes:
        weight: weight of all filters.
        bias: (filters,), or None.
        stride: rows and columns.
        dilation: rows and columns.
        groups: groups.
        is_computed: whether weight or bias were computed at build, rather than read from the model's file.
    """

    weight: Array
    bias: Array | None
    stride: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    is_computed: bool = False


@dataclass(eq=False, slots=True, kw_only=True)
class Convolution(WindowedNode):
    """A convolution of (batch, channels, height, width), or of (batch, channels, length) as an image of one row.

    Its weight is (filters, channels / groups, rows, columns).

    Attributes:
        padding: zeros above, left, below, right.
    """

    padding: tuple[int, int, int, int]


@dataclass(eq=False, slots=True, kw_only=True)
class TransposedConvolution(WindowedNode):
    """A transposed convolution of (batch, channels, height, width), or of (batch, channels, length).

    Its weight is (channels, filters / groups, rows, columns).

    Attributes:
        padding: rows and columns that are cut off on every side.
        output_padding: rows below and columns to the right that are added.
    """

    padding: tuple[int, int]
    output_padding: tuple[int, int]


@dataclass(eq=False, slots=True)
class Linear(EpilogueNode):
    """x W^T + b over the last axis.

    Attributes:
        weight: (out, in).
        bias: (out,), or None.
        is_computed: whether weight or bias were computed at build, rather than read from the model's file.
        is_int4: whether the weights are numbers of `engine.quantization.int4`.
    """

    weight: Array
    bias: Array | None
    is_computed: bool = False
    is_int4: bool = False

    @property
    def channel_axis(self) -> int:
        """The last axis."""
        return self.output.rank - 1


@dataclass(eq=False, slots=True)
class MatrixProduct(EpilogueNode):
    """A (batched) matrix product of two tensors that runs differ in."""

    own = 2

    @property
    def channel_axis(self) -> int:
        """The last axis."""
        return self.output.rank - 1


@dataclass(eq=False, slots=True, kw_only=True)
class Attention(Node):
    """softmax(f(q k)) v of long sequences, whose scores are computed block by block.

    Its inputs are q (…, rows, depth), k (…, depth, columns), v (…, columns, features), and what f reads.

    Attributes:
        epilogue: f, over a score (`Leaf(0)`) and the other inputs (`Leaf(1)` …).
        skip_masked: weights are 0 where all scores are -inf, instead of NaN.
    """

    epilogue: PointwiseExpression
    skip_masked: bool = False
