"""Convolution of 8-bit integers in AMX tiles; with one pixel a row it is a linear layer.

Arguments as of `DirectConvolution` of integers, and the same results. How input and weights lie is the same as for
bfloat16 (`bf16_layout.py`), a word holding four channels where it holds two there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from engine.compiler.contraction.arithmetic import FilterPacking, Int8
from engine.compiler.contraction.bf16_layout import Bf16Layout, choose_runs
from engine.compiler.contraction.bf16_product import Bf16Operands, TileProduct, max_rows
from engine.compiler.contraction.epilogue import NOTHING, Epilogue, Output, Place
from engine.compiler.contraction.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.contraction.tile import LINE
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.tiles import multiply_integers
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.memory.region import Region, line
from engine.quantization.tensor_scale import TensorScale


@dataclass(frozen=True, slots=True)
class Int8TileProduct(TileProduct):
    """Products of integers in AMX tiles; sums are 32-bit integers."""

    def _multiply(self, e: Emitter, total: int, left: int, right: int) -> None:
        multiply_integers(e, total, left, right)


@dataclass(frozen=True, slots=True)
class _Work:
    """Operands of a call.

    Attributes:
        numbers: address of the numbers of filters.
        output: where results go.
        sums: address of the sums of a group of pixels.
        image: its image.
        first_row: its first row.
        end: number of the pixel after its last one.
    """

    numbers: IRValue
    output: Output
    sums: IRValue
    image: IRIndex
    first_row: IRIndex
    end: IRIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Int8TileConvolution:
    """A convolution of 8-bit integers of one exact shape, without groups, whose channels are words of four.

    Attributes:
        shape: shape of the convolution.
        strides: elements between images, rows and pixels of input and output.
        padding: what lies around the input.
        rows: rows of output of a chunk, all of one image.
        blocks: blocks of filters of a chunk.
        group: matrix registers of pixels, and of filters, of a product.
        lanes: float32 lanes of a vector.
        arithmetic: arithmetic of the products.
        out_scale: scale of the output, where that is stored as integers; None where it is float32.
        epilogue: operations on the results.
        prefetches_weights: whether the next block's weights are prefetched while one block is multiplied.
    """

    shape: ConvShape
    strides: ImageStrides
    padding: ImplicitPadding
    rows: int
    blocks: int
    group: tuple[int, int]
    lanes: int
    arithmetic: Int8
    out_scale: TensorScale | None = None
    epilogue: Epilogue = NOTHING
    prefetches_weights: bool = False

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in 32-bit words."""
        shape = self.shape
        x, out = shape.regions(self.padding.x_size, self.strides, has_int8_results=self.out_scale is not None)
        operands = self.epilogue.regions(shape.images, shape.size, shape.filters)
        return x, *map(line, self.packing.packed_sizes), out, *operands

    @property
    def staged(self) -> Bf16Layout:
        """How staged input and packed weights lie."""
        return tile_layout(self.shape, self.rows, self.group[1] * LINE)

    @property
    def product(self) -> Int8TileProduct:
        """The multiplication unit: tiles or vectors."""
        return Int8TileProduct(self.staged, max_rows(self.staged.pixels), *self.group)

    @property
    def packing(self) -> FilterPacking:
        """How weights are packed."""
        return FilterPacking(
            arithmetic=self.arithmetic,
            groups=1,
            filters=self.shape.filters,
            words=self.staged.runs.pixel_words,
            kernel=self.shape.kernel,
            width=self.staged.width,
        )

    @property
    def _parts(self) -> tuple[int, int, int]:
        """Parts that blocks, images and rows are split into."""
        row_parts = -(-self.shape.size[0] // self.rows)
        return -(-self.staged.blocks // self.blocks), self.shape.images, row_parts

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return prod(self._parts)

    @property
    def _staged_words(self) -> int:
        """Words of staged input that are read, for whole groups of pixels."""
        group = self.product.group
        return self.staged.staged_words(-(-self.staged.pixels // group) * group)

    @property
    def _sum_words(self) -> int:
        return self.product.group * self.staged.width

    @property
    def scratch(self) -> int:
        """Words of the sums of a group of pixels, and of the staged input; whole cache lines."""
        return self._sum_words + -(-self._staged_words // LINE) * LINE

    def emit(self, e: Emitter) -> None:
        """Write the kernel: the staging, and the loops over a chunk's blocks of filters and groups of pixels."""
        count = len(self.epilogue.operands)
        x, weights, numbers, out, *operands, scratch = (e.argument(place) for place in range(5 + count))
        block_part, image, row_part = e.unravel(e.chunk, self._parts)
        first_row = e.mul(row_part, self.rows)
        rows = e.minimum(e.sub(self.shape.size[0], first_row), self.rows)
        sums = e.address(scratch, e.mul(e.thread, self.scratch))
        staged = e.address(sums, self._sum_words)
        self._stage(e, e.address(x, e.mul(image, self.strides.x[0])), staged, first_row)
        end = e.minimum(e.mul(rows, self.staged.row_pixels), self.staged.pixels)
        output = Output(out, self.strides.out, self.epilogue, operands, self.out_scale)
        work = _Work(numbers, output, sums, image, first_row, end)
        starts, product = e.table(self.staged.starts), self.product
        product.begin(e)
        for block, filters in self._each_block(e, block_part):
            with e.loop(0, end, product.group) as loop:
                pair = self._operands(e, (staged, weights, starts), loop.index, block, work)
                product.emit(e, pair, (product.group, product.group), filters)
                self._finish(e, work, loop.index, block, filters)
        product.end(e)

    def _each_block(self, e: Emitter, part: IRIndex) -> Iterator[tuple[IRIndex, int]]:
        """Write the loop over a chunk's full blocks of filters, and after it the one that is not full."""
        full, rest = divmod(self.shape.filters, self.staged.width)
        first = e.mul(part, self.blocks)
        stop = e.add(first, self.blocks)
        if full:
            with e.loop(first, e.minimum(stop, full)) as loop:
                yield loop.index, self.staged.width
        if rest:
            with e.when(e.compare(">", stop, full)):
                yield full, rest

    def _stage(self, e: Emitter, image: IRValue, target: IRValue, first_row: IRIndex) -> None:
        """Write the copy of a chunk's input, with what lies around it, rows of one remainder of the stride together."""
        layout, stride = self.staged, self.shape.stride[0]
        top = e.sub(e.mul(first_row, stride), self.padding.before[0])
        for plane in range(stride):
            with e.loop(0, layout.plane_rows) as loop:
                row = e.add(top, e.mul(loop.index, stride), plane)
                place = e.add(loop.index, plane * layout.plane_rows)
                there = e.address(target, e.mul(place, layout.row_words))
                is_inside = e.both(e.compare(">=", row, 0), e.compare("<", row, self.padding.x_size[0]))
                with e.when(is_inside):
                    self._stage_row(e, e.address(image, e.mul(row, self.strides.x[1])), there)
                with e.when(e.builder.not_(is_inside)):
                    self._fill(e, there, 0, layout.row_words)
        self._fill(e, target, layout.plane_words, self._staged_words)

    def _stage_row(self, e: Emitter, source: IRValue, target: IRValue) -> None:
        layout, words_of_pixel = self.staged, self.staged.runs.pixel_words
        left = min(self.padding.before[1], layout.columns)
        count = min(self.padding.x_size[1], layout.columns - left)
        step, used = self.strides.x[2], self.shape.channels
        self._fill(e, target, 0, left * words_of_pixel)
        if step == used == words_of_pixel:
            e.copy(source, e.address(target, left * words_of_pixel), count * used)
        else:
            with e.loop(0, count) as pixel:
                to = e.address(target, e.mul(e.add(pixel.index, left), words_of_pixel))
                e.copy(e.address(source, e.mul(pixel.index, step)), to, used)
                self._fill(e, to, used, words_of_pixel)
        self._fill(e, target, (left + count) * words_of_pixel, layout.row_words)

    def _fill(self, e: Emitter, target: IRValue, start: int, stop: int) -> None:
        self.arithmetic.fill(e, target, start, stop)

    def _operands(
        self,
        e: Emitter,
        addresses: tuple[IRValue, IRValue, IRValue],
        pixel: IRIndex,
        block: IRIndex,
        work: _Work,
    ) -> Bf16Operands:
        """Return where the operands of a group of pixels and a block of filters lie."""
        staged, all_weights, starts = addresses
        layout, group = self.staged, self.product.group
        weights = e.address(all_weights, e.mul(block, layout.block_words))
        lines = -(-layout.block_words // (LINE * -(-layout.pixels // group) * layout.steps))
        ahead = e.mul(e.divmod(pixel, group)[0], lines * LINE * layout.steps)
        has_prefetch = self.prefetches_weights
        return Bf16Operands(
            x=e.address(staged, e.mul(pixel, layout.pixel_step)),
            weights=weights,
            bias=e.address(work.numbers, e.mul(block, layout.width)),
            sums=work.sums,
            starts=starts,
            prefetch=e.address(weights, layout.block_words, ahead) if has_prefetch else None,
            lines=lines if has_prefetch else 0,
        )

    def _finish(self, e: Emitter, work: _Work, pixel: IRIndex, block: IRIndex, filters: int) -> None:
        """Write the loop over the pixels of a group that takes their sums through the epilogue."""
        layout, columns = self.staged, self.shape.size[1]
        with e.loop(0, e.minimum(e.sub(work.end, pixel), self.product.group)) as loop:
            row, column = e.divmod(e.add(pixel, loop.index), layout.row_pixels)
            sums = e.address(work.sums, e.mul(loop.index, layout.width))
            # numbers beyond a row's end are no pixels
            with e.when(e.compare("<", column, columns)):
                for start in range(0, filters, e.lanes):
                    channel = e.add(e.mul(block, layout.width), start)
                    place = Place(work.image, e.add(work.first_row, row), column, channel)
                    self._store(e, work, e.address(sums, start), place, min(e.lanes, filters - start))

    def _store(self, e: Emitter, work: _Work, sums: IRValue, place: Place, count: int) -> None:
        """Write the store of a vector of results: float32(sum) * factor + bias, and the epilogue of that."""
        total = e.load_words(sums, count=e.lanes)
        numbers = e.address(work.numbers, place.channel)
        (result,) = self.arithmetic.results(e, [total], numbers, (1, self.packing.count))
        work.output.store(e, result, place, count)


def tile_layout(shape: ConvShape, rows: int, width: int) -> Bf16Layout:
    """Return how the operands of a convolution lie whose channels are counted in words."""
    halves = replace(shape, channels=2 * shape.channels)
    return Bf16Layout(halves, rows, choose_runs(halves), width)
