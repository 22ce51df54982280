"""Resampling of two axes, channels last: nearest, bilinear and bicubic, as `engine.kernels.resampling` has them.

Arguments: input, output; channels of both are contiguous.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.jit import Kernel
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.kernels.strided_loops import emit_fold
from engine.compiler.memory.region import Region, pixels
from engine.kernels.resampling import Table, resampling_tables

_CHUNK = 16384
"""Elements of a chunk."""


@dataclass(frozen=True, slots=True)
class UpsampleKernel(Kernel):
    """A resampling of one exact shape.

    Attributes:
        mode: "nearest", "nearest-exact", "bilinear" or "bicubic".
        images: batch.
        channels: channels.
        size: rows and columns of the input.
        out_size: rows and columns of the output.
        x_strides: elements between images, rows and columns of the input.
        out_strides: the same of the output.
        scale_factor: scale factor of rows and columns, where sampling points follow from it and not from the sizes.
        align_corners: whether the centres of the corner elements stay in place.
        axes: spatial axes of the tensor; of a sequence, an image of one row, 1.
    """

    mode: str
    images: int
    channels: int
    size: tuple[int, int]
    out_size: tuple[int, int]
    x_strides: tuple[int, int, int]
    out_strides: tuple[int, int, int]
    scale_factor: tuple[float, float] | None = None
    align_corners: bool = False
    axes: int = 2

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        x = pixels(self.images, self.size, self.channels, self.x_strides)
        return x, pixels(self.images, self.out_size, self.channels, self.out_strides, is_written=True)

    @property
    def _rows(self) -> int:
        return max(1, _CHUNK // (self.out_size[1] * self.channels))

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return -(-self.images * self.out_size[0] // self._rows)

    def emit(self, e: Emitter) -> None:
        """Write the kernel, row by row of the output."""
        x, out = e.argument(0), e.argument(1)
        rows, columns = (
            _Taps.of(e, *axis) for axis in zip(self._tables(), self.out_size, self.x_strides[1:], strict=True)
        )
        with e.chunk_loop(self._rows, self.images * self.out_size[0]) as loop:
            image, row = e.divmod(loop.index, self.out_size[0])
            source = e.address(x, e.mul(image, self.x_strides[0]))
            target = e.address(out, e.mul(image, self.out_strides[0]), e.mul(row, self.out_strides[1]))
            lines = [(e.address(source, offset), weight) for offset, weight in rows.at(e, row)]
            with e.loop(0, self.out_size[1]) as pixels:
                result = e.address(target, e.mul(pixels.index, self.out_strides[2]))
                self._emit_pixel(e, lines, columns.at(e, pixels.index), result)

    def _tables(self) -> list[Table]:
        """Return what rows and columns are made of; how points are sampled depends on the number of axes."""
        first = 2 - self.axes
        tables = resampling_tables(
            self.size[first:],
            self.out_size[first:],
            None if self.scale_factor is None else self.scale_factor[first:],
            self.mode,
            self.align_corners,
            np.dtype(np.float32),
        )
        return [()] * first + tables

    def _emit_pixel(
        self, e: Emitter, lines: Sequence["_Tap"], columns: Sequence["_Tap"], out: IRValue
    ) -> None:
        """Write one pixel: in each of the lines that it is made of the columns are weighed first."""

        def emit_vector(channel: IRIndex, count: int, totals: list[IRValue]) -> list[IRValue]:
            parts = []
            for line, line_weight in lines:
                values = [(e.load(line, offset, channel, count=count), weight) for offset, weight in columns]
                parts.append((_weighed(e, values), line_weight))
            e.store(_weighed(e, parts), out, channel, count=count)
            return totals

        emit_fold(e, self.channels, [], emit_vector)


_Tap = tuple[IRValue, IRValue | None]
"""The address of an element, or the element, and its weight in all lanes; None is 1."""


@dataclass(frozen=True, slots=True)
class _Taps:
    """Tables in the kernel: for each place of the output the elements that it is made of, and their weights."""

    tables: tuple[tuple[IRValue, IRValue | None], ...]

    @classmethod
    def of(cls, e: Emitter, table: Table, count: int, step: int) -> "_Taps":
        """Bring the table of an axis of `count` elements along; `step` is the input's stride."""
        if not table:
            return cls(((e.table([place * step for place in range(count)]), None),))
        return cls(
            tuple(
                (
                    e.table((tap.positions * step).tolist()),
                    None if tap.weights is None else e.table(tap.weights.tolist()),
                )
                for tap in table
            )
        )

    def at(self, e: Emitter, place: IRIndex) -> list[_Tap]:
        """Return offsets and weights of a place's elements."""
        return [
            (e.load_index(offsets, place), None if weights is None else e.load_broadcast(weights, place))
            for offsets, weights in self.tables
        ]


def _weighed(e: Emitter, parts: Sequence[_Tap]) -> IRValue:
    """Return the sum of values times their weights."""
    total = None
    for value, weight in parts:
        if total is None:
            total = value if weight is None else e.fmul(value, weight)
        else:
            total = e.fadd(total, value) if weight is None else e.fma(value, weight, total)
    return total
