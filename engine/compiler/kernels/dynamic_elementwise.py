"""An expression over arrays with runtime extents and strides: one code for tensors of all lengths.

Arguments: the operands, then the output, then `sizes`. A broadcast axis has stride 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from engine.compiler.emit import pointwise
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.runtime_sizes import GivenSizes, RuntimeSizes, Sized, Sizes
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.kernels.elementwise import Elementwise
from engine.compiler.kernels.strided_expression import PIECE, StridedExpression, Strides
from engine.compiler.kernels.strided_loops import Pointer, emit_fold, emit_scalar_row


@dataclass(frozen=True, slots=True)
class DynamicElementwise(StridedExpression, Sized):
    """An expression over arrays; of strides only 0 and 1 along the last axis are in the code."""

    def sized(self, sizes: Sizes) -> Self:
        """Return the kernel with what stands for its runtime dimensions, -1 for an unknown stride of the last axis."""

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
        units = math.prod(self.shape[:-1]) * -(-self.shape[-1] // PIECE)
        given = GivenSizes()
        given.extent(-(-units // self.chunks))
        self.sized(given)
        return tuple(given.values)

    def emit(self, e: Emitter) -> None:
        """Write the kernel: units of work, the same number in each chunk; a unit is a piece of a row."""
        count = len(self.operands) + 1
        bases = [e.argument(place) for place in range(count)]
        self.sized(RuntimeSizes(e, count + 1))._emit(e, bases, e.size(count))

    def _emit(self, e: Emitter, bases: Sequence[IRValue], grain: IRIndex) -> None:
        extents = [*self.shape[:-1], e.ceil_divide(self.shape[-1], PIECE)]
        with e.chunk_loop(grain, e.product(extents)) as loop:
            place = e.unravel(loop.index, extents)
            rows = [
                e.address(base, *map(e.mul, place[:-1], strides[:-1]))
                for base, strides in zip(bases, (*self.operands, self.out), strict=True)
            ]
            start = e.mul(place[-1], PIECE)
            self._emit_piece(e, rows, start, e.minimum(e.sub(self.shape[-1], start), PIECE))

    def _emit_piece(self, e: Emitter, rows: Sequence[IRValue], start: IRIndex, length: IRIndex) -> None:
        """Write so many elements of a row."""
        steps = [strides[-1] for strides in (*self.operands, self.out)]
        *sources, out = [
            Pointer(e.address(row, e.mul(start, step)), 0, step)
            for row, step in zip(rows, steps, strict=True)
        ]

        def compute(values: list[IRValue]) -> IRValue:
            return pointwise.emit(e, self.expression, values)

        if steps[-1] != 1 or not all(isinstance(step, int) for step in steps):
            emit_scalar_row(e, compute, sources, out, 0, length)
            return
        shared = {place: e.load_broadcast(s.base) for place, s in enumerate(sources) if s.along == 0}

        def write(index: IRIndex, count: IRIndex, totals: list[IRValue]) -> list[IRValue]:
            values = [
                shared[place] if place in shared else e.load(source.base, index, count=count)
                for place, source in enumerate(sources)
            ]
            e.store(compute(values), out.base, index, count=count)
            return totals

        emit_fold(e, length, [], write)


def dynamic_kernel(kernel: Elementwise) -> DynamicElementwise:
    """Return the equivalent kernel with runtime extents and strides."""
    last = _last_axis(kernel)

    def ordered(steps: Strides) -> Strides:
        return (*steps[:last], *steps[last + 1 :], steps[last])

    operands = tuple(map(ordered, kernel.operands))
    return DynamicElementwise(ordered(kernel.shape), operands, ordered(kernel.out), kernel.expression)


def _last_axis(kernel: Elementwise) -> int:
    """Return the axis that lines run along: where none suits the output, one that all operands are contiguous on."""
    axes = range(len(kernel.shape))
    suits = [axis for axis in axes if all(strides[axis] in (0, 1) for strides in kernel.operands)]
    contiguous = [axis for axis in suits if any(strides[axis] for strides in kernel.operands)]
    return axes[-1] if axes[-1] in suits or not contiguous else contiguous[-1]
