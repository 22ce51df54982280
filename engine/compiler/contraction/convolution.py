"""Direct convolution, any kernel, stride, dilation and groups; with one pixel a row it is a matrix product.

Arguments: input, weights, numbers of filters, output, the epilogue's operands, scratch memory where it is staged or
weights are unpacked, then the number of pixels of a row where that is a runtime dimension. Channels of input and output
are contiguous. Weights are those of `packing`.

The input has its padding around it, or is staged: then each chunk first copies the rows that it needs into scratch
memory, with zeros around them. That costs little, since the rows have to come into the cache in any case.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Self

from engine.compiler.contraction.arithmetic import FLOAT32, Arithmetic, FilterPacking
from engine.compiler.contraction.epilogue import NOTHING, Epilogue, Output, Place
from engine.compiler.contraction.int4 import Int4
from engine.compiler.contraction.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.contraction.split import ChunkSize
from engine.compiler.contraction.staging import Staging
from engine.compiler.contraction.tile import (
    LINE,
    Axis,
    Prefetch,
    Tile,
    each_block,
    each_tile,
    emit_tile,
    merged,
    steps_of,
)
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.runtime_sizes import RuntimeSizes, Sized, Sizes
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.memory.region import Region, line
from engine.quantization.tensor_scale import TensorScale

_LINES = 2
"""Cache lines of weights that each step of a tile prefetches where the number of tiles is a runtime dimension: some six
tiles bring all of the next block."""


@dataclass(frozen=True, slots=True)
class _Source:
    """Source of a chunk's tiles.

    Attributes:
        base: address of the image's or the staged rows' beginning.
        strides: elements between images, rows and pixels.
        first_row: row of output that the first staged row belongs to.
    """

    base: IRValue
    strides: tuple[int, int, int]
    first_row: IRIndex


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Operands of a call.

    Attributes:
        weights: address of the weights.
        numbers: address of the numbers of filters.
        output: where results go.
        source: where its input is.
        image: its image.
        rows: its first row and the end of them.
        pixels: its first pixel of a row and the end of them, perhaps beyond the row's.
        columns: pixels of a row.
        unpacked: scratch memory for the weights of a block, where they are unpacked.
    """

    weights: IRValue
    numbers: IRValue
    output: Output
    source: _Source
    image: IRIndex
    rows: tuple[IRIndex, IRIndex]
    pixels: tuple[IRIndex, IRIndex]
    columns: IRIndex
    unpacked: IRValue | None


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of filters.

    Attributes:
        group: its group.
        place: its place in the group.
        filters: how many it has.
    """

    group: IRIndex
    place: IRIndex
    filters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectConvolution(Sized):
    """A convolution of one exact shape, or of images of any number and size.

    Attributes:
        shape: shape of the convolution, its channels counted in words.
        strides: elements between images, rows and pixels of input and output.
        tile: register tile.
        chunk: work of one chunk.
        lanes: float32 lanes of a vector.
        arithmetic: arithmetic of the products.
        out_scale: scale of the output, where that is stored as 8-bit integers; None where it is float32.
        epilogue: operations on the results.
        padding: zeros that are added while rows are staged in scratch memory; None where the padding is in memory.
        prefetches_weights: whether the next block's weights are prefetched while one block is multiplied.
        is_dynamic: whether images, rows and pixels of a row are runtime dimensions; the padding is in memory then.
    """

    shape: ConvShape
    strides: ImageStrides
    tile: Tile
    chunk: ChunkSize
    lanes: int
    arithmetic: Arithmetic = FLOAT32
    out_scale: TensorScale | None = None
    epilogue: Epilogue = NOTHING
    padding: ImplicitPadding | None = None
    prefetches_weights: bool = False
    is_dynamic: bool = False

    def sized(self, sizes: Sizes) -> Self:
        """Return the kernel with what stands for its runtime dimensions."""
        if not self.is_dynamic:
            return self
        return replace(
            self,
            shape=self.shape.sized(sizes),
            strides=self.strides.sized(sizes),
            chunk=self.chunk.sized(sizes),
            epilogue=self.epilogue.sized(sizes),
        )

    @property
    def packing(self) -> FilterPacking:
        """How weights are packed."""
        return FilterPacking(
            arithmetic=self.arithmetic,
            groups=self.shape.groups,
            filters=self.shape.filters,
            words=self.shape.channels // self.arithmetic.input_words,
            kernel=self.shape.kernel,
            width=self._width,
        )

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments; of an unstaged input with its padding, which is in memory."""
        shape = self.shape
        x_size = shape.padded_size if self.padding is None else self.padding.x_size
        x, out = shape.regions(x_size, self.strides, has_int8_results=self.out_scale is not None)
        operands = self.epilogue.regions(shape.images, shape.size, shape.out_channels)
        return x, *map(line, self.packing.packed_sizes), out, *operands

    @property
    def scratch(self) -> int:
        """Elements of the rows of one chunk, where they are staged, or of the unpacked weights of a block."""
        if self._unpacks:
            return self.shape.channels * self._width
        if self.padding is None:
            return 0
        rows, columns = self._staged_size
        return rows * columns * self.shape.in_channels

    @property
    def _unpacks(self) -> bool:
        """Whether the weights of a block are unpacked into scratch memory, as several tiles read them."""
        is_only_tile = not self.is_dynamic and self.shape.size[1] <= self.tile.pixels
        return self.arithmetic.input_words > 1 and not is_only_tile

    @property
    def _staged_size(self) -> tuple[int, int]:
        """Rows and columns of input that a chunk's rows of output need."""
        return self.shape.rows_under(self.chunk.rows), self.shape.padded_size[1]

    @property
    def _width(self) -> int:
        """Filters of a block."""
        return self.tile.vectors * self.lanes

    @property
    def _group_blocks(self) -> int:
        """Blocks of filters in a group, the last one perhaps not full."""
        return -(-self.shape.filters // self._width)

    @property
    def _blocks(self) -> int:
        """Blocks of filters of all groups."""
        return self.shape.groups * self._group_blocks

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return prod(self._parts)

    @property
    def _parts(self) -> tuple[int, int, int, int]:
        """Parts that blocks, images, rows and the pixels of a row are split into."""
        rows, pixels = self.shape.size
        blocks = -(-self._blocks // self.chunk.blocks)
        columns = -(-pixels // (self.chunk.tiles * self.tile.pixels))
        return blocks, self.shape.images, -(-rows // self.chunk.rows), columns

    def emit(self, e: Emitter) -> None:
        """Write the kernel: the loop over a chunk's blocks of filters."""
        self.sized(RuntimeSizes(e, 4 + len(self.epilogue.operands) + self._unpacks))._emit(e)

    def _emit(self, e: Emitter) -> None:
        count = len(self.epilogue.operands)
        x, weights, numbers, out, *operands = (e.argument(place) for place in range(4 + count))
        all_rows, columns = self.shape.size
        chunk_pixels = e.mul(self.chunk.tiles, self.tile.pixels)
        parts = (
            e.ceil_divide(self._blocks, self.chunk.blocks),
            self.shape.images,
            e.ceil_divide(all_rows, self.chunk.rows),
            e.ceil_divide(columns, chunk_pixels),
        )
        blocks, image, rows, pixels = e.unravel(e.chunk, parts)
        first_block = e.mul(blocks, self.chunk.blocks)
        last_block = e.minimum(e.add(first_block, self.chunk.blocks), self._blocks)
        first_row, first_pixel = e.mul(rows, self.chunk.rows), e.mul(pixels, chunk_pixels)
        chunk = _Chunk(
            weights=weights,
            numbers=numbers,
            output=Output(out, self.strides.out, self.epilogue, operands, self.out_scale),
            source=self._source(e, e.address(x, e.mul(image, self.strides.x[0])), first_row),
            image=image,
            rows=(first_row, e.minimum(e.add(first_row, self.chunk.rows), all_rows)),
            pixels=(first_pixel, e.add(first_pixel, chunk_pixels)),
            columns=columns,
            unpacked=self._scratch(e) if self._unpacks else None,
        )
        with e.loop(first_block, last_block) as loop:
            group, place = e.divmod(loop.index, self._group_blocks)
            for filters in each_block(e, place, self.shape.filters, self._width):
                self._emit_block(e, chunk, _Block(group, place, filters))

    def _scratch(self, e: Emitter) -> IRValue:
        return e.address(e.argument(4 + len(self.epilogue.operands)), e.mul(e.thread, self.scratch))

    def _source(self, e: Emitter, image: IRValue, first_row: IRIndex) -> _Source:
        """Return where the chunk reads its input; stages it where it has to be."""
        if self.padding is None:
            return _Source(image, self.strides.x, 0)
        scratch = self._scratch(e)
        rows, columns = self._staged_size
        depth = self.shape.in_channels
        staging = Staging(
            arithmetic=self.arithmetic,
            padding=self.padding,
            strides=self.strides.x,
            channels=depth,
            rows=rows,
            columns=columns,
            words=depth,
        )
        top = e.sub(e.mul(first_row, self.shape.stride[0]), self.padding.before[0])
        staging.emit(e, image, top, scratch, rows * columns * depth)
        return _Source(scratch, (0, columns * depth, depth), first_row)

    def _emit_block(self, e: Emitter, chunk: _Chunk, block: _Block) -> None:
        """Write the loops over rows and tiles, for one block of filters."""
        if isinstance(self.arithmetic, Int4) and chunk.unpacked is not None:
            weights, numbers = self._filters(e, chunk, block)
            size = -(-block.filters // self.lanes), self._width, self.packing.count
            self.arithmetic.unpack(e, weights, numbers, size, chunk.unpacked)
        with e.loop(*chunk.rows) as row:
            for pixel, pixels in each_tile(e, chunk.pixels, chunk.columns, self.tile.pixels):
                self._emit_tile(e, chunk, block, (row.index, pixel), pixels)

    def _emit_tile(
        self, e: Emitter, chunk: _Chunk, block: _Block, at: tuple[IRIndex, IRIndex], pixels: int
    ) -> None:
        """Write one tile: the reduction, and its results through the epilogue into the output."""
        row, pixel = at
        tile = Tile(pixels, -(-block.filters // self.lanes))
        weights, numbers = self._filters(e, chunk, block)
        starts = self.arithmetic.load_sums(e, numbers, tile.vectors)
        strides = chunk.source.strides
        x = e.address(
            chunk.source.base,
            e.mul(e.sub(row, chunk.source.first_row), e.mul(self.shape.stride[0], strides[1])),
            e.mul(pixel, self.shape.stride[1] * strides[2]),
            e.mul(block.group, self.shape.channels),
        )
        axes, step = self._axes(e, strides), self.shape.stride[1] * strides[2]
        is_ahead = self.prefetches_weights and pixels == self.tile.pixels
        prefetch = self._prefetch(e, weights, axes, pixel) if is_ahead else None
        if isinstance(self.arithmetic, Int4) and chunk.unpacked is None:
            size = tile.vectors, self._width, self.packing.count
            sums = self.arithmetic.multiply(e, (x, step), weights, numbers, size, starts * pixels)
        else:
            read = weights if chunk.unpacked is None else chunk.unpacked
            sums = emit_tile(e, tile, axes, x, step, read, starts * pixels, prefetch, self.arithmetic)
        sums = self.arithmetic.results(e, sums, numbers, (tile.vectors, self.packing.count))
        channel = e.add(e.mul(block.group, self.shape.filters), e.mul(block.place, self._width))
        chunk.output.store_pixels(e, sums, Place(chunk.image, row, pixel, channel), block.filters)

    def _filters(self, e: Emitter, chunk: _Chunk, block: _Block) -> tuple[IRValue, IRValue]:
        """Return the addresses of a block's weights and of the first number of its filters."""
        place = e.add(e.mul(block.group, self._group_blocks), block.place)
        weights = e.address(chunk.weights, e.mul(place, self.packing.block_words))
        return weights, e.address(chunk.numbers, e.mul(place, self._width))

    def _prefetch(self, e: Emitter, weights: IRValue, axes: Sequence[Axis], pixel: IRIndex) -> Prefetch:
        """Return the part of the next block's weights that the tile at a pixel prefetches."""
        size, steps = self.packing.block_words, steps_of(axes, self.tile)
        if self.is_dynamic:
            lines, parts = _LINES, -(-size // (LINE * steps * _LINES))
        else:
            parts = max(1, min(self.chunk.tiles, self.shape.size[1] // self.tile.pixels))
            lines = -(-size // (LINE * parts * steps))
        place = e.divmod(e.divmod(pixel, self.tile.pixels)[0], parts)[1]
        return Prefetch(e.address(weights, size, e.mul(place, lines * LINE * steps)), lines)

    def _axes(self, e: Emitter, strides: tuple[IRIndex, IRIndex, int]) -> tuple[Axis, ...]:
        rows, columns = self.shape.kernel
        return merged(
            (
                Axis(
                    rows,
                    e.mul(self.shape.dilation[0], strides[1]),
                    columns * self.shape.channels * self._width,
                ),
                Axis(columns, self.shape.dilation[1] * strides[2], self.shape.channels * self._width),
                Axis(self.shape.channels, 1, self._width),
            )
        )
