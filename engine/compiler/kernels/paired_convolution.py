"""Convolution of operands rounded to bfloat16, with float32 sums; with one pixel a row it is a linear layer.

Arguments: input, weights, bias, output, the epilogue's operands, scratch. Channels of input and output lie side by
side. Each chunk stages its input in scratch memory (`paired_staging.py`), multiplies groups of its pixels by blocks of
filters (`paired_product.py`), and takes the sums through the epilogue. `paired_layout.py` says how all of it lies.
"""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.kernels.epilogue import NOTHING, Epilogue, Place, finish
from engine.compiler.kernels.paired_layout import PairedLayout, choose_runs
from engine.compiler.kernels.paired_product import (
    PairedOperands,
    PairedProduct,
    TileProduct,
    VectorProduct,
    most_rows,
)
from engine.compiler.kernels.paired_staging import PairedStaging
from engine.compiler.kernels.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.kernels.tile import LINE
from engine.compiler.memory.alignment import aligned
from engine.compiler.memory.region import Region, line, pixels
from engine.dtypes import Array


@dataclass(frozen=True, slots=True)
class _Chunk:
    """What a call works on.

    Attributes:
        arguments: addresses of weights, bias, output and the epilogue's operands.
        sums: address of the sums of a group.
        staged: address of the staged input.
        starts: table of the places of runs.
        image: its image.
        first_row: its first row.
        rows: how many it has.
    """

    arguments: list[IRValue]
    sums: IRValue
    staged: IRValue
    starts: IRValue
    image: IRIndex
    first_row: IRIndex
    rows: IRIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedConvolution:
    """A convolution of one exact shape, without groups.

    Attributes:
        shape: of the convolution.
        strides: elements between images, rows and pixels of input and output.
        padding: zeros around the input.
        rows: rows of output of a chunk, all of one image.
        blocks: blocks of filters of a chunk.
        has_tiles: whether products are made in matrix registers; else in vectors.
        group: of pixels, and of vectors of filters: registers of a product.
        lanes: float32 lanes of a vector.
        epilogue: what is done to the results.
        prefetches_weights: whether the next block's weights are prefetched while one block is multiplied.
        channel_step: elements between channels of the input; where these do not lie side by side, pixels do.
        spread: rows and columns that each pixel becomes, each by filters of its own, as in a transposed convolution
            whose windows do not meet; `strides` are those of the whole output.
    """

    shape: ConvShape
    strides: ImageStrides
    padding: ImplicitPadding
    rows: int
    blocks: int
    has_tiles: bool
    group: tuple[int, int]
    lanes: int
    epilogue: Epilogue = NOTHING
    prefetches_weights: bool = False
    channel_step: int = 1
    spread: tuple[int, int] = (1, 1)

    @property
    def regions(self) -> tuple[Region, ...]:
        """What the kernel touches."""
        shape, (rows, columns) = self.shape, self.shape.size
        size = rows * self.spread[0], columns * self.spread[1]
        x = pixels(shape.images, self.padding.x_size, shape.channels, self.strides.x)
        x = replace(x, strides=(*self.strides.x, self.channel_step))
        out = pixels(shape.images, size, shape.filters, self.strides.out, is_written=True)
        operands = self.epilogue.regions(shape.images, size, shape.filters)
        return x, *map(line, self.packed_sizes), out, *operands

    @property
    def staged(self) -> PairedLayout:
        """How staged input and packed weights lie."""
        width = self.group[1] * (LINE if self.has_tiles else self.lanes)
        return PairedLayout(self.shape, self.rows, choose_runs(self.shape), width)

    @property
    def product(self) -> PairedProduct:
        """What multiplies."""
        staged = self.staged
        if self.has_tiles:
            return TileProduct(staged, most_rows(staged.pixels), *self.group)
        return VectorProduct(staged, *self.group, self.lanes)

    @property
    def packed_sizes(self) -> tuple[int, int]:
        """Words of packed weights, and of the bias."""
        weights, starts = self.staged.packed_sizes
        return weights * prod(self.spread), starts * prod(self.spread)

    @property
    def layout(self) -> tuple[object, ...]:
        """What the order of packed weights depends on."""
        return (self.staged.runs, self.staged.width, self.spread)

    def pack(self, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        """Pack weights (filters, channels, rows, columns) and bias; absent filters are 0.

        Where pixels spread, the filters of the first place in a window come first, those of the next after them.
        """
        parts = [self.staged.pack(part, bias) for part in np.split(weight, prod(self.spread))]
        if len(parts) == 1:
            return parts[0]
        return aligned(np.concatenate([w for w, _ in parts])), aligned(np.concatenate([b for _, b in parts]))

    @property
    def _parts(self) -> tuple[int, int, int]:
        """Parts that blocks, images and rows are split into."""
        return (
            -(-self.staged.blocks * prod(self.spread) // self.blocks),
            self.shape.images,
            -(-self.shape.size[0] // self.rows),
        )

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        blocks, images, rows = self._parts
        return blocks * images * rows

    @property
    def _sum_words(self) -> int:
        product = self.product
        return product.group * product.width

    @property
    def _staged_words(self) -> int:
        product, pixels = self.product, self.staged.pixels
        whole = pixels - pixels % product.group
        return self.staged.staged_words(whole + product.rounded(pixels - whole))

    @property
    def scratch(self) -> int:
        """Words of the sums of a group and of the staged input, whole cache lines of each."""
        return sum(-(-words // LINE) * LINE for words in (self._sum_words, self._staged_words))

    def emit(self, e: Emitter) -> None:
        """Write the kernel: the staging, and the loop over a chunk's blocks of filters."""
        x, *arguments, scratch = (e.argument(place) for place in range(5 + len(self.epilogue.operands)))
        blocks, image, row_part = e.unravel(e.chunk, self._parts)
        sums = e.address(scratch, e.mul(e.thread, self.scratch))
        target = e.address(sums, -(-self._sum_words // LINE) * LINE)
        first_row = e.mul(row_part, self.rows)
        rows = e.minimum(e.sub(self.shape.size[0], first_row), self.rows)
        staging = PairedStaging(self.staged, self.padding, self.strides.x, self.channel_step)
        source = e.address(x, e.mul(image, self.strides.x[0]))
        staging.emit(e, source, first_row, target, self._staged_words)
        starts = e.table(self.staged.starts)
        chunk = _Chunk(arguments, sums, target, starts, image, first_row, rows)
        product = self.product
        product.begin(e)
        first = e.mul(blocks, self.blocks)
        end = e.minimum(e.add(first, self.blocks), self.staged.blocks * prod(self.spread))
        with e.loop(first, end) as loop:
            self._emit_block(e, chunk, product, loop.index)
        product.end(e)

    def _emit_block(self, e: Emitter, chunk: _Chunk, product: PairedProduct, block: IRIndex) -> None:
        """Write the work on a block of filters: a full one, or the last one, which may have fewer."""
        width = self.staged.width
        last = self.shape.filters - (self.staged.blocks - 1) * width
        if last == width or self.staged.blocks == 1:
            self._emit_groups(e, chunk, product, (block, last))
            return
        is_last = e.compare("==", self._in_window(e, block)[1], self.staged.blocks - 1)
        with e.when(is_last):
            self._emit_groups(e, chunk, product, (block, last))
        with e.when(e.negated(is_last)):
            self._emit_groups(e, chunk, product, (block, width))

    def _in_window(self, e: Emitter, block: IRIndex) -> tuple[IRIndex, IRIndex]:
        """Return the place in a window that a block of filters belongs to, and the block's place among its filters."""
        return (0, block) if self.spread == (1, 1) else e.divmod(block, self.staged.blocks)

    def _emit_groups(
        self, e: Emitter, chunk: _Chunk, product: PairedProduct, block: tuple[IRIndex, int]
    ) -> None:
        """Write the loop over groups of pixels, and the last one, which may be smaller."""
        staged = self.staged
        end = e.mul(chunk.rows, staged.row_pixels)
        rest = staged.pixels % product.group
        whole = staged.pixels - rest
        with e.loop(0, e.minimum(end, whole), product.group) as loop:
            self._emit_group(e, chunk, product, (loop.index, product.group), block)
        if rest:
            with e.when(e.compare(">", end, whole)):
                self._emit_group(e, chunk, product, (whole, rest), block)

    def _emit_group(
        self,
        e: Emitter,
        chunk: _Chunk,
        product: PairedProduct,
        pixels: tuple[IRIndex, int],
        block: tuple[IRIndex, int],
    ) -> None:
        """Write the product of some pixels and a block, and what becomes of the sums."""
        staged = self.staged
        w, bias, *_ = chunk.arguments
        weights = e.address(w, e.mul(block[0], staged.block_words))
        lines = self._lines(product) if self.prefetches_weights else 0
        part = e.mul(e.divmod(pixels[0], product.group)[0], lines * LINE * staged.steps)
        operands = PairedOperands(
            x=e.address(chunk.staged, e.mul(pixels[0], staged.pixel_step)),
            weights=weights,
            bias=e.address(bias, e.mul(block[0], staged.width)),
            sums=chunk.sums,
            starts=chunk.starts,
            prefetch=e.address(weights, staged.block_words, part) if lines else None,
            lines=lines,
        )
        product.emit(e, operands, pixels[1], block[1])
        self._finish(e, chunk, pixels, block)

    def _lines(self, product: PairedProduct) -> int:
        """Return the cache lines of the next block that each step prefetches."""
        groups = -(-self.staged.pixels // product.group)
        return -(-self.staged.block_words // (LINE * groups * self.staged.steps))

    def _finish(
        self, e: Emitter, chunk: _Chunk, pixels: tuple[IRIndex, int], block: tuple[IRIndex, int]
    ) -> None:
        """Write the epilogue of the sums of some pixels; those that are none of the output are dropped."""
        staged, (first, count) = self.staged, pixels
        columns = self.shape.size[1]
        left = e.sub(e.mul(chunk.rows, staged.row_pixels), first)
        with e.loop(0, e.minimum(left, count)) as loop:
            row, column = e.divmod(e.add(first, loop.index), staged.row_pixels)
            sums = e.address(chunk.sums, e.mul(loop.index, staged.width))
            if staged.row_pixels == columns:
                self._store(e, chunk, sums, (row, column), block)
            else:
                with e.when(e.compare("<", column, columns)):
                    self._store(e, chunk, sums, (row, column), block)

    def _store(
        self,
        e: Emitter,
        chunk: _Chunk,
        sums: IRValue,
        at: tuple[IRIndex, IRIndex],
        block: tuple[IRIndex, int],
    ) -> None:
        """Write the epilogue and the stores of a pixel's results."""
        _, _, out, *operands = chunk.arguments
        number, filters = block
        window, number = self._in_window(e, number)
        down, right = e.divmod(window, self.spread[1])
        row = e.add(e.mul(e.add(chunk.first_row, at[0]), self.spread[0]), down)
        column = e.add(e.mul(at[1], self.spread[1]), right)
        for start in range(0, filters, e.lanes):
            count = min(e.lanes, filters - start)
            channel = e.add(e.mul(number, self.staged.width), start)
            place = Place(chunk.image, row, column, channel)
            result = finish(e, self.epilogue, e.load(sums, start), operands, place, count)
            steps = zip((place.image, place.row, place.pixel), self.strides.out, strict=True)
            e.store(result, out, *(e.mul(i, step) for i, step in steps), channel, count=count)
