"""Max and average pooling over two axes, channels last; windows are clipped, so the input has no padding.

Arguments: input, output; channels of both are contiguous.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from llvmlite import ir

from engine.compiler.contraction.shapes import ImageStrides
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.runtime_sizes import RuntimeSizes, Sized, Sizes
from engine.compiler.emit.types import F32, IRIndex, IRValue
from engine.compiler.emit.vector_math import maximum
from engine.compiler.memory.region import Region, pixels

_CHUNK = 1 << 16
"""Elements that one chunk reads, at least."""
_VECTORS = 4
"""Vectors of channels that are pooled together."""
_UNROLLED = 7
"""Columns of a window up to which they are written one after the other."""


@dataclass(frozen=True, slots=True)
class Window:
    """Windows of one size along an axis.

    Attributes:
        size: length of the input's axis.
        count: windows.
        kernel: elements of a window.
        stride: elements between two windows.
        padding: elements before the input that windows start at.
        dilation: elements between two of a window.
        counts_padding: whether an average counts elements of the padding.
    """

    size: int
    count: int
    kernel: int
    stride: int
    padding: int = 0
    dilation: int = 1
    counts_padding: bool = True

    def sized(self, sizes: Sizes) -> "Window":
        """Return the windows with the axis's length and their number as runtime dimensions."""
        return replace(self, size=sizes.extent(self.size), count=sizes.extent(self.count))

    def inside(self, e: Emitter) -> tuple[IRIndex, IRIndex]:
        """Return the first window, and the one past the last, that has all its elements in the input."""
        first = e.minimum(-(-self.padding // self.stride), self.count)
        reach = e.add(self.size, self.padding + self.stride - 1 - (self.kernel - 1) * self.dilation)
        whole = e.divmod(e.maximum(reach, 0), self.stride)[0]
        return first, e.maximum(first, e.minimum(whole, self.count))

    def span(self, e: Emitter, place: IRIndex) -> tuple[IRIndex, IRIndex]:
        """Return where in the input a window's elements start, and a place past the last one."""
        start = e.sub(e.mul(place, self.stride), self.padding)
        stop = e.minimum(e.add(start, (self.kernel - 1) * self.dilation + 1), self.size)
        outside = e.maximum(e.sub(0, start), 0)
        missing, _ = e.divmod(e.add(outside, self.dilation - 1), self.dilation)
        return e.add(start, e.mul(missing, self.dilation)), stop

    def divisor(self, e: Emitter, place: IRIndex) -> IRIndex:
        """Return by what this axis divides an average."""
        start, stop = self.span(e, place)
        if self.counts_padding:
            start = e.sub(e.mul(place, self.stride), self.padding)
            stop = e.minimum(e.add(start, self.kernel), e.add(self.size, self.padding))
        return e.sub(stop, start)


@dataclass(frozen=True, slots=True)
class Cells:
    """Windows that share an axis as evenly as can be.

    Attributes:
        size: length of the input's axis.
        count: cells.
    """

    size: int
    count: int
    dilation: int = 1

    def sized(self, sizes: Sizes) -> "Cells":
        """Return the same: other lengths need other code."""
        del sizes
        return self

    def inside(self, e: Emitter) -> tuple[IRIndex, IRIndex]:
        """Return no window: no length is known at compile time."""
        del e
        return 0, 0

    @property
    def kernel(self) -> int:
        """Elements of the longest cell."""
        return -(-self.size // self.count) + 1

    def span(self, e: Emitter, place: IRIndex) -> tuple[IRIndex, IRIndex]:
        """Return where in the input a cell starts and ends."""
        start, _ = e.divmod(e.mul(place, self.size), self.count)
        stop, _ = e.divmod(e.add(e.mul(e.add(place, 1), self.size), self.count - 1), self.count)
        return start, stop

    def divisor(self, e: Emitter, place: IRIndex) -> IRIndex:
        """Return by what this axis divides an average."""
        start, stop = self.span(e, place)
        return e.sub(stop, start)


def cells(size: int, count: int) -> Window | Cells:
    """Return the windows of an adaptive pooling."""
    return Cells(size, count) if size % count else Window(size, count, size // count, size // count)


@dataclass(frozen=True, slots=True)
class Pooling(Sized):
    """A pooling of one exact shape, or of images of any number and size.

    Attributes:
        how: "max" or "average".
        images: batch.
        channels: channels.
        rows: windows along the rows.
        columns: windows along the columns.
        x_strides: elements between images, rows and columns of the input.
        out_strides: the same of the output.
        divisor: what sums are divided by instead of the window's size; 0: by that.
        is_dynamic: whether images, rows and columns are runtime dimensions.
    """

    how: str
    images: int
    channels: int
    rows: Window | Cells
    columns: Window | Cells
    x_strides: tuple[int, int, int]
    out_strides: tuple[int, int, int]
    divisor: int = 0
    is_dynamic: bool = False

    def sized(self, sizes: Sizes) -> Self:
        """Return the kernel with what stands for its runtime dimensions."""
        if not self.is_dynamic:
            return self
        strides = ImageStrides(self.x_strides, self.out_strides).sized(sizes)
        return replace(
            self,
            images=sizes.extent(self.images),
            rows=self.rows.sized(sizes),
            columns=self.columns.sized(sizes),
            x_strides=strides.x,
            out_strides=strides.out,
        )

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        size = self.rows.size, self.columns.size
        counts = self.rows.count, self.columns.count
        x = pixels(self.images, size, self.channels, self.x_strides)
        return x, pixels(self.images, counts, self.channels, self.out_strides, is_written=True)

    @property
    def _row_reads(self) -> int:
        """Elements that a column of a row of the output reads."""
        return self.rows.kernel * self.columns.kernel * self.channels

    @property
    def chunks(self) -> int:
        """Parts that the work is split into: some rows of the output each."""
        grain = max(1, _CHUNK // (self._row_reads * self.columns.count))
        return -(-self.images * self.rows.count // grain)

    def emit(self, e: Emitter) -> None:
        """Write the kernel: row by row of the output, block by block of channels."""
        self.sized(RuntimeSizes(e, 2))._emit(e)

    def _emit(self, e: Emitter) -> None:
        x, out = e.argument(0), e.argument(1)
        width = min(_VECTORS, -(-self.channels // e.lanes)) * e.lanes
        blocks = -(-self.channels // width)
        grain = e.maximum(1, e.divmod(_CHUNK, e.mul(self._row_reads, self.columns.count))[0])
        with (
            e.chunk_loop(grain, e.mul(self.images, self.rows.count)) as loop,
            e.loop(0, blocks) as block,
        ):
            place = [*e.unravel(loop.index, (self.images, self.rows.count)), block.index]
            self._emit_block(e, x, out, place, width)

    def _emit_block(self, e: Emitter, x: IRValue, out: IRValue, place: list[IRIndex], width: int) -> None:
        """Write one row of one block of channels, which is as wide as all but perhaps the last one."""
        image, row, block = place
        channel = e.mul(block, width)
        source = e.address(x, e.mul(image, self.x_strides[0]), channel)
        steps = e.mul(image, self.out_strides[0]), e.mul(row, self.out_strides[1])
        target = e.address(out, *steps, channel)
        whole, rest = divmod(self.channels, width)
        if not rest or not whole:
            self._emit_row(e, source, target, row, rest or width)
            return
        is_whole = e.compare("<", block, whole)
        with e.when(is_whole):
            self._emit_row(e, source, target, row, width)
        with e.when(e.builder.not_(is_whole)):
            self._emit_row(e, source, target, row, rest)

    def _emit_row(self, e: Emitter, x: IRValue, out: IRValue, row: IRIndex, channels: int) -> None:
        """Write one row of some channels: windows that stand over an edge, then those inside, then the rest."""
        first, last = self.columns.inside(e)
        for start, stop, inside in (
            (0, first, False),
            (first, last, True),
            (last, self.columns.count, False),
        ):
            if isinstance(start, int) and isinstance(stop, int) and start >= stop:
                continue
            with e.loop(start, stop) as loop:
                self._emit_window(e, x, out, (row, loop.index), channels, inside)

    def _emit_window(
        self,
        e: Emitter,
        x: IRValue,
        out: IRValue,
        place: tuple[IRIndex, IRIndex],
        channels: int,
        inside: bool,
    ) -> None:
        """Write one result of some channels."""
        counts = [min(e.lanes, channels - lane) for lane in range(0, channels, e.lanes)]
        start, stop = self.rows.span(e, place[0])
        with e.loop(start, stop, self.rows.dilation, carry=[self._start(e)] * len(counts)) as loop:
            line = e.address(x, e.mul(loop.index, self.x_strides[1]))
            # each row has a sum of its own: long sums lose digits
            row = self._emit_taps(e, line, place[1], counts, inside)
            loop.following = [self._combine(e, *pair) for pair in zip(loop.carried, row, strict=True)]
        results = loop.results
        if self.how == "average":
            factor = self._factor(e, place)
            results = [e.fmul(result, factor) for result in results]
        target = e.address(out, e.mul(place[1], self.out_strides[2]))
        for vector, (result, count) in enumerate(zip(results, counts, strict=True)):
            e.store(result, target, vector * e.lanes, count=count)

    def _emit_taps(
        self, e: Emitter, line: IRValue, column: IRIndex, counts: list[int], inside: bool
    ) -> list[IRValue]:
        """Write the combination of a window's elements in one row."""
        step = self.columns.dilation
        start, stop = self.columns.span(e, column)

        def take(tap: IRIndex, totals: list[IRValue]) -> list[IRValue]:
            base = e.address(line, e.mul(tap, self.x_strides[2]))
            values = [e.load(base, v * e.lanes, count=count) for v, count in enumerate(counts)]
            return [self._combine(e, *pair) for pair in zip(totals, values, strict=True)]

        totals = [self._start(e)] * len(counts)
        if inside and isinstance(self.columns, Window) and self.columns.kernel <= _UNROLLED:
            start = e.sub(e.mul(column, self.columns.stride), self.columns.padding)
            for tap in range(self.columns.kernel):
                totals = take(e.add(start, tap * step), totals)
            return totals
        with e.loop(start, stop, step, carry=totals) as loop:
            loop.following = take(loop.index, loop.carried)
        return loop.results

    def _start(self, e: Emitter) -> IRValue:
        return e.splat(0.0 if self.how == "average" else float("-inf"))

    @property
    def _combine(self) -> Callable[[Emitter, IRValue, IRValue], IRValue]:
        return Emitter.fadd if self.how == "average" else maximum

    def _factor(self, e: Emitter, place: tuple[IRIndex, IRIndex]) -> IRValue:
        """Return what makes the average of a sum."""
        if self.divisor:
            return e.splat(1 / self.divisor)
        count = e.mul(self.rows.divisor(e, place[0]), self.columns.divisor(e, place[1]))
        if isinstance(count, int):
            return e.splat(1 / count)
        return e.broadcast(e.fdiv(ir.Constant(F32, 1.0), e.builder.sitofp(count, F32)))
