"""Kernel calls: which kernel runs on which views, and what a selection rule works with."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np

from engine.compiler.contraction.epilogue import Broadcast, Epilogue, EpilogueOperand
from engine.compiler.emit.jit import Kernel
from engine.compiler.emit.target import Target
from engine.compiler.graph import (
    Convolution,
    EpilogueNode,
    Int8Convolution,
    Linear,
    Node,
    Recurrent,
    Tensor,
    TransposedConvolution,
)
from engine.compiler.memory.alignment import aligned
from engine.compiler.memory.region import check_arguments
from engine.compiler.memory.view import Buffer, BufferKind, View, whole
from engine.compiler.memory.weights import PackedStore, PackedWeights, Packing
from engine.compiler.passes.storage import Copy
from engine.compiler.selection.machine import Effort, Machine, machine_of
from engine.dtypes import Array
from engine.precision import Precision
from engine.run.trace import Candidate

Weighted: TypeAlias = Convolution | Int8Convolution | TransposedConvolution | Linear | Recurrent
"""Nodes with weights that kernels read in an order of their own."""
BF16 = "bf16"
"""The candidate whose operands are rounded to bfloat16."""


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One kernel on its arguments.

    Attributes:
        kernel: the kernel.
        arguments: where its arrays begin, in the kernel's order, scratch memory left out.
        precision: precision of the kernel's products.
        candidates: the ways to compute the node that it was chosen of.
    """

    kernel: Kernel
    arguments: tuple[View, ...]
    precision: Precision = Precision.F32
    candidates: tuple[Candidate, ...] = field(default=(), compare=False)


@dataclass(slots=True)
class Selector:
    """Options of kernel selection, and the selected calls.

    Attributes:
        target: the compilation target.
        threads: threads that share a run.
        packed: cache of packed weights.
        precision: precision of matrix products.
        is_dynamic: whether to select kernels with runtime dimensions, where available.
        has_dynamic_images: whether rows and columns of images are among these.
        calls: the calls of the current node.
        candidates: the ways to compute the current node.
    """

    target: Target
    threads: int
    packed: PackedStore
    precision: Precision = Precision.F32
    is_dynamic: bool = False
    has_dynamic_images: bool = False
    calls: list[KernelCall] = field(default_factory=list)
    candidates: tuple[Candidate, ...] = ()

    @property
    def machine(self) -> Machine:
        """The machine that kernels run on."""
        return machine_of(self.target)

    @property
    def lanes(self) -> int:
        """float32 lanes of a vector."""
        return self.target.lanes

    def call(self, kernel: Kernel, *arguments: View, precision: Precision = Precision.F32) -> None:
        """Add a call.

        Args:
            kernel: the kernel.
            arguments: where its arrays begin.
            precision: what it rounds the operands of its products to.

        Raises:
            RegionError: the kernel could touch memory that is no part of its arguments.
        """
        check_arguments(type(kernel).__name__, kernel.regions, arguments)
        self.calls.append(KernelCall(kernel, arguments, precision, self.candidates))

    def choose(self, efforts: Mapping[str, Effort], of_one: Mapping[str, Effort] | None = None) -> str:
        """Return the name of the candidate that is expected to take the least time; its calls come next.

        Args:
            efforts: what each has to do.
            of_one: the same for one item of the batch: bfloat16 is chosen by that, so that the results of an item do
                not depend on how many come with it; None where no candidate rounds.
        """
        times = {name: self.machine.time(effort) for name, effort in efforts.items()}
        if of_one is not None and self.rounds(of_one):
            chosen = BF16
        else:
            chosen = min((name for name in times if name != BF16), key=times.__getitem__)
        if not self.is_dynamic:  # whose times differ from length to length
            self.candidates = tuple(
                Candidate(name, time / 1000, name == chosen) for name, time in times.items()
            )
        return chosen

    def rounds(self, efforts: Mapping[str, Effort]) -> bool:
        """Whether the candidate in bfloat16 is expected to take the least time."""
        times = {name: self.machine.time(effort) for name, effort in efforts.items()}
        return min(times, key=times.__getitem__) == BF16

    def copy(self, source: View, target: View) -> None:
        """Add the call that copies a view to another of its shape."""
        RULES[Copy](self, Copy(source, target))

    def weights(
        self,
        node: Weighted,
        kernel: Packing,
        weight: Array,
        bias: Array | None,
        part: tuple[int, ...] = (),
    ) -> tuple[View, View]:
        """Return the views of weights and bias, packed for a kernel; `part` distinguishes those of a node."""
        # a program for other shapes may have computed others
        content = (_digest(weight), _digest(bias)) if node.is_computed else ()
        # the same weights may be viewed with their axes in another order
        look = (weight.shape, weight.strides)
        key = (node.steps[0], part, content, look, type(kernel).__name__, *kernel.layout)
        packed = self.packed.get(key)
        if packed is None:
            packed = self.packed[key] = PackedWeights(kernel, (weight, bias), self.packed.cache)
        weights, starts = kernel.packed_sizes
        return _constant(packed.weight, weights), _constant(packed.bias, starts)

    def constant(self, array: Array) -> View:
        """Return the view of an array that the plan owns."""
        flat = aligned(np.ascontiguousarray(array, np.float32))
        return _constant(lambda: flat, flat.size)

    def temporary(self, shape: tuple[int, ...], order: tuple[int, ...] | None = None) -> View:
        """Return memory in the arena that lives for the node's calls only."""
        size = int(np.prod(shape))
        return whole(Buffer(BufferKind.ARENA, size), shape, order)


_PART = 3000.0
"""Nanoseconds of a part, at least: to hand it over takes half a microsecond, and its input may lie in another cache."""
_SPARE_PART = 12000.0
"""The same where a thread has several, so that another one, which is done first, can take over the last of them."""
PARTS_OF_THREAD = 4
"""Parts of a thread, at most."""

SelectionRule: TypeAlias = Callable[[Selector, Any], None]

RULES: dict[type[Node], SelectionRule] = {}
"""Kind of node -> what chooses its kernels."""


def selects(kind: type[Node]) -> Callable[[SelectionRule], SelectionRule]:
    """Register the rule of a kind of node."""

    def register(rule: SelectionRule) -> SelectionRule:
        RULES[kind] = rule
        return rule

    return register


def parallel_parts(nanoseconds: float, threads: int, most: int = PARTS_OF_THREAD) -> int:
    """Return into how many parts threads split work that takes one of them so long.

    One thread does all at once. Several have as many parts each, at most `most`, unless there is too little work.
    """
    if threads == 1:
        return 1
    if nanoseconds < threads * _PART:
        return max(1, int(nanoseconds / _PART))
    return threads * max(1, min(most, int(nanoseconds / (threads * _SPARE_PART))))


def view_of(tensor: Tensor) -> View:
    """Return where a tensor lies."""
    return tensor.place


def as_image(view: View) -> View:
    """Return a tensor as an image: (batch, channels, length) is one of a single row."""
    if len(view.shape) == 4:
        return view
    images, channels, length = view.shape
    step = view.strides[2]
    strides = (view.strides[0], view.strides[1], step * length, step)
    return View(view.buffer, view.offset, (images, channels, 1, length), strides)


def image_of(tensor: Tensor) -> View:
    """Return where an image lies, or a sequence as an image of a single row."""
    return as_image(view_of(tensor))


def image_of_shape(shape: tuple[int, ...]) -> View:
    """Return an image of a shape, or a sequence, without memory, channels last: for decisions by shape."""
    last = (0, *range(2, len(shape)), 1)
    return as_image(whole(Buffer(BufferKind.ARENA, 0), shape, last))


def image_strides(view: View) -> tuple[int, int, int]:
    """Return the elements between images, rows and pixels of (batch, channels, rows, columns)."""
    return view.strides[0], view.strides[2], view.strides[3]


def has_channels_last(view: View) -> bool:
    """Whether the channels of an image are contiguous."""
    return view.strides[1] == 1 or view.shape[1] == 1


def channels_last(selector: Selector, view: View) -> View:
    """Return an image whose channels are contiguous: the view itself, or a copy."""
    if has_channels_last(view):
        return view
    copy = selector.temporary(view.shape, (0, 2, 3, 1))
    selector.copy(view, copy)
    return copy


def row_by_row(selector: Selector, view: View) -> View:
    """Return a tensor that lies row by row: the view itself, or a copy."""
    if view.is_contiguous:
        return view
    copy = selector.temporary(view.shape)
    selector.copy(view, copy)
    return copy


def image_epilogue(
    selector: Selector, node: EpilogueNode, as_image: Callable[[View], View] = as_image
) -> tuple[Epilogue, list[View]]:
    """Return the epilogue of a node that computes an image, and the views that it reads.

    Args:
        selector: receives the calls.
        node: the node.
        as_image: how its tensors are looked at as images.

    Raises:
        ValueError: it reads a tensor in a way that no epilogue does.
    """
    full = logical_shape(node.output)
    rank, output = len(full), _image_shape(full, as_image)
    operands, views = [], []
    for tensor in node.inputs[node.own :]:
        view = view_of(tensor)
        if tensor.scale is not None:
            view = as_image(view)
            operands.append(EpilogueOperand(Broadcast.FULL, image_strides(view), tensor.scale))
            views.append(view)
            continue
        view = as_image(view.expanded((*(1,) * (rank - len(view.shape)), *view.shape)))
        if view.shape == output:
            view = channels_last(selector, view)
            operands.append(EpilogueOperand(Broadcast.FULL, image_strides(view)))
        elif view.size == 1:
            operands.append(EpilogueOperand(Broadcast.SCALAR))
        elif prod(view.shape[2:]) > 1:
            raise ValueError(
                f"an epilogue of {output} reads {view.shape}; expected all of it, or one a channel"
            )
        else:
            view = channels_last(selector, view)
            operands.append(
                EpilogueOperand(Broadcast.CHANNEL, (view.strides[0] if view.shape[0] > 1 else 0,))
            )
        views.append(view)
    return Epilogue(node.epilogue, tuple(operands)), views


def logical_shape(tensor: Tensor) -> tuple[int, ...]:
    """Return a tensor's shape, channels counted one by one."""
    if tensor.scale is None and not tensor.is_bf16:
        return tensor.shape
    return tensor.shape[0], tensor.channels, *tensor.shape[2:]


def _image_shape(shape: tuple[int, ...], as_image: Callable[[View], View]) -> tuple[int, ...]:
    return as_image(whole(Buffer(BufferKind.ARENA, 0), shape)).shape


def _constant(load: Callable[[], Array], size: int) -> View:
    return whole(Buffer(BufferKind.CONSTANT, size, load), (size,))


def _digest(array: Array | None) -> bytes:
    """Return the identity of an array's elements."""
    return b"" if array is None else hashlib.blake2b(np.ascontiguousarray(array).data).digest()
