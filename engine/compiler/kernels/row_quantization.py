"""Rows of float32 as 8-bit integers, each by a scale of its own: `engine.quantization.layer.dynamic_steps`.

Arguments: input, integers, scales, then the number of rows if that is a runtime dimension. Integers lie four to an
element, with zero point 128 and one scale per row. The scale is NaN where the row holds an infinity or NaN, so that
its results are NaN as well.
"""

from dataclasses import dataclass, replace

import numpy as np

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.int8 import WORD_CHANNELS, store_bytes, symmetric_integers, words
from engine.compiler.emit.jit import Kernel
from engine.compiler.emit.types import IRValue
from engine.compiler.kernels.strided_loops import emit_fold
from engine.compiler.memory.region import Region
from engine.quantization.layer import DYNAMIC_BOUNDS, DYNAMIC_LEVELS

_CHUNK = 1 << 14
"""Elements of a chunk: some microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowQuantization(Kernel):
    """Rows of one exact length.

    Attributes:
        rows: rows.
        columns: elements of a row, side by side.
        x_step: elements between rows of the input.
        out_step: elements between rows of integers.
        lanes: float32 lanes of a vector.
        is_dynamic: whether the number of rows is a runtime dimension.
    """

    rows: int
    columns: int
    x_step: int
    out_step: int
    lanes: int
    is_dynamic: bool = False

    @property
    def general(self) -> "RowQuantization":
        """The kernel whose code this one runs."""
        return replace(self, rows=0) if self.is_dynamic else self

    @property
    def sizes(self) -> tuple[int, ...]:
        """The runtime dimensions of the code."""
        return (self.rows,) if self.is_dynamic else ()

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        return (
            Region((self.rows, self.columns), (self.x_step, 1)),
            Region((self.rows, words(self.columns)), (self.out_step, 1), is_written=True),
            Region((self.rows,), (1,), is_written=True),
        )

    @property
    def _chunk_rows(self) -> int:
        return max(1, _CHUNK // self.columns)

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return -(-self.rows // self._chunk_rows)

    def emit(self, e: Emitter) -> None:
        """Write the kernel: for each row its largest magnitude, then its integers."""
        x, out, scales = (e.argument(place) for place in range(3))
        rows = e.size(3) if self.is_dynamic else self.rows
        with e.chunk_loop(self._chunk_rows, rows) as row:
            source = e.address(x, e.mul(row.index, self.x_step))
            magnitude, zero = self._magnitude(e, source)
            inverse_levels = float(np.float32(1) / np.float32(DYNAMIC_LEVELS))
            e.store_scalar(e.fadd(e.fmul(magnitude, e.scalar(inverse_levels)), zero), scales, row.index)
            factor = e.broadcast(e.fdiv(e.scalar(DYNAMIC_LEVELS), magnitude))
            target = e.address(out, e.mul(row.index, self.out_step))
            self._emit_integers(e, source, target, factor)

    def _magnitude(self, e: Emitter, source: IRValue) -> tuple[IRValue, IRValue]:
        """Return a row's largest magnitude, within bounds, and 0: NaN where one of its numbers is not finite."""

        def larger(index: IRValue, count: int, totals: list[IRValue]) -> list[IRValue]:
            values = e.load(source, index, count=count)
            return [e.fmax(e.call("llvm.fabs", values), totals[0]), e.fma(values, e.splat(0.0), totals[1])]

        largest, zeros = emit_fold(e, self.columns, [e.splat(0.0)] * 2, larger)
        least, greatest = map(e.scalar, DYNAMIC_BOUNDS)
        magnitude = e.fmin(e.fmax(e.reduce("max", largest), least), greatest)
        return magnitude, e.reduce("add", zeros)

    def _emit_integers(self, e: Emitter, source: IRValue, target: IRValue, factor: IRValue) -> None:
        for column, count in e.each_vector(self.columns):
            scaled = e.fmul(e.load(source, column, count=count), factor)
            integers = symmetric_integers(e, scaled, DYNAMIC_LEVELS)
            store_bytes(e, integers, target, e.divmod(column, WORD_CHANNELS)[0], count=count)
