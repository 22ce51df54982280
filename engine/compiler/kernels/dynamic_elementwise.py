"""An expression over arrays with runtime extents and strides: one code for tensors of all lengths.

Arguments: the operands, then the output, then `sizes`. A broadcast axis has stride 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.compiler.emit import pointwise
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.kernels.elementwise import Elementwise
from engine.compiler.kernels.strided_expression import PIECE, StridedExpression
from engine.compiler.kernels.strided_loops import Pointer, emit_fold, emit_scalar_row


@dataclass(frozen=True, slots=True)
class DynamicElementwise(StridedExpression):
    """An expression over arrays; only the strides of the last axis are in the code."""

    @property
    def general(self) -> "DynamicElementwise":
        """The kernel whose code this one runs."""
        none = (0,) * (len(self.shape) - 1)
        operands = tuple((*none, strides[-1]) for strides in self.operands)
        return replace(self, shape=(*none, 0), operands=operands, out=(*none, self.out[-1]))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Runtime dimensions: extents, units of work of a chunk, and the strides of all axes but the last."""
        strides = [step for array in (*self.operands, self.out) for step in array[:-1]]
        units = math.prod(self.shape[:-1]) * -(-self.shape[-1] // PIECE)
        return *self.shape, -(-units // self.chunks), *strides

    def emit(self, e: Emitter) -> None:
        """Write the kernel: units of work, the same number in each chunk; a unit is a piece of a row."""
        rank, count = len(self.shape), len(self.operands) + 1
        bases = [e.argument(place) for place in range(count)]
        sizes = [e.size(count + place) for place in range(rank + 1 + count * (rank - 1))]
        shape, grain, strides = sizes[:rank], sizes[rank], sizes[rank + 1 :]
        extents = [*shape[:-1], e.divmod(e.add(shape[-1], PIECE - 1), PIECE)[0]]
        with e.chunk_loop(grain, e.product(extents)) as loop:
            place = e.unravel(loop.index, extents)
            rows = [
                e.address(base, *map(e.mul, place[:-1], strides[number * (rank - 1) :][: rank - 1]))
                for number, base in enumerate(bases)
            ]
            start = e.mul(place[-1], PIECE)
            self._emit_piece(e, rows, start, e.minimum(e.sub(shape[-1], start), PIECE))

    def _emit_piece(self, e: Emitter, rows: Sequence[IRValue], start: IRIndex, length: IRIndex) -> None:
        """Write so many elements of a row."""
        steps = [strides[-1] for strides in (*self.operands, self.out)]
        *sources, out = [
            Pointer(e.address(row, e.mul(start, step)), 0, step)
            for row, step in zip(rows, steps, strict=True)
        ]

        def compute(values: list[IRValue]) -> IRValue:
            return pointwise.emit(e, self.expression, values)

        if steps[-1] != 1 or any(step not in (0, 1) for step in steps):
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
    return DynamicElementwise(kernel.shape, kernel.operands, kernel.out, kernel.expression)
