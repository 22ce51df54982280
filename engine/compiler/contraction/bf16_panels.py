"""Packs a right operand that a run computes: rounded to bfloat16 in pairs, in the order of packed weights."""

from dataclasses import dataclass

from engine.compiler.contraction.staged_layout import StagedLayout
from engine.compiler.emit.bfloat16 import pair_lanes, pair_up
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRIndex, IRValue


@dataclass(frozen=True, slots=True)
class Bf16Panels:
    """The packing of a matrix (depth x columns), whose rows or whose columns lie without gaps.

    Attributes:
        layout: target layout: its columns are filters, its rows channels, two in a word.
        depth: rows.
        strides: elements between rows and columns.
        lanes: float32 lanes of a vector.
    """

    layout: StagedLayout
    depth: int
    strides: tuple[int, int]
    lanes: int

    @property
    def words(self) -> int:
        """Words of the packed matrix."""
        return self.layout.blocks * self.layout.block_words

    def emit(self, e: Emitter, source: IRValue, target: IRValue) -> None:
        """Write the packing: the loop over vectors of columns, the last one perhaps not full."""
        full, rest = divmod(self.layout.shape.filters, self.lanes)
        with e.loop(0, full) as loop:
            self._pack(
                e, source, self._place(e, target, loop.index), (e.mul(loop.index, self.lanes), self.lanes)
            )
        if rest:
            self._pack(e, source, self._place(e, target, full), (full * self.lanes, rest))

    def _place(self, e: Emitter, target: IRValue, vector: IRIndex) -> IRValue:
        """Return where the pairs of a vector of columns go."""
        block, place = e.divmod(vector, self.layout.width // self.lanes)
        return e.address(target, e.mul(block, self.layout.block_words), e.mul(place, self.lanes))

    def _pack(self, e: Emitter, source: IRValue, target: IRValue, columns: tuple[IRIndex, int]) -> None:
        """Write the packing of a vector of columns, and zeros below them."""
        depth, (row_step, column_step) = self.depth, self.strides
        if column_step == 1:
            self._pack_rows(e, e.address(source, columns[0]), target, columns[1])
        else:
            double = 2 * self.lanes
            with e.loop(0, depth - depth % double, double) as loop:
                there = e.address(target, e.mul(e.divmod(loop.index, 2)[0], self.layout.width))
                self._pack_square(e, e.address(source, loop.index), there, columns, double)
            if depth % double:
                start = depth - depth % double
                there = e.address(target, start // 2 * self.layout.width)
                self._pack_square(e, e.address(source, start * row_step), there, columns, depth % double)
        with e.loop(-(-depth // 2), self.layout.run_words) as loop:
            e.store(e.splat(0.0), target, e.mul(loop.index, self.layout.width))

    def _pack_rows(self, e: Emitter, source: IRValue, target: IRValue, count: int) -> None:
        """Write the packing of columns that are contiguous: two rows of them at a time."""
        depth, step = self.depth, self.strides[0]
        with e.loop(0, depth // 2) as loop:
            pair = [e.load(source, e.mul(loop.index, 2 * step), row * step, count=count) for row in range(2)]
            e.store(pair_lanes(e, *pair), target, e.mul(loop.index, self.layout.width))
        if depth % 2:
            last = e.load(source, (depth - 1) * step, count=count)
            e.store(pair_lanes(e, last, e.splat(0.0)), target, depth // 2 * self.layout.width)

    def _pack_square(
        self, e: Emitter, source: IRValue, target: IRValue, columns: tuple[IRIndex, int], count: int
    ) -> None:
        """Write the packing of `count` rows, which are contiguous in each column: pairs are transposed as a square."""
        first, valid = columns
        vectors = []
        for lane in range(self.lanes):
            # lanes beyond the last column repeat it: what they lead to is dropped
            column = e.address(source, e.mul(e.add(first, min(lane, valid - 1)), self.strides[1]))
            low = e.load(column, count=min(count, self.lanes))
            high = (
                e.load(column, self.lanes, count=count - self.lanes) if count > self.lanes else e.splat(0.0)
            )
            vectors.append(pair_up(e, low, high))
        for pair, vector in enumerate(e.transpose(vectors)[: -(-count // 2)]):
            e.store(vector, target, pair * self.layout.width)
