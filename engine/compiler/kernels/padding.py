"""Padding: copies an image of any strides into a larger channels-last one, with a constant or its own pixels around it.

Arguments: input, output.
"""

from dataclasses import dataclass

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.jit import Kernel
from engine.compiler.emit.pointwise import ZERO, Literal
from engine.compiler.emit.types import IRValue
from engine.compiler.kernels.strided_loops import Pointer, emit_row, emit_scalar_row, emit_square, moved
from engine.compiler.memory.region import MATRIX, Region, pixels
from engine.kernels.padding import source_positions

_CHUNK = 32768
"""Elements of a chunk."""


@dataclass(frozen=True, slots=True)
class PadKernel(Kernel):
    """A padding of one exact shape; a negative margin crops.

    Attributes:
        shape: shape of the input: images, channels, rows, columns.
        x_strides: elements between its images, channels, rows and columns.
        size: rows and columns of the output.
        before: rows and columns of the output before the input's first ones.
        out_strides: elements between images, rows and columns of the output; its channels are contiguous.
        value: what the margins are filled with, in mode "constant".
        mode: "constant", "reflect", "replicate" or "circular".
    """

    shape: tuple[int, int, int, int]
    x_strides: tuple[int, ...]
    size: tuple[int, int]
    before: tuple[int, int]
    out_strides: tuple[int, ...]
    value: Literal = ZERO
    mode: str = "constant"

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        image, row, column = self.out_strides
        out = pixels(self.shape[0], self.size, self.shape[1], (image, row, column), is_written=True)
        return Region(self.shape, self.x_strides, order=MATRIX), out

    @property
    def _rows(self) -> int:
        """Rows of one chunk."""
        return max(1, _CHUNK // max(1, self.size[1] * self.shape[1]))

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return -(-self.shape[0] * self.size[0] // self._rows)

    def emit(self, e: Emitter) -> None:
        """Write the kernel: row by row of the output."""
        x, out = e.argument(0), e.argument(1)
        rows, columns = self._sources(e)
        with e.chunk_loop(self._rows, self.shape[0] * self.size[0]) as loop:
            image, row = e.divmod(loop.index, self.size[0])
            line = e.address(out, e.mul(image, self.out_strides[0]), e.mul(row, self.out_strides[1]))
            if rows is not None:
                offsets = e.mul(image, self.x_strides[0]), e.mul(e.load_index(rows, row), self.x_strides[2])
                self._emit_row(e, e.address(x, *offsets), line, columns)
                return
            source_row = e.sub(row, self.before[0])
            inside = e.both(e.compare(">=", source_row, 0), e.compare("<", source_row, self.shape[2]))
            with e.when(inside):
                offsets = e.mul(image, self.x_strides[0]), e.mul(source_row, self.x_strides[2])
                self._emit_row(e, e.address(x, *offsets), line, columns)
            with e.when(e.builder.not_(inside)):
                self._fill(e, line, 0, self.size[1])

    def _sources(self, e: Emitter) -> tuple[IRValue | None, IRValue | None]:
        """Bring along which row and which column of the input each one of the output copies; None where a constant."""
        if self.mode == "constant":
            return None, None
        rows, columns = (
            source_positions(have, before, want - have - before, self.mode)
            for have, before, want in zip(self.shape[2:], self.before, self.size, strict=True)
        )
        return e.table(rows.tolist()), e.table(columns.tolist())

    def _emit_row(self, e: Emitter, x: IRValue, out: IRValue, columns: IRValue | None) -> None:
        """Write a row that has a part of the input in it."""
        left = self.before[1]
        start = min(max(left, 0), self.size[1])
        stop = max(start, min(left + self.shape[3], self.size[1]))
        self._margin(e, x, out, (0, start), columns)
        if start < stop:
            source = e.address(x, (start - left) * self.x_strides[3])
            self._copy(e, source, e.address(out, start * self.out_strides[2]), stop - start)
        self._margin(e, x, out, (stop, self.size[1]), columns)

    def _margin(
        self, e: Emitter, x: IRValue, out: IRValue, span: tuple[int, int], columns: IRValue | None
    ) -> None:
        """Write the pixels of a row from one on up to another, none of them in their own place in the input."""
        if columns is None:
            self._fill(e, out, *span)
            return
        with e.loop(*span) as loop:
            source = e.address(x, e.mul(e.load_index(columns, loop.index), self.x_strides[3]))
            self._copy(e, source, e.address(out, e.mul(loop.index, self.out_strides[2])), 1)

    def _fill(self, e: Emitter, out: IRValue, start: int, stop: int) -> None:
        """Write a margin."""
        lines, length = self._lines(stop - start, self.out_strides[2])
        with e.loop(start, start + lines) as loop:
            line = e.address(out, e.mul(loop.index, self.out_strides[2]))
            emit_row(e, lambda _: e.splat(self.value.value), [], line, length)

    def _copy(self, e: Emitter, x: IRValue, out: IRValue, pixels: int) -> None:
        """Write the pixels of a row's inner part."""
        _, channel_step, _, step = self.x_strides
        source, target = Pointer(x, step, channel_step), Pointer(out, self.out_strides[2], 1)
        if channel_step != 1 and step == 1:
            self._transpose(e, source, target, pixels)
            return
        lines, length = pixels, self.shape[1]
        if channel_step == 1 and step == self.out_strides[2]:
            lines, length = self._lines(pixels, step)
        with e.loop(0, lines) as loop:
            line, to = moved(e, source, loop.index, 0), moved(e, target, loop.index, 0)
            if channel_step == 1:
                emit_row(e, lambda values: values[0], [line], to.base, length)
            else:
                emit_scalar_row(e, lambda values: values[0], [line], to, 0, length)

    def _transpose(self, e: Emitter, source: Pointer, target: Pointer, pixels: int) -> None:
        """Copy pixels whose channels lie apart, by squares of pixels x channels."""
        for channel, length in e.each_vector(self.shape[1]):
            for pixel, count in e.each_vector(pixels):
                pointers = [moved(e, pointer, pixel, channel) for pointer in (source, target)]
                emit_square(e, lambda values: values[0], pointers[:1], pointers[1], count, length)

    def _lines(self, pixels: int, step: int) -> tuple[int, int]:
        """Return pixels as lines and their length: one line where the pixels lie end to end."""
        channels = self.shape[1]
        return (int(pixels > 0), pixels * channels) if step == channels else (pixels, channels)
