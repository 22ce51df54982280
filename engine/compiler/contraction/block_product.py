"""Products of staged pixels and packed weights: in AMX tiles, or in vectors.

Both read pixels and weights in the order of `StagedLayout`. The sums of a group of pixels and a block of filters stay
in vectors; those of tiles go through memory, a row for each pixel, as there is no other way to the epilogue. The order
of a sum does not depend on other results.
"""

from dataclasses import dataclass

from engine.compiler.contraction.arithmetic import Arithmetic
from engine.compiler.contraction.staged_layout import StagedLayout
from engine.compiler.contraction.tile import LINE
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.tiles import ROWS, WORDS, configure, multiply, release
from engine.compiler.emit.types import IRValue, TileShape

_UNROLL = 4


@dataclass(frozen=True, slots=True)
class BlockOperands:
    """Addresses of a product's operands.

    Attributes:
        x: address of the group's first pixel, staged.
        weights: address of the block's weights.
        numbers: address of the first number of the block's filters: what their sums start with.
        sums: address of the sums of tiles; a row has as many as a block has filters.
        starts: table of the places of runs.
        prefetch: address of weights that are needed next; None for none.
        lines: cache lines of these that each round of the innermost loop prefetches.
    """

    x: IRValue
    weights: IRValue
    numbers: IRValue
    sums: IRValue
    starts: IRValue
    prefetch: IRValue | None = None
    lines: int = 0


@dataclass(frozen=True, slots=True)
class TileProduct:
    """Products in AMX tiles.

    Attributes:
        layout: layout of the operands.
        arithmetic: arithmetic of the products.
        rows: pixels of a tile.
        pixel_tiles: tiles of pixels in a group.
        filter_tiles: tiles of filters in a block.
    """

    layout: StagedLayout
    arithmetic: Arithmetic
    rows: int
    pixel_tiles: int
    filter_tiles: int

    @property
    def group(self) -> int:
        """Pixels of a group."""
        return self.rows * self.pixel_tiles

    @property
    def width(self) -> int:
        """Filters of a block."""
        return WORDS * self.filter_tiles

    @property
    def rounds(self) -> int:
        """How often the innermost loop of a product goes round."""
        return self.layout.steps

    def rounded(self, pixels: int) -> int:
        """Return the number of computed pixels for a requested one: whole tiles."""
        return -(-pixels // self.rows) * self.rows

    def begin(self, e: Emitter) -> None:
        """Write the shapes of tiles: results, pixels, weights."""
        sums, pixels, weights = self._shapes
        results = self.pixel_tiles * self.filter_tiles
        configure(e, [sums] * results + [pixels] * self.pixel_tiles + [weights] * self.filter_tiles)

    def end(self, e: Emitter) -> None:
        """Write the release of the tiles."""
        release(e)

    @property
    def _shapes(self) -> tuple[TileShape, TileShape, TileShape]:
        words = self.layout.runs.step_words
        return TileShape(self.rows, WORDS), TileShape(self.rows, words), TileShape(words, WORDS)

    def emit(
        self, e: Emitter, operands: BlockOperands, pixels: tuple[int, int], filters: int
    ) -> list[IRValue]:
        """Write the product of so many pixels, at most a group, and filters, at most a block.

        Args:
            e: the kernel.
            operands: where they lie.
            pixels: how many there are, and how many are contiguous before those of the next row begin.
            filters: how many there are.

        Returns:
            The vectors of sums, those of a pixel together; none where they are in memory.
        """
        used = range(-(-pixels[0] // self.rows)), range(-(-filters // WORDS))
        places = [(row, column) for row in used[0] for column in used[1]]
        for row, column in places:
            e.tile_load(self._sum(row, column), e.address(operands.numbers, column * WORDS), 0)
        self._reduce(e, operands, *used)
        for row, column in places:
            there = e.address(operands.sums, row * self.rows * self.width + column * WORDS)
            e.tile_store(self._sum(row, column), there, self.width)
        return []

    def _sum(self, row: int, column: int) -> int:
        return row * self.filter_tiles + column

    def _reduce(self, e: Emitter, operands: BlockOperands, rows: range, columns: range) -> None:
        """Write the loops over runs and steps."""
        layout, runs = self.layout, self.layout.runs
        carry = [operands.weights] + ([] if operands.prefetch is None else [operands.prefetch])
        with e.loop(0, len(layout.starts), carry=carry) as outer:
            run = e.address(operands.x, e.load_index(operands.starts, outer.index))
            with e.loop(0, runs.steps, carry=outer.carried) as inner:
                x = e.address(run, e.mul(inner.index, runs.step_words))
                self._step(e, x, inner.carried[0], rows, columns)
                following = [e.address(inner.carried[0], runs.step_words * self.width)]
                following += [_prefetch(e, address, operands.lines) for address in inner.carried[1:]]
                inner.following = following
            outer.following = inner.results

    def _step(self, e: Emitter, x: IRValue, weights: IRValue, rows: range, columns: range) -> None:
        """Write one step: tiles of pixels and weights, each multiplied with each."""
        results, step = self.pixel_tiles * self.filter_tiles, self.layout.pixel_step
        for column in columns:
            tile = results + self.pixel_tiles + column
            e.tile_load(tile, e.address(weights, column * WORDS), self.width)
        for row in rows:
            e.tile_load(results + row, e.address(x, row * self.rows * step), step)
            for column in columns:
                tiles = self._sum(row, column), results + row, results + self.pixel_tiles + column
                multiply(e, self.arithmetic.tile_product, *tiles)


@dataclass(frozen=True, slots=True)
class VectorProduct:
    """Products in vectors: a tile of pixels x vectors of filters stays in registers, as in `tile.py`.

    Attributes:
        layout: layout of the operands.
        arithmetic: arithmetic of the products.
        group: pixels of a group.
        vectors: vectors of filters in a block.
        lanes: filters of a vector.
    """

    layout: StagedLayout
    arithmetic: Arithmetic
    group: int
    vectors: int
    lanes: int

    @property
    def width(self) -> int:
        """Filters of a block."""
        return self.vectors * self.lanes

    @property
    def rounds(self) -> int:
        """How often the innermost loop of a product goes round."""
        return len(self.layout.starts) * self.layout.run_words // self._unroll

    @property
    def _unroll(self) -> int:
        return next(count for count in (_UNROLL, 3, 2, 1) if self.layout.run_words % count == 0)

    def rounded(self, pixels: int) -> int:
        """Return the number of computed pixels for a requested one: the same."""
        return pixels

    def begin(self, e: Emitter) -> None:
        """Do nothing: vectors need no setup."""

    def end(self, e: Emitter) -> None:
        """Do nothing: vectors need no setup."""

    def emit(
        self, e: Emitter, operands: BlockOperands, pixels: tuple[int, int], filters: int
    ) -> list[IRValue]:
        """Write the product of so many pixels and filters; see `TileProduct`."""
        used = range(-(-filters // self.lanes))
        sums = self.arithmetic.load_sums(e, operands.numbers, len(used)) * pixels[0]
        unroll = self._unroll
        addresses = [operands.weights, *([] if operands.prefetch is None else [operands.prefetch])]
        with e.loop(0, len(self.layout.starts), carry=[*addresses, *sums]) as outer:
            run = e.address(operands.x, e.load_index(operands.starts, outer.index))
            with e.loop(0, self.layout.run_words, unroll, carry=outer.carried) as inner:
                (weights, *ahead), totals = inner.carried[: len(addresses)], inner.carried[len(addresses) :]
                for step in range(unroll):
                    at = e.address(run, inner.index, step), e.address(weights, step * self.width)
                    totals = self._multiply(e, at, totals, (pixels[1], used))
                following = [_prefetch(e, address, operands.lines) for address in ahead]
                inner.following = [e.address(weights, unroll * self.width), *following, *totals]
            outer.following = inner.results
        return outer.results[len(addresses) :]

    def _multiply(
        self,
        e: Emitter,
        at: tuple[IRValue, IRValue],
        totals: list[IRValue],
        size: tuple[int, range],
    ) -> list[IRValue]:
        """Write one step: the word of every pixel, so many in a row, times every vector of weights."""
        (x, weights), (width, used), layout, arithmetic = at, size, self.layout, self.arithmetic
        vectors = [arithmetic.weight(e, weights, vector * self.lanes) for vector in used]
        results = []
        for pixel in range(len(totals) // len(used)):
            row, column = divmod(pixel, width)
            number = arithmetic.number(e, x, (row * layout.row_pixels + column) * layout.pixel_step)
            own = totals[pixel * len(used) : (pixel + 1) * len(used)]
            results += [
                arithmetic.add(e, number, weight, total) for weight, total in zip(vectors, own, strict=True)
            ]
        return results


BlockProduct = TileProduct | VectorProduct
"""Multiplication of groups of pixels by blocks of filters."""


def _prefetch(e: Emitter, address: IRValue, lines: int) -> IRValue:
    """Write the prefetching of some cache lines; returns the address behind them."""
    for line in range(lines):
        e.prefetch(address, line * LINE)
    return e.address(address, lines * LINE)


def max_rows(pixels: int) -> int:
    """Return how many pixels tiles have so that few of the last one are dropped."""
    return -(-pixels // -(-pixels // ROWS))
