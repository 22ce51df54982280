"""A matrix times packed weights; the number of rows is a runtime dimension.

Arguments: as of `DirectConvolution`, whose image of one row holds the matrix's rows as pixels, then the number of rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.compiler.contraction.convolution import DirectConvolution
from engine.compiler.contraction.convolution_chunk import Block, Chunk, Source
from engine.compiler.contraction.tile import LINE, Axis, Prefetch, each_tile, steps_of
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRIndex, IRValue

_LINES = 2
"""Cache lines of weights that each step of a tile prefetches: some six tiles bring all of the next block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicLinear(DirectConvolution):
    """A linear layer; all but the number of rows is in the code. What whole tiles leave is done in smaller ones."""

    @property
    def general(self) -> "DynamicLinear":
        """The kernel whose code this one runs."""
        return replace(self, shape=replace(self.shape, size=(1, 0)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The runtime dimensions of the code."""
        return (self.shape.size[1],)

    @property
    def packing(self) -> DirectConvolution:
        """The kernel whose packed weights these are as well."""
        return DirectConvolution(
            shape=self.shape, strides=self.strides, tile=self.tile, chunk=self.chunk, lanes=self.lanes
        )

    @property
    def _rows(self) -> int:
        """Rows of a chunk."""
        return self.chunk.tiles * self.tile.pixels

    def _all_rows(self, e: Emitter) -> IRValue:
        return e.size(4 + len(self.epilogue.operands))

    def _grid(self, e: Emitter) -> Sequence[IRIndex]:
        """Return the parts of blocks, images, rows of an image and pixels."""
        blocks = -(-self.group_blocks // self.chunk.blocks)
        return blocks, 1, 1, e.divmod(e.add(self._all_rows(e), self._rows - 1), self._rows)[0]

    def _chunk(self, e: Emitter, arguments: list[IRValue], source: Source, part: list[IRIndex]) -> Chunk:
        """Return what a call works on; its `tiles` are the rows, one by one."""
        first = e.mul(part[3], self._rows)
        last = e.minimum(e.add(first, self._rows), self._all_rows(e))
        return Chunk(arguments, source, image=0, rows=(0, 1), tiles=(first, last), has_rest=None)

    def _prefetch(
        self, e: Emitter, weights: IRValue, axes: tuple[Axis, ...], at: tuple[IRIndex, IRIndex]
    ) -> Prefetch:
        """Return the part of the next block's weights that the tile at a place prefetches."""
        size, steps = self.shape.channels * self.width, steps_of(axes)
        parts = -(-size // (LINE * steps * _LINES))
        place = e.divmod(e.divmod(at[1], self.tile.pixels)[0], parts)[1]
        return Prefetch(e.address(weights, size, e.mul(place, _LINES * LINE * steps)), _LINES)

    def _emit_block(self, e: Emitter, chunk: Chunk, block: Block) -> None:
        """Write the loops over tiles of each height, for one block of filters."""
        for at, height in each_tile(e, chunk.tiles, self._all_rows(e), self.tile.pixels):
            self._emit_tile(e, chunk, block, (0, at), height)
