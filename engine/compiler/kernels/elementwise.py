"""An expression over arrays of any strides: activations, sums, copies, transpositions, concatenation, slices.

Arguments: the operands, then the output. A broadcast axis has stride 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.compiler.emit import pointwise
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.pointwise import Leaf, PointwiseExpression
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.kernels.strided_expression import PIECE, StridedExpression, Strides
from engine.compiler.kernels.strided_loops import (
    Compute,
    Pointer,
    emit_row,
    emit_scalar_row,
    emit_square,
    moved,
)

_SQUARES = 16
"""Neighbouring squares of a transposition that are done at a time."""


@dataclass(frozen=True, slots=True)
class Elementwise(StridedExpression):
    """An expression over arrays of one exact shape; make it by `elementwise`, so that equal work is equal.

    Attributes:
        transposed_axis: the contiguous axis of operands that are not contiguous along the last one; None without any.
    """

    transposed_axis: int | None

    def emit(self, e: Emitter) -> None:
        """Write the kernel: units of work, the same number in each chunk."""
        pointers = [e.argument(place) for place in range(len(self.operands) + 1)]
        extents = self._extents(e.lanes)
        units = math.prod(extents)
        grain = -(-units // max(self.chunks, 1))
        with e.chunk_loop(grain, units) as loop:
            place = e.unravel(loop.index, extents)
            if self.transposed_axis is None:
                self._emit_piece(e, pointers, place)
            else:
                self._emit_squares(e, pointers, place)

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
            emit_row(e, self._compute(e), sources, out.base, start, stop, length)
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
