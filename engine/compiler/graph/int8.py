"""Nodes of 8-bit integers. Their tensors hold four neighbouring channels to an element; see `Tensor.scale`."""

from dataclasses import dataclass
from typing import ClassVar

from engine.compiler.graph.node import Node
from engine.compiler.graph.pointwise import EpilogueNode
from engine.dtypes import Array
from engine.quantization.tensor_scale import TensorScale
from engine.quantization.weights import QuantizedWeights


@dataclass(eq=False, slots=True)
class Quantize(Node):
    """Quantization of a float32 tensor, whose channels are axis 1."""

    scale: TensorScale

    writes_anywhere = True


@dataclass(eq=False, slots=True)
class Dequantize(Node):
    """Dequantization of a tensor of integers."""

    scale: TensorScale

    writes_anywhere = True


@dataclass(eq=False, slots=True)
class Requantize(Node):
    """Requantization to another scale.

    Attributes:
        x_scale: scale of the input.
        scale: scale of the output.
    """

    x_scale: TensorScale
    scale: TensorScale

    writes_anywhere = True


@dataclass(eq=False, slots=True, kw_only=True)
class Int8Convolution(EpilogueNode):
    """A convolution of integers, or a linear layer where input and output have two axes.

    The results are float32 before the epilogue, and after it, unless the output has a scale.

    Attributes:
        weights: (filters, channels / groups, rows, columns).
        bias: (filters,), or None.
        x_scale: scale of the input.
        stride: rows and columns.
        padding: above, left, below and right; the input is 0 there.
        dilation: rows and columns.
        groups: groups.
    """

    weights: QuantizedWeights
    bias: Array | None
    x_scale: TensorScale
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    is_computed: ClassVar[bool] = False
    """Scales are known only of weights in the model's file."""

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel has a filter of its own, and only one."""
        filters, channels = self.weights.integers.shape[:2]
        return bool(self.groups == filters > 1 and channels == 1)


@dataclass(eq=False, slots=True)
class RowQuantize(Node):
    """Quantization of the rows of the last axis, with one scale per row, and these scales.

    Gives words of four elements along the last axis, 128 standing for 0, and float32 scales (…, 1).
    """


@dataclass(eq=False, slots=True, kw_only=True)
class Int8Linear(EpilogueNode):
    """Products of integers over the last axis, 128 of the input standing for 0: sums times the filters' scales.

    Attributes:
        weights: (out, in, 1, 1).
    """

    weights: QuantizedWeights
    is_computed: ClassVar[bool] = False

    @property
    def channel_axis(self) -> int:
        """The last axis."""
        return self.output.rank - 1
