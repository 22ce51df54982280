"""Direct convolution, any kernel, stride, dilation and groups; with one pixel a row it is a matrix product.

Arguments: input, weights, bias, output, the epilogue's operands, then scratch memory where it is staged. Channels of
input and output are contiguous. Weights are packed by `pack`:
[group][block of filters][kernel row][kernel column][channel][filter of the block].

The input has its padding around it, or is staged: then each chunk first copies the rows that it needs into scratch
memory, with zeros around them. That costs little, since the rows have to come into the cache in any case.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from engine.compiler.contraction.convolution_chunk import Block, Chunk, ChunkSize, Source
from engine.compiler.contraction.epilogue import NOTHING, Epilogue, Place, finish
from engine.compiler.contraction.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.contraction.tile import (
    LINE,
    Axis,
    FloatProducts,
    Prefetch,
    Products,
    Tile,
    emit_tile,
    merged,
    steps_of,
)
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.memory.alignment import aligned_zeros
from engine.compiler.memory.region import Region, line
from engine.dtypes import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectConvolution:
    """A convolution of one exact shape.

    Attributes:
        shape: shape of the convolution.
        strides: elements between images, rows and pixels of input and output.
        tile: register tile.
        chunk: work of one chunk.
        lanes: float32 lanes of a vector.
        epilogue: operations on the results.
        padding: zeros that are added while rows are staged in scratch memory; None where the padding is in memory.
        prefetches_weights: whether the next block's weights are prefetched while one block is multiplied.
    """

    shape: ConvShape
    strides: ImageStrides
    tile: Tile
    chunk: ChunkSize
    lanes: int
    epilogue: Epilogue = NOTHING
    padding: ImplicitPadding | None = None
    prefetches_weights: bool = False

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments; of an unstaged input with its padding, which is in memory."""
        shape = self.shape
        x_size = shape.padded_size if self.padding is None else self.padding.x_size
        x, out = shape.regions(x_size, self.strides)
        operands = self.epilogue.regions(shape.images, shape.size, shape.out_channels)
        return x, *map(line, self.packed_sizes), out, *operands

    @property
    def packed_sizes(self) -> tuple[int, int]:
        """Elements of packed weights and bias."""
        starts = self.shape.groups * self.group_blocks * self.width
        return starts * self.shape.taps * self.shape.channels, starts

    @property
    def scratch(self) -> int:
        """Elements of the rows of one chunk, where they are staged."""
        if self.padding is None:
            return 0
        rows, columns = self._staged_size
        return rows * columns * self.shape.in_channels

    @property
    def _staged_size(self) -> tuple[int, int]:
        """Rows and columns of input that a chunk's rows of output need."""
        return self.shape.rows_under(self.chunk.rows), self.shape.padded_size[1]

    @property
    def width(self) -> int:
        """Filters of a block."""
        return self.tile.vectors * self.lanes

    @property
    def group_blocks(self) -> int:
        """Blocks of filters in a group, the last one perhaps not full."""
        return -(-self.shape.filters // self.width)

    @property
    def _parts(self) -> tuple[int, int, int, int]:
        """Parts that blocks, images, rows and tiles of a row are split into."""
        tiles = -(-self.shape.size[1] // self.tile.pixels)
        blocks = self.shape.groups * self.group_blocks
        return (
            -(-blocks // self.chunk.blocks),
            self.shape.images,
            -(-self.shape.size[0] // self.chunk.rows),
            -(-tiles // self.chunk.tiles),
        )

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return prod(self._parts)

    def emit(self, e: Emitter) -> None:
        """Write the kernel: the loop over a chunk's blocks of filters."""
        x, *arguments = (e.argument(place) for place in range(4 + len(self.epilogue.operands)))
        part = e.unravel(e.chunk, self._grid(e))
        first_block = e.mul(part[0], self.chunk.blocks)
        last_block = e.minimum(e.add(first_block, self.chunk.blocks), self.shape.groups * self.group_blocks)
        chunk = self._chunk(e, arguments, self._source(e, x, part), part)
        last = self._lanes_in_use(self.group_blocks - 1)
        with e.loop(first_block, last_block) as loop:
            group, place = e.divmod(loop.index, self.group_blocks)
            if self.group_blocks == 1 or self.shape.filters % self.width == 0:
                self._emit_block(e, chunk, Block(group, place, last))
                return
            is_last = e.compare("==", place, self.group_blocks - 1)
            with e.when(is_last):
                self._emit_block(e, chunk, Block(group, place, last))
            with e.when(e.builder.not_(is_last)):
                self._emit_block(e, chunk, Block(group, place, [self.lanes] * self.tile.vectors))

    def _grid(self, e: Emitter) -> Sequence[IRIndex]:
        """Return the parts of the work as the code knows them."""
        del e
        return self._parts

    def _chunk(self, e: Emitter, arguments: list[IRValue], source: Source, part: list[IRIndex]) -> Chunk:
        first_row = e.mul(part[2], self.chunk.rows)
        last_row = e.minimum(e.add(first_row, self.chunk.rows), self.shape.size[0])
        full, rest = divmod(self.shape.size[1], self.tile.pixels)
        first_tile = e.mul(part[3], self.chunk.tiles)
        end = e.add(first_tile, self.chunk.tiles)
        has_rest = e.compare(">", end, full) if rest else None
        tiles = (first_tile, e.minimum(end, full))
        return Chunk(
            arguments=arguments,
            source=source,
            image=part[1],
            rows=(first_row, last_row),
            tiles=tiles,
            has_rest=has_rest,
        )

    def _source(self, e: Emitter, x: IRValue, part: list[IRIndex]) -> Source:
        """Return where the chunk reads its input; stages it where it has to be."""
        first_row = e.mul(part[2], self.chunk.rows)
        if self.padding is None:
            return Source(e.address(x, e.mul(part[1], self.strides.x[0])), self.strides.x, 0)
        scratch = e.address(e.argument(4 + len(self.epilogue.operands)), e.mul(e.thread, self.scratch))
        rows, columns = self._staged_size
        depth = self.shape.in_channels
        image = e.address(x, e.mul(part[1], self.strides.x[0]))
        top = e.sub(e.mul(first_row, self.shape.stride[0]), self.padding.before[0])
        with e.loop(0, rows) as loop:
            row = e.add(top, loop.index)
            target = e.address(scratch, e.mul(loop.index, columns * depth))
            inside = e.both(e.compare(">=", row, 0), e.compare("<", row, self.padding.x_size[0]))
            with e.when(inside):
                self._stage_row(e, e.address(image, e.mul(row, self.strides.x[1])), target, columns)
            with e.when(e.builder.not_(inside)):
                self._fill(e, target, 0, columns * depth)
        return Source(scratch, (0, columns * depth, depth), first_row)

    def _stage_row(self, e: Emitter, source: IRValue, target: IRValue, columns: int) -> None:
        """Copy a row of input, with zeros on its left and right."""
        padding, depth = self.padding, self.shape.in_channels
        if padding is None:
            return
        # where the stride leaves pixels out, a row may end before its padding does
        left = min(padding.before[1], columns)
        there = min(padding.x_size[1], columns - left)
        self._fill(e, target, 0, left * depth)
        if self.strides.x[2] == depth:
            e.copy(source, e.address(target, left * depth), there * depth)
        else:
            with e.loop(0, there) as pixel:
                to = e.address(target, e.mul(e.add(pixel.index, left), depth))
                e.copy(e.address(source, e.mul(pixel.index, self.strides.x[2])), to, depth)
        self._fill(e, target, (left + there) * depth, columns * depth)

    def _fill(self, e: Emitter, target: IRValue, start: int, stop: int) -> None:
        """Write what lies around the input."""
        e.fill(target, start, stop)

    def _lanes_in_use(self, block: int) -> list[int]:
        """Return how many lanes of each vector of a block hold filters."""
        left = self.shape.filters - block * self.width
        starts = range(0, self.width, self.lanes)
        return [max(0, min(self.lanes, left - start)) for start in starts]

    def _emit_block(self, e: Emitter, chunk: Chunk, block: Block) -> None:
        """Write the loops over rows and tiles, for one block of filters."""
        full, rest = divmod(self.shape.size[1], self.tile.pixels)
        with e.loop(*chunk.rows) as row:
            with e.loop(*chunk.tiles) as tiles:
                pixel = e.mul(tiles.index, self.tile.pixels)
                self._emit_tile(e, chunk, block, (row.index, pixel), self.tile.pixels)
            if chunk.has_rest is not None:
                with e.when(chunk.has_rest):
                    self._emit_tile(e, chunk, block, (row.index, full * self.tile.pixels), rest)

    def _emit_tile(
        self, e: Emitter, chunk: Chunk, block: Block, at: tuple[IRIndex, IRIndex], pixels: int
    ) -> None:
        """Write one tile: the reduction, and its results through the epilogue into the output."""
        w, bias, out, *operands = chunk.arguments
        row, pixel = at
        tile = Tile(pixels, sum(count > 0 for count in block.lanes))
        place = e.add(e.mul(block.group, self.group_blocks), block.place)
        weights = e.address(w, e.mul(place, self.shape.taps * self.shape.channels * self.width))
        start = self._starts(e, e.address(bias, e.mul(place, self.width)), tile.vectors)
        strides = chunk.source.strides
        x = e.address(
            chunk.source.base,
            e.mul(e.sub(row, chunk.source.first_row), self.shape.stride[0] * strides[1]),
            e.mul(pixel, self.shape.stride[1] * strides[2]),
            e.mul(block.group, self.shape.channels),
        )
        axes, step = self._axes(strides), self.shape.stride[1] * strides[2]
        prefetch = (
            self._prefetch(e, weights, axes, at)
            if self.prefetches_weights and pixels == self.tile.pixels
            else None
        )
        sums = emit_tile(e, tile, axes, x, step, weights, start * pixels, prefetch, self._products(e))
        sums = self._results(e, e.address(bias, e.mul(place, self.width)), sums, tile.vectors)
        channel = e.add(e.mul(block.group, self.shape.filters), e.mul(block.place, self.width))
        for index, value in enumerate(sums):
            p, v = divmod(index, tile.vectors)
            to = Place(chunk.image, row, e.add(pixel, p), e.add(channel, v * e.lanes))
            result = finish(e, self.epilogue, value, operands, to, block.lanes[v])
            self._store(e, result, out, to, block.lanes[v])

    def _products(self, e: Emitter) -> Products:
        """Return how elements are multiplied."""
        del e
        return FloatProducts()

    def _starts(self, e: Emitter, bias: IRValue, vectors: int) -> list[IRValue]:
        """Return what the sums of a block's vectors start with."""
        return [e.load(bias, v * e.lanes) for v in range(vectors)]

    def _results(self, e: Emitter, bias: IRValue, sums: list[IRValue], vectors: int) -> list[IRValue]:
        """Return the dequantized float32 results of sums."""
        del e, bias, vectors
        return sums

    def _store(self, e: Emitter, result: IRValue, out: IRValue, to: Place, count: int) -> None:
        """Store the result at a place."""
        steps = zip((to.image, to.row, to.pixel), self.strides.out, strict=True)
        e.store(result, out, *(e.mul(i, step) for i, step in steps), to.channel, count=count)

    def _prefetch(
        self, e: Emitter, weights: IRValue, axes: tuple[Axis, ...], at: tuple[IRIndex, IRIndex]
    ) -> Prefetch:
        """Return the part of the next block's weights that the tile at a place prefetches."""
        size = self.shape.taps * self.shape.channels * self.width
        tiles = max(1, min(self.chunk.tiles, self.shape.size[1] // self.tile.pixels))
        lines = -(-size // (LINE * tiles * steps_of(axes)))
        place = e.divmod(e.divmod(at[1], self.tile.pixels)[0], tiles)[1]
        return Prefetch(e.address(weights, size, e.mul(place, lines * LINE * steps_of(axes))), lines)

    def _axes(self, strides: tuple[int, int, int]) -> tuple[Axis, ...]:
        rows, columns = self.shape.kernel
        return merged(
            (
                Axis(rows, self.shape.dilation[0] * strides[1], columns * self.shape.channels * self.width),
                Axis(columns, self.shape.dilation[1] * strides[2], self.shape.channels * self.width),
                Axis(self.shape.channels, 1, self.width),
            )
        )

    @property
    def layout(self) -> tuple[object, ...]:
        """The layout of packed weights."""
        return (self.shape.groups, self.width)

    def pack(self, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        """Pack weights (filters of all groups, channels of one, rows, columns) and bias; absent filters are 0."""
        weights = weight.reshape(
            self.shape.groups, self.shape.filters, self.shape.channels, *self.shape.kernel
        )
        packed = aligned_zeros(
            (self.shape.groups, self.group_blocks, *self.shape.kernel, self.shape.channels, self.width)
        )
        starts = aligned_zeros((self.shape.groups, self.group_blocks * self.width))
        for group in range(self.shape.groups):
            for block in range(self.group_blocks):
                filters = weights[group, block * self.width : (block + 1) * self.width]
                packed[group, block, ..., : len(filters)] = filters.transpose(2, 3, 1, 0)
        if bias is not None:
            starts[:, : self.shape.filters] = bias.reshape(self.shape.groups, self.shape.filters)
        return packed, starts
