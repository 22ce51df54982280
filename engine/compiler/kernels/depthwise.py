"""Depthwise convolution: one filter per channel, or small groups of channels with as many filters.

Any kernel, stride, dilation and zero padding. Arguments: input, weights, bias, output, then the epilogue's operands.
Channels of input and output are contiguous. Weights and bias are packed by `pack`: [kernel row][channel of a group]
[kernel column][filter], filters filled up to whole vectors. A vector has whole groups: one shuffle brings the number of
a channel to all filters of its group.

8-bit integers, four channels to an element, are multiplied and summed as float32, which is exact: a sum of at most
`MAX_TAPS` products stays below 2**24. Their "bias" holds two numbers for each channel: the scale of its sum, and the
bias itself.

The sums of a tile, several pixels of a row for one vector of channels, stay in registers, and each number of the
input is loaded once per kernel row. The padding isn't in memory: kernel rows are clipped by the loop over them; tiles
at the ends of a row are written one by one, without the multiplications that would fall outside, and those between as
a loop.

There are two orders. Where input and output fit the cache near the core, a vector of channels goes down all rows
first, which keeps the few rows that it needs in the nearest cache. Where they don't, tiles go over their vectors first
(`along_memory`), so that memory is read in the order it lies in, as prefetchers like it: twice as fast on 96 channels
of 112 x 112.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Self

import numpy as np

from engine.compiler.contraction.epilogue import NOTHING, Epilogue, Output, Place
from engine.compiler.contraction.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.contraction.split import even_size
from engine.compiler.contraction.tile import MANY_ROWS, each_tile
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.int8 import WORD_CHANNELS, load_steps
from engine.compiler.emit.runtime_sizes import RuntimeSizes, Sized, Sizes
from engine.compiler.emit.target import Target
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.memory.region import Region, line
from engine.dtypes import Array
from engine.quantization.tensor_scale import TensorScale

_LONGEST_TILE = 8
"""Pixels: eight sums hide the latency of an fma on two units; longer tiles only make more code."""
_NEAR_CACHE = 1 << 18
"""Elements of an image's input and output from which on the order of memory is the faster one."""
_CHUNK = 1 << 16
"""Minimum multiply-adds of a chunk: one or two microseconds."""
_CHUNKS_OF_THREAD = 2
"""Chunks of a thread: who is done first takes over one of another's."""
_ROWS_OF_THREAD = 4
"""Rows of a thread from which on threads share rows: fewer cannot be divided evenly."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of output that is being written.

    Attributes:
        image: its image.
        index: its place in the image.
        taps: first kernel row that falls inside the input, and the end of them.
    """

    image: IRIndex
    index: IRIndex
    taps: tuple[IRIndex, IRIndex]


@dataclass(frozen=True, slots=True)
class _Pixels:
    """A tile's part of a row: its first pixel and how many they are."""

    start: IRIndex
    count: int


@dataclass(frozen=True, slots=True)
class _Channels:
    """A vector of channels: its first one and how many they are."""

    start: IRIndex
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Depthwise(Sized):
    """A depthwise convolution of one exact shape, or of images of any number and size.

    Attributes:
        shape: shape of the convolution; a group has as many filters as channels, a part of a vector.
        padding: zeros around the input.
        strides: elements between images, rows and pixels of input and output.
        pixels: pixels of a tile.
        rows: rows of one chunk, counted over all images.
        vectors: vectors of channels in one chunk.
        along_memory: which loop is innermost; see above.
        lanes: channels of a vector.
        epilogue: operations on the results.
        is_dynamic: whether images, rows and pixels of a row are runtime dimensions; the padding is in memory then.
        x_scale: scale of the input, where that holds 8-bit integers; None for float32.
        out_scale: the same of the output.
    """

    shape: ConvShape
    padding: ImplicitPadding
    strides: ImageStrides
    pixels: int
    rows: int
    vectors: int
    along_memory: bool
    lanes: int
    epilogue: Epilogue = NOTHING
    x_scale: TensorScale | None = None
    out_scale: TensorScale | None = None
    is_dynamic: bool = False

    def sized(self, sizes: Sizes) -> Self:
        """Return the kernel with what stands for its runtime dimensions."""
        if not self.is_dynamic:
            return self
        return replace(
            self,
            shape=self.shape.sized(sizes),
            padding=self.padding.sized(sizes),
            strides=self.strides.sized(sizes),
            rows=sizes.extent(self.rows),
            epilogue=self.epilogue.sized(sizes),
        )

    @classmethod
    def tuned(
        cls,
        target: Target,
        *,
        shape: ConvShape,
        padding: ImplicitPadding,
        strides: ImageStrides,
        threads: int = 1,
        epilogue: Epilogue = NOTHING,
        is_dynamic: bool = False,
        x_scale: TensorScale | None = None,
        out_scale: TensorScale | None = None,
    ) -> "Depthwise":
        """Return the kernel with tile, order of loops and chunks chosen for a target and so many threads.

        Threads share the rows, as they do in the convolutions around it, or the channels where rows are few.
        """
        channels = shape.in_channels
        work = channels * (prod(padding.x_size) + prod(shape.size))
        chunks = shape.images * channels * prod(shape.size) * shape.taps * shape.channels // _CHUNK
        wanted = max(1, min(_CHUNKS_OF_THREAD * threads, chunks)) if threads > 1 else 1
        wanted -= wanted % threads if wanted > threads else 0
        all_vectors, all_rows = -(-channels // target.lanes), shape.images * shape.size[0]
        along_memory = is_dynamic or work > _NEAR_CACHE
        has_rows = along_memory or all_rows >= _ROWS_OF_THREAD * threads
        vector_parts = 1 if has_rows else min(wanted, all_vectors)
        row_parts = min(all_rows, -(-wanted // vector_parts))
        return cls(
            shape=shape,
            padding=padding,
            strides=strides,
            pixels=_tile_pixels(target, MANY_ROWS if is_dynamic else shape.size[1], shape.kernel[1]),
            rows=even_size(all_rows, 1, row_parts, 1 if vector_parts == 1 else row_parts, threads),
            vectors=-(-all_vectors // vector_parts),
            along_memory=along_memory,
            lanes=target.lanes,
            epilogue=epilogue,
            is_dynamic=is_dynamic,
            x_scale=x_scale,
            out_scale=out_scale,
        )

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        shape = self.shape
        x, out = shape.regions(
            self.padding.x_size,
            self.strides,
            has_int8_input=self.x_scale is not None,
            has_int8_results=self.out_scale is not None,
        )
        operands = self.epilogue.regions(shape.images, shape.size, shape.out_channels)
        return x, *map(line, self.packed_sizes), out, *operands

    @property
    def packed_sizes(self) -> tuple[int, int]:
        """Elements of packed weights and bias."""
        starts = self._packed_channels if self.x_scale is None else 2 * self._packed_channels
        return self.shape.taps * self.shape.channels * self._packed_channels, starts

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return prod(self._parts)

    @property
    def _parts(self) -> tuple[int, int]:
        """Parts that rows and vectors are split into."""
        all_rows = self.shape.images * self.shape.size[0]
        return -(-all_rows // self.rows), -(-self._whole_vectors // self.vectors)

    @property
    def layout(self) -> tuple[object, ...]:
        """The layout of packed weights."""
        return self.lanes, self.x_scale is not None

    def pack(self, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        """Pack weights (filters, channels of a group, rows, columns) and bias; absent filters are 0.

        Args:
            weight: float32 or int8.
            bias: (filters); of integers (2, filters), the scale of the sum, and the bias.

        Raises:
            ValueError: integers come without scales.
        """
        if self.x_scale is not None and bias is None:
            raise ValueError("integers without scales; expected the scale of each sum")
        rows, columns = self.shape.kernel
        weights = np.zeros((rows, self.shape.channels, columns, self._packed_channels), np.float32)
        weights[..., : self._channels] = weight.transpose(2, 1, 3, 0)
        starts = np.zeros((1 if self.x_scale is None else 2, self._packed_channels), np.float32)
        if bias is not None:
            starts[:, : self._channels] = bias
        return weights, starts.reshape(-1)

    def emit(self, e: Emitter) -> None:
        """Write the kernel: the nest of loops over rows, tiles and vectors of channels in the order chosen."""
        count = 4 + len(self.epilogue.operands)
        self.sized(RuntimeSizes(e, count))._emit(e, [e.argument(place) for place in range(count)])

    def _emit(self, e: Emitter, arrays: list[IRValue]) -> None:
        row_parts = e.ceil_divide(self._all_rows(e), self.rows)
        row_part, vector_part = e.unravel(e.chunk, (row_parts, -(-self._whole_vectors // self.vectors)))
        if self.along_memory:
            for row in self._each_row(e, row_part):
                for pixels in self._each_tile(e):
                    for channels in self._each_vector(e, vector_part):
                        self._emit_tile(e, arrays, row, pixels, channels)
            return
        for channels in self._each_vector(e, vector_part):
            for row in self._each_row(e, row_part):
                for pixels in self._each_tile(e):
                    self._emit_tile(e, arrays, row, pixels, channels)

    @property
    def _channels(self) -> int:
        """Channels, of input and output."""
        return self.shape.in_channels

    @property
    def _whole_vectors(self) -> int:
        return -(-self._channels // self.lanes)

    @property
    def _packed_channels(self) -> int:
        return self._whole_vectors * self.lanes

    def _all_rows(self, e: Emitter) -> IRIndex:
        """Return the rows of all images."""
        return e.mul(self.shape.images, self.shape.size[0])

    def _each_vector(self, e: Emitter, part: IRIndex) -> Iterator[_Channels]:
        """Write the loop over a chunk's vectors of channels; the one that isn't full is written after it."""
        first = e.mul(part, self.vectors)
        last = e.add(first, self.vectors)
        full, rest = divmod(self._channels, self.lanes)
        if full:
            with e.loop(first, e.minimum(last, full)) as vector:
                yield _Channels(e.mul(vector.index, self.lanes), self.lanes)
        if rest:
            with e.when(e.compare(">", last, full)):
                yield _Channels(full * self.lanes, rest)

    def _each_row(self, e: Emitter, part: IRIndex) -> Iterator[_Row]:
        """Write the loop over a chunk's rows."""
        first = e.mul(part, self.rows)
        with e.loop(first, e.minimum(e.add(first, self.rows), self._all_rows(e))) as loop:
            image, row = e.divmod(loop.index, self.shape.size[0])
            yield _Row(image, row, self._taps(e, row))

    def _each_tile(self, e: Emitter) -> Iterator[_Pixels]:
        """Write the tiles of a row: those that meet the padding one by one, the others as a loop."""
        if self.is_dynamic:
            columns = self.shape.size[1]
            for first, count in each_tile(e, (0, columns), columns, self.pixels):
                yield _Pixels(first, count)
            return
        inner = self._inner_tiles()
        for start in range(0, self.shape.size[1], self.pixels):
            if start // self.pixels not in inner:
                yield _Pixels(start, min(self.pixels, self.shape.size[1] - start))
            elif start // self.pixels == inner.start:
                with e.loop(start, inner.stop * self.pixels, self.pixels) as tiles:
                    yield _Pixels(tiles.index, self.pixels)

    def _inner_tiles(self) -> range:
        """Return the tiles, by number, that are whole and need no padding."""
        reach = (self.shape.kernel[1] - 1) * self.shape.dilation[1]
        first = -(-self.padding.before[1] // self.shape.stride[1])
        last = (self.padding.x_size[1] - 1 + self.padding.before[1] - reach) // self.shape.stride[1] + 1
        return range(-(-first // self.pixels), max(0, min(last, self.shape.size[1])) // self.pixels)

    def _taps(self, e: Emitter, row: IRIndex) -> tuple[IRIndex, IRIndex]:
        """Return the first kernel row that falls inside the input, and the end of them."""
        above = e.sub(self.padding.before[0], e.mul(row, self.shape.stride[0]))
        round_up = self.shape.dilation[0] - 1
        first, _ = e.divmod(e.maximum(0, e.add(above, round_up)), self.shape.dilation[0])
        last, _ = e.divmod(
            e.maximum(0, e.add(above, self.padding.x_size[0], round_up)), self.shape.dilation[0]
        )
        return first, e.minimum(last, self.shape.kernel[0])

    def _emit_tile(
        self, e: Emitter, arrays: list[IRValue], row: _Row, pixels: _Pixels, channels: _Channels
    ) -> None:
        """Write one tile; where its start is a number, what falls into the padding is left out."""
        x, weights, bias, out, *operands = arrays
        filters = e.address(weights, channels.start)
        element = channels.start if self.x_scale is None else e.divmod(channels.start, WORD_CHANNELS)[0]
        corner = (e.mul(row.image, self.strides.x[0]), element, self._offset(e, pixels))
        source = e.address(x, *corner)
        top = e.sub(e.mul(row.index, self.shape.stride[0]), self.padding.before[0])
        start = e.load(bias, channels.start) if self.x_scale is None else e.splat(0.0)
        with e.loop(*row.taps, carry=[start] * pixels.count) as taps:
            y = e.add(top, e.mul(taps.index, self.shape.dilation[0]))
            x_row = e.address(source, e.mul(y, self.strides.x[1]))
            step = self.shape.kernel[1] * self._packed_channels
            w_row = e.address(filters, e.mul(taps.index, self.shape.channels * step))
            sums = taps.carried
            for member in range(self.shape.channels):
                w_member = e.address(w_row, member * step)
                sums = self._emit_kernel_row(e, (x_row, w_member), pixels, channels.count, sums, member)
            taps.following = sums
        output = Output(out, self.strides.out, self.epilogue, operands, self.out_scale)
        for pixel, total in enumerate(self._results(e, bias, taps.results, channels.start)):
            place = Place(row.image, row.index, e.add(pixels.start, pixel), channels.start)
            output.store(e, [total], place, channels.count)

    def _number(self, e: Emitter, x: IRValue, offset: int, count: int) -> IRValue:
        """Load a vector of channels of the input."""
        if self.x_scale is None:
            return e.load(x, offset, count=count)
        steps, zero_point = load_steps(e, x, offset, count=count), self.x_scale.zero_point
        return e.fsub(steps, e.splat(float(zero_point))) if zero_point else steps

    def _results(self, e: Emitter, bias: IRValue, sums: list[IRValue], channel: IRIndex) -> list[IRValue]:
        """Return the results of sums: of integers sum * factor + bias, each operation rounded, as `Int8Layer` does."""
        if self.x_scale is None:
            return sums
        factor, start = e.load(bias, channel), e.load(bias, channel, self._packed_channels)
        return [e.fadd(e.fmul(total, factor), start) for total in sums]

    def _offset(self, e: Emitter, pixels: _Pixels) -> IRIndex:
        """Return where a tile's first column of input lies in its row."""
        return e.mul(
            e.sub(e.mul(pixels.start, self.shape.stride[1]), self.padding.before[1]), self.strides.x[2]
        )

    def _emit_kernel_row(
        self,
        e: Emitter,
        rows: tuple[IRValue, IRValue],
        pixels: _Pixels,
        count: int,
        sums: Sequence[IRValue],
        member: int,
    ) -> list[IRValue]:
        """Write one kernel row's products with one row of input, of one channel of each group; returns the sums."""
        x_row, w_row = rows
        results = list(sums)
        weights = [e.load(w_row, tap * self._packed_channels) for tap in range(self.shape.kernel[1])]
        for column, users in self._columns(pixels.count):
            if isinstance(pixels.start, int):
                place = pixels.start * self.shape.stride[1] - self.padding.before[1] + column
                if not 0 <= place < self.padding.x_size[1]:
                    continue
            number = self._number(e, x_row, column * self.strides.x[2], count)
            if self.shape.channels > 1:
                number = e.repeated(number, self.shape.channels, member)
            for pixel, tap in users:
                results[pixel] = e.fma(number, weights[tap], results[pixel])
        return results

    def _columns(self, pixels: int) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """Return each column of input that a tile reads, from its first on, with the (pixel, tap) pairs that use it."""
        users: dict[int, list[tuple[int, int]]] = {}
        for pixel in range(pixels):
            for tap in range(self.shape.kernel[1]):
                users.setdefault(pixel * self.shape.stride[1] + tap * self.shape.dilation[1], []).append(
                    (pixel, tap)
                )
        yield from sorted(users.items())


def _tile_pixels(target: Target, columns: int, kernel: int) -> int:
    """Choose the pixels of a tile for rows of so many pixels and kernel rows of so many columns.

    The sums share the registers with a row of the kernel and one vector of input; among tiles that do,
    the one that covers the row with least remainder.
    """
    room = max(1, min(_LONGEST_TILE, columns, target.registers - kernel - 1))
    return min(
        range(room, max(1, room // 2) - 1, -1), key=lambda pixels: -(-columns // pixels) * (pixels + 1)
    )
