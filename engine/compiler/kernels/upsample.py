"""Resampling of two axes, channels last: nearest, bilinear and bicubic, as `engine.kernels.resampling` has them.

Arguments: input, output, `tables`; channels of both images are contiguous.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from engine.compiler.contraction.shapes import ImageStrides
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.runtime_sizes import RuntimeSizes, Sized, Sizes
from engine.compiler.emit.types import I64, IRIndex, IRValue
from engine.compiler.memory.region import Region, line, pixels
from engine.dtypes import Array
from engine.kernels.resampling import Table, Tap, resampling_tables

_CHUNK = 16384
"""Elements of a chunk."""


@dataclass(frozen=True, slots=True)
class UpsampleKernel(Sized):
    """A resampling of one exact shape, or of images of any number and size.

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
        kept: whether rows and columns stay as they are, whatever their number.
        is_dynamic: whether images, rows and columns are runtime dimensions.
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
    kept: tuple[bool, bool] = (False, False)
    is_dynamic: bool = False

    def sized(self, sizes: Sizes) -> Self:
        """Return the kernel with what stands for its runtime dimensions."""
        if not self.is_dynamic:
            return self
        strides = ImageStrides(self.x_strides, self.out_strides).sized(sizes)
        return replace(
            self,
            images=sizes.extent(self.images),
            size=(0, 0),  # the tables have what follows from it
            out_size=(sizes.extent(self.out_size[0]), sizes.extent(self.out_size[1])),
            x_strides=strides.x,
            out_strides=strides.out,
        )

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        x = pixels(self.images, self.size, self.channels, self.x_strides)
        out = pixels(self.images, self.out_size, self.channels, self.out_strides, is_written=True)
        return x, out, line(self.tables.size)

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        rows = max(1, _CHUNK // (self.out_size[1] * self.channels))
        return -(-self.images * self.out_size[0] // rows)

    @property
    def tables(self) -> Array:
        """For each row of the output the elements that it is made of and then their weights, for columns the same.

        Of each of them those of all rows together. A place below 2**24 is a float32 as well.
        """
        parts = []
        for taps, is_kept, size in zip(self._tables(), self.kept, self.out_size, strict=True):
            places = (Tap(np.arange(size), None),) if is_kept else taps
            parts += [tap.positions for tap in places]
            parts += [tap.weights for tap in places if tap.weights is not None]
        return np.concatenate(parts).astype(np.float32)

    def emit(self, e: Emitter) -> None:
        """Write the kernel, row by row of the output."""
        self.sized(RuntimeSizes(e, 3))._emit(e)

    def _emit(self, e: Emitter) -> None:
        x, out = e.argument(0), e.argument(1)
        rows, columns = self._axes(e)
        all_rows, all_columns = self.out_size
        grain = e.maximum(1, e.divmod(_CHUNK, e.mul(all_columns, self.channels))[0])
        with e.chunk_loop(grain, e.mul(self.images, all_rows)) as loop:
            image, row = e.divmod(loop.index, all_rows)
            source = e.address(x, e.mul(image, self.x_strides[0]))
            target = e.address(out, e.mul(image, self.out_strides[0]), e.mul(row, self.out_strides[1]))
            lines = [(e.address(source, offset), weight) for offset, weight in rows.at(e, row)]
            with e.loop(0, all_columns) as pixels:
                result = e.address(target, e.mul(pixels.index, self.out_strides[2]))
                self._emit_pixel(e, lines, columns.at(e, pixels.index), result)

    def _axes(self, e: Emitter) -> list["_Taps"]:
        """Return where the tables of rows and columns are."""
        start, axes = e.argument(2), []
        count = {"bilinear": 2, "bicubic": 4}.get(self.mode, 1)
        for is_kept, size, step in zip(self.kept, self.out_size, self.x_strides[1:], strict=True):
            taps = 1 if is_kept else count
            axes.append(_Taps(start, taps, size, step))
            start = e.address(start, e.mul(2 * taps if taps > 1 else 1, size))
        return axes

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
        self,
        e: Emitter,
        lines: Sequence["_Tap"],
        columns: Sequence[tuple[IRIndex, IRValue | None]],
        out: IRValue,
    ) -> None:
        """Write one pixel: in each of the lines that it is made of the columns are weighed first."""
        for channel, count in e.each_vector(self.channels):
            parts = []
            for place, line_weight in lines:
                values = [(e.load(place, offset, channel, count=count), weight) for offset, weight in columns]
                parts.append((_weighed(e, values), line_weight))
            e.store(_weighed(e, parts), out, channel, count=count)


_Tap = tuple[IRValue, IRValue | None]
"""The address of an element, or the element, and its weight in all lanes; None is 1."""


@dataclass(frozen=True, slots=True)
class _Taps:
    """Tables of an axis: for each place of the output the elements that it is made of, and their weights.

    Attributes:
        start: address of the tables.
        count: elements that each is made of; one alone has no weight.
        size: places of the output.
        step: elements between two places of the input.
    """

    start: IRValue
    count: int
    size: IRIndex
    step: IRIndex

    def at(self, e: Emitter, place: IRIndex) -> list[tuple[IRIndex, IRValue | None]]:
        """Return offsets and weights of a place's elements."""
        found: list[tuple[IRIndex, IRValue | None]] = []
        for tap in range(self.count):
            position = e.load_scalar(self.start, e.mul(tap, self.size), place)
            offset = e.mul(e.builder.fptoui(position, I64), self.step)
            weights = self.count + tap
            weight = (
                None if self.count == 1 else e.load_broadcast(self.start, e.mul(weights, self.size), place)
            )
            found.append((offset, weight))
        return found


def _weighed(e: Emitter, parts: Sequence[_Tap]) -> IRValue:
    """Return the sum of values times their weights."""
    total = None
    for value, weight in parts:
        if total is None:
            total = value if weight is None else e.fmul(value, weight)
        else:
            total = e.fadd(total, value) if weight is None else e.fma(value, weight, total)
    return total
