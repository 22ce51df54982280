"""An expression over arrays of any strides: activations, sums, copies, transpositions, concatenation, slices.

Arguments: the operands, then the output, then `sizes`. A broadcast axis has stride 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from engine.compiler.emit import pointwise
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.pointwise import Leaf, PointwiseExpression
from engine.compiler.emit.runtime_sizes import GivenSizes, RuntimeSizes, Sized, Sizes
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.kernels.strided_loops import (
    Compute,
    Pointer,
    Strides,
    emit_piece,
    emit_row,
    emit_scalar_row,
    emit_square,
    moved,
)
from engine.compiler.memory.region import Region

PIECE = 4096
"""Elements of a line that are done at a time; a multiple of every vector."""
_CHUNK = 1 << 16
"""Elements of a chunk: some 10 microseconds of copying."""
_SQUARES = 16
"""Neighbouring squares of a transposition that are done at a time."""


@dataclass(frozen=True, slots=True)
class Elementwise(Sized):
    """An expression over arrays; make it by `elementwise`, so that equal work is equal.

    Attributes:
        shape: shape of the output; axes in order of the output's strides, largest first.
        operands: strides of each operand, in elements.
        out: strides of the output, in elements.
        expression: over the operands.
        transposed_axis: the contiguous axis of operands that are not contiguous along the last one; None without any.
        is_dynamic: whether extents and strides are runtime dimensions; strides of 0 and 1 along the last axis are not.
    """

    shape: tuple[int, ...]
    operands: tuple[Strides, ...]
    out: Strides
    expression: PointwiseExpression
    transposed_axis: int | None
    is_dynamic: bool = False

    def sized(self, sizes: Sizes) -> Self:
        """Return the kernel with what stands for its runtime dimensions, -1 for an unknown stride of the last axis."""
        if not self.is_dynamic:
            return self

        def steps(strides: Strides) -> Strides:
            *others, last = strides
            return (*map(sizes.extent, others), last if last in (0, 1) else sizes.extent(last) or -1)

        return replace(
            self,
            shape=tuple(map(sizes.extent, self.shape)),
            operands=tuple(map(steps, self.operands)),
            out=steps(self.out),
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Runtime dimensions: units of work of a chunk, then those that `sized` has."""
        if not self.is_dynamic:
            return ()
        units = math.prod(self.shape[:-1]) * -(-self.shape[-1] // PIECE)
        given = GivenSizes()
        given.extent(-(-units // self.chunks))
        self.sized(given)
        return tuple(given.values)

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        out = Region(self.shape, self.out, is_written=True)
        return *(Region(self.shape, strides) for strides in self.operands), out

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return -(-math.prod(self.shape) // _CHUNK)

    def emit(self, e: Emitter) -> None:
        """Write the kernel: units of work, the same number in each chunk."""
        pointers = [e.argument(place) for place in range(len(self.operands) + 1)]
        if self.is_dynamic:
            count = len(pointers)
            self.sized(RuntimeSizes(e, count + 1))._emit_dynamic(e, pointers, e.size(count))
            return
        extents = self._extents(e.lanes)
        units = math.prod(extents)
        grain = -(-units // max(self.chunks, 1))
        with e.chunk_loop(grain, units) as loop:
            place = e.unravel(loop.index, extents)
            if self.transposed_axis is None:
                self._emit_piece(e, pointers, place)
            else:
                self._emit_squares(e, pointers, place)

    def _emit_dynamic(self, e: Emitter, bases: Sequence[IRValue], grain: IRIndex) -> None:
        """Write units of work of runtime extents: a unit is a piece of a row."""
        extents = [*self.shape[:-1], e.ceil_divide(self.shape[-1], PIECE)]
        with e.chunk_loop(grain, e.product(extents)) as loop:
            place = e.unravel(loop.index, extents)
            start = e.mul(place[-1], PIECE)
            length = e.minimum(e.sub(self.shape[-1], start), PIECE)
            pointers = []
            for base, strides in zip(bases, (*self.operands, self.out), strict=True):
                offset = map(e.mul, (*place[:-1], start), strides)
                pointers.append(Pointer(e.address(base, *offset), 0, strides[-1]))
            *sources, out = pointers
            if isinstance(out.along, int) and all(isinstance(source.along, int) for source in sources):
                emit_row(e, self._compute(e), sources, out.base, length)
            else:
                emit_scalar_row(e, self._compute(e), sources, out, 0, length)

    def _extents(self, lanes: int) -> list[int]:
        """Return how many units of work there are along each axis."""
        extents = list(self.shape)
        if self.transposed_axis is None:
            extents[-1] = -(-extents[-1] // PIECE)
        else:
            extents[-1] = -(-extents[-1] // lanes)
            extents[self.transposed_axis] = -(-extents[self.transposed_axis] // (lanes * _SQUARES))
        return extents

    def _compute(self, e: Emitter) -> Compute:
        return lambda values: pointwise.emit(e, self.expression, values)

    def _pointers(
        self, e: Emitter, bases: Sequence[IRValue], place: Sequence[IRIndex], across: int
    ) -> list[Pointer]:
        """Return the arrays' pointers at a place, which counts for all axes but the last and `across`."""
        pointers = []
        for base, strides in zip(bases, (*self.operands, self.out), strict=True):
            axes = [axis for axis in range(len(strides) - 1) if axis != across]
            address = e.address(base, *(e.mul(place[axis], strides[axis]) for axis in axes))
            pointers.append(Pointer(address, strides[across] if across >= 0 else 0, strides[-1]))
        return pointers

    def _emit_piece(self, e: Emitter, bases: Sequence[IRValue], place: Sequence[IRIndex]) -> None:
        """Write one piece of one row."""
        *sources, out = self._pointers(e, bases, place, -1)
        length = self.shape[-1]
        start: IRIndex = 0 if length <= PIECE else e.mul(place[-1], PIECE)
        stop: IRIndex = length if length <= PIECE else e.minimum(e.add(start, PIECE), length)
        if out.along == 1 and all(source.along in (0, 1) for source in sources):
            emit_piece(e, self._compute(e), sources, out.base, (start, stop), length)
        else:
            emit_scalar_row(e, self._compute(e), sources, out, start, stop)

    def _emit_squares(self, e: Emitter, bases: Sequence[IRValue], place: Sequence[IRIndex]) -> None:
        """Write some squares that are contiguous across rows."""
        across = self.transposed_axis or 0
        rows, length = self.shape[across], self.shape[-1]
        pointers = self._pointers(e, bases, place, across)
        first = e.mul(place[across], e.lanes * _SQUARES)
        last = e.minimum(e.add(first, e.lanes * _SQUARES), rows)
        element = e.mul(place[-1], e.lanes)
        rest = length % e.lanes
        if not rest or length < e.lanes:
            self._emit_strip(e, pointers, (first, last), element, rest or e.lanes)
            return
        is_whole = e.compare("<", place[-1], length // e.lanes)
        with e.when(is_whole):
            self._emit_strip(e, pointers, (first, last), element, e.lanes)
        with e.when(e.builder.not_(is_whole)):
            self._emit_strip(e, pointers, (first, last), element, rest)

    def _emit_strip(
        self,
        e: Emitter,
        pointers: Sequence[Pointer],
        span: tuple[IRIndex, IRIndex],
        element: IRIndex,
        length: int,
    ) -> None:
        """Write `length` elements of the rows of a span, square by square."""
        rows = self.shape[self.transposed_axis or 0]
        whole = rows - rows % e.lanes

        def emit_at(row: IRIndex, count: int) -> None:
            *sources, out = [moved(e, pointer, row, element) for pointer in pointers]
            emit_square(e, self._compute(e), sources, out, count, length)

        if whole:
            with e.loop(span[0], e.minimum(span[1], whole), e.lanes) as loop:
                emit_at(loop.index, e.lanes)
        if whole < rows:
            with e.when(e.compare("==", span[1], rows)):
                emit_at(whole, rows - whole)


def elementwise(
    shape: Sequence[int],
    operands: Sequence[Sequence[int]],
    out: Sequence[int],
    expression: PointwiseExpression,
) -> Elementwise:
    """Return the kernel of an expression.

    Args:
        shape: shape of the output; operands are broadcast to it.
        operands: strides of each operand, in elements, 0 along axes that it is broadcast on.
        out: strides of the output.
        expression: over the operands.
    """
    axes = [axis for axis in range(len(shape)) if shape[axis] != 1]
    axes.sort(key=lambda axis: -abs(out[axis]))
    arrays = [tuple(strides[axis] for axis in axes) for strides in (*operands, out)]
    sizes, arrays = _merged([shape[axis] for axis in axes], arrays)
    *inputs, output = arrays
    return Elementwise(sizes, tuple(inputs), output, expression, _transposed_axis(sizes, inputs, output))


def dynamic_kernel(kernel: Elementwise) -> Elementwise:
    """Return the equivalent kernel with runtime extents and strides."""
    last = _last_axis(kernel)

    def ordered(steps: Strides) -> Strides:
        return (*steps[:last], *steps[last + 1 :], steps[last])

    return replace(
        kernel,
        shape=ordered(kernel.shape),
        operands=tuple(map(ordered, kernel.operands)),
        out=ordered(kernel.out),
        transposed_axis=None,
        is_dynamic=True,
    )


def _last_axis(kernel: Elementwise) -> int:
    """Return the axis that lines run along: where none suits the output, one that all operands are contiguous on."""
    axes = range(len(kernel.shape))
    suits = [axis for axis in axes if all(strides[axis] in (0, 1) for strides in kernel.operands)]
    contiguous = [axis for axis in suits if any(strides[axis] for strides in kernel.operands)]
    return axes[-1] if axes[-1] in suits or not contiguous else contiguous[-1]


def copy(shape: Sequence[int], source: Sequence[int], out: Sequence[int]) -> Elementwise:
    """Return the kernel that copies an array to one of other strides."""
    return elementwise(shape, [source], out, Leaf(0))


def _merged(shape: Sequence[int], arrays: Sequence[Strides]) -> tuple[tuple[int, ...], list[Strides]]:
    """Make one axis of neighbours that lie end to end in all arrays; there is one axis at least."""
    sizes, kept = [1], [[0] for _ in arrays]
    for axis, size in enumerate(shape):
        steps = [strides[axis] for strides in arrays]
        if sizes[-1] == 1 or all(last[-1] == step * size for last, step in zip(kept, steps, strict=True)):
            sizes[-1] *= size
            for last, step in zip(kept, steps, strict=True):
                last[-1] = step
            continue
        sizes.append(size)
        for last, step in zip(kept, steps, strict=True):
            last.append(step)
    return tuple(sizes), [tuple(strides) for strides in kept]


def _transposed_axis(shape: Sequence[int], operands: Sequence[Strides], out: Strides) -> int | None:
    """Return the axis that squares for a transposition span besides the last."""
    apart = [strides for strides in operands if strides[-1] not in (0, 1)]
    if not apart or out[-1] != 1:
        return None
    candidates = [axis for axis in range(len(shape) - 1) if all(strides[axis] == 1 for strides in apart)]
    return candidates[-1] if candidates else None
