"""The loops over blocks of filters and groups of pixels that kernels of bf16 operands have in common."""

from contextlib import nullcontext
from dataclasses import dataclass
from itertools import zip_longest
from math import prod

from engine.compiler.contraction.bf16_groups import PixelGroup, PixelGroups
from engine.compiler.contraction.bf16_layout import Bf16Layout, choose_runs
from engine.compiler.contraction.bf16_product import (
    Bf16Operands,
    Bf16Product,
    TileProduct,
    VectorProduct,
    max_rows,
)
from engine.compiler.contraction.epilogue import Epilogue, Place, finish
from engine.compiler.contraction.shapes import ConvShape
from engine.compiler.contraction.tile import LINE
from engine.compiler.emit.bfloat16 import pair_up
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRIndex, IRValue


@dataclass(frozen=True, slots=True)
class Bf16Chunk:
    """Operands of a call.

    Attributes:
        weights: address of packed weights.
        bias: address of what sums start with.
        out: address of the output.
        operands: addresses of the epilogue's operands.
        sums: address of the sums of a group of tiles.
        staged: address of the staged input.
        image: its image.
        first_row: its first row.
        rows: how many it has.
    """

    weights: IRValue
    bias: IRValue
    out: IRValue
    operands: list[IRValue]
    sums: IRValue
    staged: IRValue
    image: IRIndex
    first_row: IRIndex
    rows: IRIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Bf16Loops:
    """The loops of a chunk.

    Attributes:
        shape: shape of the convolution, without groups.
        rows: rows of output of a chunk.
        has_tiles: whether products are made in matrix registers; else in vectors.
        group: numbers of pixels, and of vectors of filters: registers of a product.
        lanes: float32 lanes of a vector.
        out_strides: elements between images, rows and pixels of the output.
        epilogue: operations on the results.
        prefetches_weights: whether the next block's weights are prefetched while one block is multiplied.
        spread: rows and columns that each pixel becomes.
        stores_bf16: whether results are stored in bfloat16, two channels to an element.
    """

    shape: ConvShape
    rows: int
    has_tiles: bool
    group: tuple[int, int]
    lanes: int
    out_strides: tuple[int, int, int]
    epilogue: Epilogue
    prefetches_weights: bool = False
    spread: tuple[int, int] = (1, 1)
    stores_bf16: bool = False

    @property
    def staged(self) -> Bf16Layout:
        """How staged input and packed weights lie."""
        width = self.group[1] * (LINE if self.has_tiles else self.lanes)
        return Bf16Layout(self.shape, self.rows, choose_runs(self.shape), width)

    @property
    def product(self) -> Bf16Product:
        """The multiplication unit: tiles or vectors."""
        staged = self.staged
        if self.has_tiles:
            return TileProduct(staged, max_rows(staged.pixels), *self.group)
        return VectorProduct(staged, *self.group, self.lanes)

    @property
    def blocks(self) -> int:
        """Blocks of filters, those of all pixels that one becomes."""
        return self.staged.blocks * prod(self.spread)

    @property
    def sum_words(self) -> int:
        """Words of the sums of a group of tiles, whole cache lines."""
        product = self.product
        return whole_lines(product.group * product.width) if self.has_tiles else 0

    @property
    def groups(self) -> PixelGroups:
        """The groups of a chunk's pixels."""
        return PixelGroups(self.staged, self.product.group, self.has_tiles)

    @property
    def prefetched(self) -> tuple[int, int]:
        """Cache lines of the next block that each round of the innermost loop prefetches, and groups that take all."""
        lines, rounds = -(-self.staged.block_words // LINE), self.product.rounds
        of_round = -(-lines // (self.groups.count * rounds))
        return of_round, -(-lines // (of_round * rounds))

    @property
    def staged_words(self) -> int:
        """Words of the staged input that are read."""
        product, pixels = self.product, self.staged.pixels
        whole = pixels - pixels % product.group
        return self.staged.staged_words(whole + product.rounded(pixels - whole))

    def emit(self, e: Emitter, chunk: Bf16Chunk, first: IRIndex, end: IRIndex) -> None:
        """Write the loops over the blocks from `first` up to `end`."""
        starts, product = e.table(self.staged.starts), self.product
        product.begin(e)
        with e.loop(first, end) as loop:
            self._emit_block(e, chunk, starts, loop.index)
        product.end(e)

    def _emit_block(self, e: Emitter, chunk: Bf16Chunk, starts: IRValue, block: IRIndex) -> None:
        """Write the work on a block of filters: a full one, or the last one, which may have fewer."""
        width = self.staged.width
        last = self.shape.filters - (self.staged.blocks - 1) * width
        if last == width or self.staged.blocks == 1:
            self._emit_groups(e, chunk, starts, (block, last))
            return
        is_last = e.compare("==", self._in_window(e, block)[1], self.staged.blocks - 1)
        with e.when(is_last):
            self._emit_groups(e, chunk, starts, (block, last))
        with e.when(e.negated(is_last)):
            self._emit_groups(e, chunk, starts, (block, width))

    def _in_window(self, e: Emitter, block: IRIndex) -> tuple[IRIndex, IRIndex]:
        """Return the place in a window that a block of filters belongs to, and the block's place among its filters."""
        return (0, block) if self.spread == (1, 1) else e.divmod(block, self.staged.blocks)

    def _emit_groups(self, e: Emitter, chunk: Bf16Chunk, starts: IRValue, block: tuple[IRIndex, int]) -> None:
        """Write the loops over groups of pixels."""
        self.groups.emit(e, chunk.rows, lambda group: self._emit_group(e, chunk, starts, group, block))

    def _emit_group(
        self, e: Emitter, chunk: Bf16Chunk, starts: IRValue, group: PixelGroup, block: tuple[IRIndex, int]
    ) -> None:
        """Write the product of some pixels and a block, and what becomes of the sums."""
        staged = self.staged
        weights = e.address(chunk.weights, e.mul(block[0], staged.block_words))
        lines, parts = self.prefetched if self.prefetches_weights else (0, 1)
        part = e.mul(e.divmod(group.index, parts)[1], lines * LINE * self.product.rounds)
        first = e.add(e.mul(group.row, staged.row_pixels), group.column)
        operands = Bf16Operands(
            x=e.address(chunk.staged, e.mul(first, staged.pixel_step)),
            weights=weights,
            bias=e.address(chunk.bias, e.mul(block[0], staged.width)),
            sums=chunk.sums,
            starts=starts,
            prefetch=e.address(weights, staged.block_words, part) if lines else None,
            lines=lines,
        )
        sums = self.product.emit(e, operands, (group.count, group.width), block[1])
        if self.has_tiles:
            self._finish_tiles(e, chunk, group, block)
        else:
            self._finish_vectors(e, chunk, group, block, sums)

    def _finish_tiles(
        self, e: Emitter, chunk: Bf16Chunk, group: PixelGroup, block: tuple[IRIndex, int]
    ) -> None:
        """Write the epilogue of sums in memory; those of pixels that are none of the output are dropped."""
        staged, columns = self.staged, self.shape.size[1]
        left = e.sub(e.mul(chunk.rows, staged.row_pixels), group.column)
        with e.loop(0, e.minimum(left, group.count)) as loop:
            row, column = e.divmod(e.add(group.column, loop.index), staged.row_pixels)
            address = e.address(chunk.sums, e.mul(loop.index, staged.width))
            with e.when(e.compare("<", column, columns)) if staged.row_pixels > columns else nullcontext():
                sums = [e.load(address, start) for start in range(0, block[1], e.lanes)]
                self._store(e, chunk, sums, (row, column), block)

    def _finish_vectors(
        self,
        e: Emitter,
        chunk: Bf16Chunk,
        group: PixelGroup,
        block: tuple[IRIndex, int],
        sums: list[IRValue],
    ) -> None:
        """Write the epilogue of sums in vectors; those of rows that a chunk does not have are dropped."""
        vectors = len(sums) // group.count
        for down in range(group.count // group.width):
            row = e.add(group.row, down)
            # the first row of a group is there; further ones may not be in a chunk that has fewer than others
            has_row = e.compare("<", row, chunk.rows) if down and self.shape.size[0] % self.rows else None
            with nullcontext() if has_row is None else e.when(has_row):
                for right in range(group.width):
                    first = (down * group.width + right) * vectors
                    place = row, e.add(group.column, right)
                    self._store(e, chunk, sums[first : first + vectors], place, block)

    def _store(
        self,
        e: Emitter,
        chunk: Bf16Chunk,
        sums: list[IRValue],
        at: tuple[IRIndex, IRIndex],
        block: tuple[IRIndex, int],
    ) -> None:
        """Write the epilogue and the stores of a pixel's results."""
        number, filters = block
        window, number = self._in_window(e, number)
        down, right = e.divmod(window, self.spread[1])
        row = e.add(e.mul(e.add(chunk.first_row, at[0]), self.spread[0]), down)
        column = e.add(e.mul(at[1], self.spread[1]), right)
        first = e.mul(number, self.staged.width)
        results = []
        for vector, total in enumerate(sums):
            start = vector * e.lanes
            place = Place(chunk.image, row, column, e.add(first, start))
            count = min(e.lanes, filters - start)
            results.append(finish(e, self.epilogue, total, chunk.operands, place, count))
        steps = zip((chunk.image, row, column), self.out_strides, strict=True)
        out = e.address(chunk.out, *(e.mul(i, step) for i, step in steps))
        if self.stores_bf16:
            results = [
                pair_up(e, *both) for both in zip_longest(results[::2], results[1::2], fillvalue=e.splat(0.0))
            ]
            first, filters = e.divmod(first, 2)[0], filters // 2
        for vector, result in enumerate(results):
            start = vector * e.lanes
            e.store(result, out, first, start, count=min(e.lanes, filters - start))


def whole_lines(words: int) -> int:
    """Return as many words, rounded up to cache lines."""
    return -(-words // LINE) * LINE
