"""Transposed convolution, any kernel, stride, padding, dilation and groups, as a gather.

Arguments: input, weights, bias, output, then the epilogue's operands. The input is padded already, by
`TransposedAxis.halo`; channels of input and output are contiguous. Weights are packed by `pack`:
[group][block of filters][kernel row][kernel column][channel][filter of the block].

An output position meets only every stride-th tap of the kernel, and which ones depends on its phase: its place modulo
the stride. Pixels of a row that share a phase share the taps and read neighbours of the input, so that they make a
register tile, whose reduction goes over the phase's taps and the channels. A 2x2 kernel of stride 2 has one tap per
phase: four matrix products.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

from engine.compiler.contraction.arithmetic import FLOAT32, FilterPacking
from engine.compiler.contraction.epilogue import NOTHING, Epilogue, Output, Place
from engine.compiler.contraction.shapes import ImageStrides
from engine.compiler.contraction.tile import (
    MANY_ROWS,
    Axis,
    Tile,
    choose_tile,
    each_block,
    each_tile,
    emit_tile,
)
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.runtime_sizes import RuntimeSizes, Sized, Sizes
from engine.compiler.emit.target import Target
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.kernels.transposed_geometry import Taps, TransposedShape, taps_of
from engine.compiler.memory.region import Region, line, pixels
from engine.dtypes import Array

_CHUNK = 1 << 19
"""Minimum multiplications of a chunk: about 10 microseconds."""
_MAX_CHUNKS = 32
_NEAR_CACHE = 1 << 17
"""Weights of a group from which on a chunk keeps to few blocks, so that all its rows find them in the cache."""


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of filters that is being written.

    Attributes:
        number: its number, over all groups.
        group: its group.
        channel: its first output channel.
        filters: how many it has.
    """

    number: IRIndex
    group: IRIndex
    channel: IRIndex
    filters: int


@dataclass(frozen=True, slots=True)
class _Pixels:
    """A tile's pixels, of one phase: where the first one lies in its row, and how many they are."""

    start: IRIndex
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransposedConvolutionKernel(Sized):
    """A transposed convolution of one exact shape, or of images of any number and size.

    Attributes:
        shape: shape of the convolution.
        halo: rows above and columns on the left that the input is padded by.
        strides: elements between images, rows and pixels of the padded input and output.
        tile: register tile.
        rows: rows of one chunk, counted over all images.
        blocks: blocks of filters in one chunk; a block is as wide as the tile.
        lanes: float32 lanes of a vector.
        epilogue: operations on the results.
        is_dynamic: whether images, rows and columns are runtime dimensions.
    """

    shape: TransposedShape
    halo: tuple[int, int]
    strides: ImageStrides
    tile: Tile
    rows: int
    blocks: int
    lanes: int
    epilogue: Epilogue = NOTHING
    is_dynamic: bool = False

    def sized(self, sizes: Sizes) -> Self:
        """Return the kernel with what stands for its runtime dimensions."""
        if not self.is_dynamic:
            return self
        size = (sizes.extent(self.shape.size[0]), sizes.extent(self.shape.size[1]))
        return replace(
            self,
            shape=replace(self.shape, images=sizes.extent(self.shape.images), size=size),
            strides=self.strides.sized(sizes),
            rows=sizes.extent(self.rows),
            blocks=sizes.extent(self.blocks),
            epilogue=self.epilogue.sized(sizes),
        )

    @classmethod
    def tuned(
        cls,
        target: Target,
        *,
        shape: TransposedShape,
        halo: tuple[int, int],
        strides: ImageStrides,
        epilogue: Epilogue = NOTHING,
        is_dynamic: bool = False,
    ) -> "TransposedConvolutionKernel":
        """Return the kernel with tile and chunks chosen for a target."""
        vectors = -(-shape.filters // target.lanes)
        of_phase = MANY_ROWS if is_dynamic else -(-shape.size[1] // shape.axes[1].stride)
        tile = choose_tile(target, of_phase, vectors)
        taps = math.prod(-(-axis.kernel // axis.tap_step) for axis in shape.axes)
        all_rows, all_blocks = shape.images * shape.size[0], shape.groups * -(-vectors // tile.vectors)
        work = all_rows * shape.size[1] * taps * shape.channels * shape.out_channels
        wanted = min(_MAX_CHUNKS, max(1, work // _CHUNK))
        many_weights = shape.taps * shape.channels * shape.filters > _NEAR_CACHE
        block_parts = min(all_blocks, wanted if many_weights else -(-wanted // all_rows))
        row_parts = min(all_rows, -(-wanted // block_parts))
        return cls(
            shape=shape,
            halo=halo,
            strides=strides,
            tile=tile,
            rows=-(-all_rows // row_parts),
            blocks=-(-all_blocks // block_parts),
            lanes=target.lanes,
            epilogue=epilogue,
            is_dynamic=is_dynamic,
        )

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments; of the input with its padding, which is in memory."""
        shape = self.shape
        rows, columns = (
            axis.reach(size)[1] + 1 + halo
            for axis, size, halo in zip(shape.axes, shape.size, self.halo, strict=True)
        )
        x = pixels(shape.images, (rows, columns), shape.channels * shape.groups, self.strides.x)
        out = pixels(shape.images, shape.size, shape.out_channels, self.strides.out, is_written=True)
        operands = self.epilogue.regions(shape.images, shape.size, shape.out_channels)
        return x, *map(line, self.packed_sizes), out, *operands

    @property
    def _packing(self) -> FilterPacking:
        """How weights are packed, once their filters come first."""
        return FilterPacking(
            arithmetic=FLOAT32,
            groups=self.shape.groups,
            filters=self.shape.filters,
            words=self.shape.channels,
            kernel=(self.shape.axes[0].kernel, self.shape.axes[1].kernel),
            width=self._width,
        )

    @property
    def packed_sizes(self) -> tuple[int, int]:
        """Elements of packed weights and bias."""
        return self._packing.packed_sizes

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return -(-self._blocks // self.blocks) * -(-self.shape.images * self.shape.size[0] // self.rows)

    @property
    def layout(self) -> tuple[object, ...]:
        """The layout of packed weights."""
        return self._packing.layout

    def pack(self, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        """Pack weights (channels of all groups, filters of one, rows, columns) and bias; absent filters are 0."""
        grouped = weight.reshape(self.shape.groups, self.shape.channels, *weight.shape[1:])
        filters = grouped.swapaxes(1, 2).reshape(-1, self.shape.channels, *weight.shape[2:])
        return self._packing.pack(filters, bias)

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""
        count = 4 + len(self.epilogue.operands)
        self.sized(RuntimeSizes(e, count))._emit(e, [e.argument(place) for place in range(count)])

    def _emit(self, e: Emitter, arrays: list[IRValue]) -> None:
        all_rows = e.mul(self.shape.images, self.shape.size[0])
        parts = e.ceil_divide(self._blocks, self.blocks), e.ceil_divide(all_rows, self.rows)
        block_part, row_part = e.unravel(e.chunk, parts)
        first_row = e.mul(row_part, self.rows)
        last_row = e.minimum(e.add(first_row, self.rows), all_rows)
        for block in self._each_block(e, block_part):
            with e.loop(first_row, last_row) as loop:
                image, row = e.divmod(loop.index, self.shape.size[0])
                taps = taps_of(e, self.shape.axes[0], row)
                for pixels in self._each_tile(e):
                    self._emit_tile(e, arrays, block, (image, row, taps), pixels)

    @property
    def _width(self) -> int:
        """Filters of a block."""
        return self.tile.vectors * self.lanes

    @property
    def _blocks(self) -> int:
        """Blocks of filters of all groups."""
        return self.shape.groups * self._packing.blocks

    def _each_block(self, e: Emitter, part: IRIndex) -> Iterator[_Block]:
        """Write the loop over a chunk's blocks; full ones and those at the end of a group are written apart."""
        first, blocks = e.mul(part, self.blocks), self._packing.blocks
        with e.loop(first, e.minimum(e.add(first, self.blocks), self._blocks)) as loop:
            group, place = e.divmod(loop.index, blocks)
            channel = e.add(e.mul(group, self.shape.filters), e.mul(place, self._width))
            for filters in each_block(e, place, self.shape.filters, self._width):
                yield _Block(loop.index, group, channel, filters)

    def _each_tile(self, e: Emitter) -> Iterator[_Pixels]:
        """Write the loops over phases and their tiles: phases that have one pixel more than others come first."""
        stride = self.shape.axes[1].stride
        if self.is_dynamic:
            with e.loop(0, e.minimum(stride, self.shape.size[1])) as phase:
                count = e.ceil_divide(e.sub(self.shape.size[1], phase.index), stride)
                for first, height in each_tile(e, (0, count), count, self.tile.pixels):
                    yield _Pixels(e.add(phase.index, e.mul(first, stride)), height)
            return
        fewer, longer_phases = divmod(self.shape.size[1], stride)
        for phases, count in (((0, longer_phases), fewer + 1), ((longer_phases, stride), fewer)):
            full, rest = divmod(count, self.tile.pixels)
            if phases[0] == phases[1] or not count:
                continue
            with e.loop(*phases) as phase:
                if full:
                    with e.loop(0, full * self.tile.pixels, self.tile.pixels) as tile:
                        yield _Pixels(e.add(phase.index, e.mul(tile.index, stride)), self.tile.pixels)
                if rest:
                    yield _Pixels(e.add(phase.index, full * self.tile.pixels * stride), rest)

    def _emit_tile(
        self,
        e: Emitter,
        arrays: list[IRValue],
        block: _Block,
        at: tuple[IRIndex, IRIndex, Taps],
        pixels: _Pixels,
    ) -> None:
        """Write a tile: bias, the reduction over the taps that it meets, and the epilogue."""
        x, weights, bias, out, *operands = arrays
        image, row, _ = at
        vectors = -(-block.filters // self.lanes)
        start = FLOAT32.load_sums(e, e.address(bias, e.mul(block.number, self._width)), vectors)
        sums = self._reduce(e, (x, weights), block, at, pixels, start)
        output = Output(out, self.strides.out, self.epilogue, operands)
        for pixel in range(pixels.count):
            column = e.add(pixels.start, pixel * self.shape.axes[1].stride)
            place = Place(image, row, column, block.channel)
            output.store(e, sums[pixel * vectors : (pixel + 1) * vectors], place, block.filters)

    def _reduce(
        self,
        e: Emitter,
        arrays: tuple[IRValue, IRValue],
        block: _Block,
        at: tuple[IRIndex, IRIndex, Taps],
        pixels: _Pixels,
        start: list[IRValue],
    ) -> list[IRValue]:
        """Write the loops over a tile's kernel rows and columns, and the channels; returns the sums."""
        image, _, rows = at
        tile = Tile(pixels.count, len(start))
        columns = taps_of(e, self.shape.axes[1], pixels.start)
        matrix = self.shape.channels * self._width
        line = self.shape.axes[1].kernel * matrix
        origin = e.address(
            arrays[0], e.mul(image, self.strides.x[0]), e.mul(block.group, self.shape.channels)
        )
        filters = e.address(arrays[1], e.mul(block.number, self.shape.axes[0].kernel * line))
        with e.loop(0, rows.count, carry=start * pixels.count) as down:
            x_row, w_row = self._meet(e, (origin, filters), rows, down.index, 0, line)
            with e.loop(0, columns.count, carry=down.carried) as across:
                here, w = self._meet(e, (x_row, w_row), columns, across.index, 1, matrix)
                axes = (Axis(self.shape.channels, 1, self._width),)
                across.following = emit_tile(e, tile, axes, here, self.strides.x[2], w, across.carried)
            down.following = across.results
        return down.results

    def _meet(
        self, e: Emitter, bases: tuple[IRValue, IRValue], taps: Taps, number: IRIndex, axis: int, w_step: int
    ) -> tuple[IRValue, IRValue]:
        """Return the addresses of input and weights at one of the taps of an axis, by number."""
        geometry = self.shape.axes[axis]
        place = e.sub(e.add(taps.source, self.halo[axis]), e.mul(number, geometry.input_step))
        tap = e.add(taps.first, e.mul(number, geometry.tap_step))
        return e.address(bases[0], e.mul(place, self.strides.x[1 + axis])), e.address(
            bases[1], e.mul(tap, w_step)
        )
