"""The loops over blocks of filters and groups of pixels that kernels of staged operands have in common."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod

from engine.compiler.contraction.arithmetic import BF16, Arithmetic
from engine.compiler.contraction.block_product import (
    BlockOperands,
    BlockProduct,
    TileProduct,
    VectorProduct,
    max_rows,
)
from engine.compiler.contraction.epilogue import Output, Place
from engine.compiler.contraction.shapes import ConvShape
from engine.compiler.contraction.staged_layout import StagedLayout, choose_runs
from engine.compiler.contraction.tile import LINE, each_block
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRIndex, IRValue


@dataclass(frozen=True, slots=True)
class PixelGroup:
    """Pixels that are multiplied at once.

    Attributes:
        row: row of the first one in the chunk.
        column: column of the first one; where groups run on, its number among those of all rows.
        index: groups before it.
        count: the number of them.
        width: how many are contiguous before those of the next row begin.
    """

    row: IRIndex
    column: IRIndex
    index: IRIndex
    count: int
    width: int


@dataclass(frozen=True, slots=True)
class PixelGroups:
    """The groups that a chunk's pixels are taken in: each is multiplied at once by a block of filters.

    In vectors, groups keep to the rows of the output: each is a part of one row, or some whole rows. In matrix
    registers they run on from row to row over all numbers of `staged_layout.py`, as pixels have to lie evenly there;
    pixels of numbers beyond a row's end are computed and dropped.

    Attributes:
        layout: layout of the chunk.
        most: pixels that a group may have; where they are more than a row, it has as many whole rows as fit.
        runs_on: whether groups run on from row to row.
    """

    layout: StagedLayout
    most: int
    runs_on: bool

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of a group."""
        columns = self.layout.shape.size[1]
        if self.runs_on or self.most < columns:
            return 1, self.most
        return min(self.layout.rows, self.most // columns), columns

    @property
    def count(self) -> int:
        """Groups of a whole chunk."""
        layout, (rows, columns) = self.layout, self.size
        if self.runs_on:
            return -(-layout.pixels // columns)
        return -(-layout.rows // rows) * -(-layout.shape.size[1] // columns)

    def each(self, e: Emitter, rows: IRIndex) -> Iterator[PixelGroup]:
        """Write the loops over the groups of a chunk that has so many rows.

        The last group may reach over rows that this chunk does not have and others have: these are staged all the same.
        """
        layout, (height, width) = self.layout, self.size
        columns = layout.shape.size[1]
        if self.runs_on:
            yield from self._of_row(e, 0, (e.mul(rows, layout.row_pixels), layout.pixels))
        elif width < columns:
            with e.loop(0, rows) as loop:
                yield from self._of_row(e, loop.index, (columns, columns))
        else:
            for first, count in _cut(e, rows, layout.rows, height):
                yield PixelGroup(first, 0, e.divmod(first, height)[0], count * width, width)

    def _of_row(self, e: Emitter, row: IRIndex, end: tuple[IRIndex, int]) -> Iterator[PixelGroup]:
        """Write the loop over the groups of a row up to an end, of which is known how far it is at most."""
        width = self.size[1]
        before = e.mul(row, -(-end[1] // width))
        for first, count in _cut(e, *end, width):
            yield PixelGroup(row, first, e.add(before, e.divmod(first, width)[0]), count, count)


def _cut(e: Emitter, end: IRIndex, most: int, step: int) -> Iterator[tuple[IRIndex, int]]:
    """Write the loop in steps up to an end that is at most so far, and the last step where it may be smaller."""
    whole = most - most % step
    with e.loop(0, e.minimum(end, whole), step) as loop:
        yield loop.index, step
    if whole < most:
        with e.when(e.compare(">", end, whole)):
            yield whole, most - whole


@dataclass(frozen=True, slots=True)
class StagedChunk:
    """Operands of a call.

    Attributes:
        weights: address of packed weights.
        numbers: address of the numbers of filters.
        output: where results go.
        sums: address of the sums of a group of tiles.
        staged: address of the staged input.
        image: its image.
        first_row: its first row.
        rows: how many it has.
    """

    weights: IRValue
    numbers: IRValue
    output: Output
    sums: IRValue
    staged: IRValue
    image: IRIndex
    first_row: IRIndex
    rows: IRIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedLoops:
    """The loops of a chunk.

    Attributes:
        shape: shape of the convolution, without groups, its channels counted in words.
        rows: rows of output of a chunk.
        has_tiles: whether products are made in matrix registers; else in vectors.
        group: numbers of pixels, and of vectors of filters: registers of a product.
        lanes: float32 lanes of a vector.
        arithmetic: arithmetic of the products.
        prefetches_weights: whether the next block's weights are prefetched while one block is multiplied.
        spread: rows and columns that each pixel becomes.
    """

    shape: ConvShape
    rows: int
    has_tiles: bool
    group: tuple[int, int]
    lanes: int
    arithmetic: Arithmetic = BF16
    prefetches_weights: bool = False
    spread: tuple[int, int] = (1, 1)

    @property
    def staged(self) -> StagedLayout:
        """How staged input and packed weights lie."""
        width = self.group[1] * (LINE if self.has_tiles else self.lanes)
        return StagedLayout(self.shape, self.rows, choose_runs(self.shape), width)

    @property
    def product(self) -> BlockProduct:
        """The multiplication unit: tiles or vectors."""
        staged = self.staged
        if self.has_tiles:
            return TileProduct(staged, self.arithmetic, max_rows(staged.pixels), *self.group)
        return VectorProduct(staged, self.arithmetic, *self.group, self.lanes)

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

    def emit(self, e: Emitter, chunk: StagedChunk, first: IRIndex, end: IRIndex) -> None:
        """Write the loops over the blocks from `first` up to `end`."""
        starts, product = e.table(self.staged.starts), self.product
        product.begin(e)
        with e.loop(first, end) as loop:
            self._emit_block(e, chunk, starts, loop.index)
        product.end(e)

    def _emit_block(self, e: Emitter, chunk: StagedChunk, starts: IRValue, block: IRIndex) -> None:
        """Write the loops over groups of pixels for a block of filters: a full one, or the last one."""
        place = self._in_window(e, block)[1]
        for filters in each_block(e, place, self.shape.filters, self.staged.width):
            for group in self.groups.each(e, chunk.rows):
                self._emit_group(e, chunk, starts, group, (block, filters))

    def _in_window(self, e: Emitter, block: IRIndex) -> tuple[IRIndex, IRIndex]:
        """Return the place in a window that a block of filters belongs to, and the block's place among its filters."""
        return (0, block) if self.spread == (1, 1) else e.divmod(block, self.staged.blocks)

    def _emit_group(
        self, e: Emitter, chunk: StagedChunk, starts: IRValue, group: PixelGroup, block: tuple[IRIndex, int]
    ) -> None:
        """Write the product of some pixels and a block, and what becomes of the sums."""
        staged = self.staged
        weights = e.address(chunk.weights, e.mul(block[0], staged.block_words))
        lines, parts = self.prefetched if self.prefetches_weights else (0, 1)
        part = e.mul(e.divmod(group.index, parts)[1], lines * LINE * self.product.rounds)
        first = e.add(e.mul(group.row, staged.row_pixels), group.column)
        operands = BlockOperands(
            x=e.address(chunk.staged, e.mul(first, staged.pixel_step)),
            weights=weights,
            numbers=e.address(chunk.numbers, e.mul(block[0], staged.width)),
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
        self, e: Emitter, chunk: StagedChunk, group: PixelGroup, block: tuple[IRIndex, int]
    ) -> None:
        """Write the epilogue of sums in memory; those of pixels that are none of the output are dropped."""
        staged, columns = self.staged, self.shape.size[1]
        left = e.sub(e.mul(chunk.rows, staged.row_pixels), group.column)
        with e.loop(0, e.minimum(left, group.count)) as loop:
            row, column = e.divmod(e.add(group.column, loop.index), staged.row_pixels)
            address = e.address(chunk.sums, e.mul(loop.index, staged.width))
            with e.when(e.compare("<", column, columns)) if staged.row_pixels > columns else nullcontext():
                sums = self.arithmetic.load_sums(e, address, -(-block[1] // e.lanes))
                self._store(e, chunk, sums, (row, column), block)

    def _finish_vectors(
        self,
        e: Emitter,
        chunk: StagedChunk,
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
        chunk: StagedChunk,
        sums: list[IRValue],
        at: tuple[IRIndex, IRIndex],
        block: tuple[IRIndex, int],
    ) -> None:
        """Write the epilogue and the stores of a pixel's results."""
        number, filters = block
        numbers = e.address(chunk.numbers, e.mul(number, self.staged.width))
        results = self.arithmetic.results(e, sums, numbers, (len(sums), self.blocks * self.staged.width))
        window, number = self._in_window(e, number)
        down, right = e.divmod(window, self.spread[1])
        row = e.add(e.mul(e.add(chunk.first_row, at[0]), self.spread[0]), down)
        column = e.add(e.mul(at[1], self.spread[1]), right)
        place = Place(chunk.image, row, column, e.mul(number, self.staged.width))
        chunk.output.store(e, results, place, filters)


def whole_lines(words: int) -> int:
    """Return as many words, rounded up to cache lines."""
    return -(-words // LINE) * LINE
