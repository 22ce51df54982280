"""Strided views over buffers, as in numpy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod

from engine.dtypes import Array


class BufferKind(Enum):
    """Whose memory a buffer is."""

    ARENA = "arena"
    """The run's own, shared by tensors that are not alive at once."""
    CONSTANT = "constant"
    """The plan's: weights, and tensors that no input changes."""
    VALUE = "value"
    """An array that exists before a kernel reads it: an input, or the output of a reference (numpy) layer."""
    OUTPUT = "output"
    """An array that a run leaves behind."""


@dataclass(eq=False, slots=True)
class Buffer:
    """Memory of float32 elements, one piece.

    Attributes:
        kind: whose it is.
        size: elements.
        load: returns a constant's elements; called once the kernels are compiled.
        slot: of a VALUE or OUTPUT, the operand's slot.
    """

    kind: BufferKind
    size: int
    load: Callable[[], Array] | None = None
    slot: int = -1


@dataclass(frozen=True, slots=True)
class View:
    """A tensor in a buffer.

    Attributes:
        buffer: the buffer.
        offset: element where it begins.
        shape: extents.
        strides: elements between neighbours along each axis.
    """

    buffer: Buffer
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def permuted(self, axes: Sequence[int]) -> "View":
        """Return the view with its axes in another order."""
        shape, strides = (tuple(values[a] for a in axes) for values in (self.shape, self.strides))
        return View(self.buffer, self.offset, shape, strides)

    def sliced(self, axis: int, start: int, count: int, step: int = 1) -> "View":
        """Return `count` places along an axis."""
        shape, strides = list(self.shape), list(self.strides)
        shape[axis], strides[axis] = count, strides[axis] * step
        return View(self.buffer, self.offset + start * self.strides[axis], tuple(shape), tuple(strides))

    def expanded(self, shape: Sequence[int]) -> "View":
        """Return the view broadcast to a shape: axes of one element are repeated, missing ones come first."""
        missing = len(shape) - len(self.shape)
        strides = [0] * missing + [
            0 if have == 1 and want != 1 else stride
            for have, want, stride in zip(self.shape, shape[missing:], self.strides, strict=True)
        ]
        return View(self.buffer, self.offset, tuple(shape), tuple(strides))

    def reshaped(self, shape: Sequence[int]) -> "View | None":
        """Return the view in another shape of as many elements; None where that needs a copy."""
        strides = _strides_after(self.shape, self.strides, tuple(shape))
        return None if strides is None else View(self.buffer, self.offset, tuple(shape), strides)

    def in_shape(self, shape: Sequence[int]) -> "View":
        """Return the view in another shape of as many elements, which is known to need no copy.

        Raises:
            ValueError: it does need one.
        """
        view = self.reshaped(shape)
        if view is None:
            raise ValueError(f"a tensor of shape {self.shape} cannot be looked at as {tuple(shape)}")
        return view

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie row by row without gaps."""
        return all(
            extent == 1 or stride == usual
            for extent, stride, usual in zip(
                self.shape, self.strides, natural_strides(self.shape), strict=True
            )
        )


def natural_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a tensor that lies row by row."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def strides_in_order(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a tensor whose axes lie in an order, slowest first, without gaps."""
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def whole(buffer: Buffer, shape: Sequence[int], order: Sequence[int] | None = None) -> View:
    """Return the view of a whole buffer, its axes in an order (slowest first; their own by default)."""
    strides = natural_strides(shape) if order is None else strides_in_order(shape, order)
    return View(buffer, 0, tuple(shape), strides)


def _strides_after(
    shape: tuple[int, ...], strides: tuple[int, ...], wanted: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the strides of a reshaped view, or None where its elements do not lie evenly."""
    if prod(shape) == 0:
        return natural_strides(wanted)
    runs = _even_runs(shape, strides)
    result: list[int] = []
    left = 1  # elements of the current run that no axis has taken yet
    step = 0
    for extent in reversed(wanted):
        if extent == 1:
            result.append(step or 1)
            continue
        if left == 1:
            if not runs:
                return None
            left, step = runs.pop()
        if left % extent:
            return None
        result.append(step)
        left //= extent
        step *= extent
    return tuple(reversed(result))


def _even_runs(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[tuple[int, int]]:
    """Merge neighbouring axes that lie end to end; returns (elements, stride), slowest first."""
    runs: list[tuple[int, int]] = []
    for extent, stride in zip(shape, strides, strict=True):
        if extent == 1:
            continue
        if runs and runs[-1][1] == extent * stride:
            runs[-1] = (runs[-1][0] * extent, stride)
        else:
            runs.append((extent, stride))
    return runs
