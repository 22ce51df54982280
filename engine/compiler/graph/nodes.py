"""The compiler's graph: what is computed, before it is decided where results lie and which kernel computes them.

A node does one or more operators of the model. Its first inputs are its own; those after them are read by its epilogue.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from engine.compiler.emit.pointwise import ZERO, Expression, Leaf, Number
from engine.compiler.memory.view import View
from engine.dtypes import Array
from engine.kernels.recurrent import Weights


@dataclass(eq=False, slots=True)
class Tensor:
    """A float32 tensor.

    Attributes:
        shape: extents.
        node: what computes it.
        users: nodes that read it, one entry per read.
        is_kept: whether something else reads it: a numpy layer, or the caller.
        view: where it lies, once that is decided.
    """

    shape: tuple[int, ...]
    node: "Node"
    users: list["Node"] = field(default_factory=list)
    is_kept: bool = False
    view: View | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def place(self) -> View:
        """Where it lies.

        Raises:
            ValueError: that is not decided yet.
        """
        if self.view is None:
            raise ValueError(f"a tensor of shape {self.shape} has no place")
        return self.view


@dataclass(eq=False, slots=True)
class Node:
    """Something that is computed.

    Attributes:
        steps: places, in the numpy plan, of the operators that it does; the first is the one that it is timed as.
        inputs: what it reads.
        outputs: what it gives.
    """

    steps: list[int]
    inputs: list[Tensor]
    outputs: list[Tensor] = field(default_factory=list, init=False)

    own = 1
    """How many of the inputs are the node's own; the epilogue reads the others."""
    takes_epilogue = False
    """Whether later pointwise work may be moved into the node."""
    writes_anywhere = False
    """Whether its output may lie in a part of another tensor."""

    @property
    def output(self) -> Tensor:
        """The only output."""
        return self.outputs[0]


@dataclass(eq=False, slots=True)
class Value(Node):
    """A tensor that a run comes by: an input, or what a numpy layer gave.

    Attributes:
        slot: the operand's slot.
    """

    slot: int


@dataclass(eq=False, slots=True)
class Constant(Node):
    """A tensor that no input changes."""

    array: Array


@dataclass(eq=False, slots=True)
class Fallback(Node):
    """An operator that its layer's numpy forward runs.

    It reads slots; `inputs` are the tensors among them that kernels compute.

    Attributes:
        collects: whether it only puts them together, for the caller: then they have to be arrays of their own.
    """

    collects: bool = False


@dataclass(eq=False, slots=True)
class Epilogued(Node):
    """A node that may go on to do pointwise work on its results.

    Attributes:
        epilogue: that work, as an expression over the result (`Leaf(0)`) and the inputs after the node's own.
    """

    epilogue: Expression = field(default=Leaf(0), init=False)

    takes_epilogue = True
    writes_anywhere = True

    @property
    def channel_axis(self) -> int:
        """Axis of the output that lies innermost."""
        return 1


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
    value: Number = ZERO

    writes_anywhere = True

    @property
    def is_spatial(self) -> bool:
        """Whether batch and channels of an image, or of an image of one row, stay as they are."""
        return len(self.margins) in (3, 4) and not any(map(any, self.margins[:2]))


@dataclass(eq=False, slots=True)
class Convolution(Epilogued):
    """A convolution of (batch, channels, height, width), or of (batch, channels, length) as an image of one row.

    Attributes:
        weight: (filters, channels / groups, rows, columns).
        bias: (filters,), or None.
        stride: rows and columns.
        padding: zeros above, left, below, right.
        dilation: rows and columns.
        groups: groups.
        is_computed: whether weight or bias were computed at build, rather than read from the model's file.
    """

    weight: Array
    bias: Array | None
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]
    dilation: tuple[int, int]
    groups: int
    is_computed: bool = False


@dataclass(eq=False, slots=True)
class TransposedConvolution(Epilogued):
    """A transposed convolution of (batch, channels, height, width), or of (batch, channels, length).

    Attributes:
        weight: (channels, filters / groups, rows, columns).
        bias: (filters,), or None.
        stride: rows and columns.
        padding: rows and columns that are cut off on every side.
        output_padding: rows below and columns to the right that are added.
        dilation: rows and columns.
        groups: groups.
        is_computed: whether weight or bias were computed at build, rather than read from the model's file.
    """

    weight: Array
    bias: Array | None
    stride: tuple[int, int]
    padding: tuple[int, int]
    output_padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    is_computed: bool = False


@dataclass(eq=False, slots=True)
class Linear(Epilogued):
    """x W^T + b over the last axis.

    Attributes:
        weight: (out, in).
        bias: (out,), or None.
        is_computed: whether weight or bias were computed at build, rather than read from the model's file.
    """

    weight: Array
    bias: Array | None
    is_computed: bool = False

    @property
    def channel_axis(self) -> int:
        """The last axis."""
        return self.output.rank - 1


@dataclass(eq=False, slots=True)
class MatrixProduct(Epilogued):
    """A (batched) matrix product of two tensors that runs differ in."""

    own = 2

    @property
    def channel_axis(self) -> int:
        """The last axis."""
        return self.output.rank - 1


@dataclass(eq=False, slots=True)
class Pointwise(Epilogued):
    """An expression over elements of its inputs, broadcast as numpy does: an epilogue of nothing, from `Leaf(1)` on."""

    own = 0
    writes_anywhere = True


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


@dataclass(eq=False, slots=True)
class Recurrent(Node):
    """Layers of an RNN, GRU or LSTM; the inputs are the sequences and the initial states, if there are any.

    Attributes:
        cell: "tanh", "relu", "gru" or "lstm".
        stack: weights of each layer and direction: forwards and backwards of the first layer, …
        directions: 1, or 2 where each layer runs backwards as well.
        is_batch_first: whether sequences are (batch, length, features).
        results: which of the sequence of outputs, the final hidden and the final cell states the outputs are.
    """

    cell: str
    stack: list[Weights]
    directions: int
    is_batch_first: bool
    results: tuple[int, ...]

    is_computed = False


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
class Concatenation(Node):
    """Tensors side by side along an axis."""

    axis: int

    writes_anywhere = True


def connect(node: Node, *shapes: tuple[int, ...]) -> list[Tensor]:
    """Make a node's outputs and tell its inputs of it; the list returned may become the inputs of another node."""
    node.outputs = [Tensor(shape, node) for shape in shapes]
    for tensor in node.inputs:
        tensor.users.append(node)
    return list(node.outputs)
