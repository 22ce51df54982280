"""Matrix products of two computed tensors whose extents and strides are runtime dimensions.

Arguments: a, b, output, the epilogue's operands, scratch memory, then `sizes`. Strides of 1 are in the code.

b is cut into panels as wide as the register tile. A chunk copies each of its panels into scratch memory, row below row.
Of the last panel, lanes beyond the columns hold 0: the results that they lead to are never stored, but what other
kernels left there, integers for example, could be numbers that are too small to be multiplied fast.
"""

from dataclasses import dataclass, replace
from math import prod

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.kernels.epilogue import NOTHING, Epilogue, Place, finish
from engine.compiler.kernels.lines import emit_fold
from engine.compiler.kernels.runtime_sizes import RuntimeSizes, only_ones
from engine.compiler.kernels.shapes import MatrixShape
from engine.compiler.kernels.tile import Axis, Tile, emit_tile, tails
from engine.compiler.memory.region import Region

_CHUNK = 1 << 20
"""Minimum multiplications of a chunk, about 15 microseconds."""
_MOST_CHUNKS = 8
"""Chunks up to which the products of a batch are split."""
_UNROLL = 4
"""Steps of the reduction that a loop does at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicMatrixProduct:
    """A batch of matrix products.

    Attributes:
        shape: shape of the products.
        a_strides: elements between a's batches (two axes), rows and columns.
        b_strides: the same of b.
        out_strides: elements between the output's batches (two axes) and rows.
        tile: register tile.
        lanes: float32 lanes of a vector.
        epilogue: operations on the results.
    """

    shape: MatrixShape
    a_strides: tuple[int, int, int, int]
    b_strides: tuple[int, int, int, int]
    out_strides: tuple[int, int, int]
    tile: Tile
    lanes: int
    epilogue: Epilogue = NOTHING

    @property
    def general(self) -> "DynamicMatrixProduct":
        """The kernel whose code this one runs."""
        operands = tuple(
            replace(operand, strides=(0,) * len(operand.strides)) for operand in self.epilogue.operands
        )
        return replace(
            self,
            shape=MatrixShape(batch=(0, 0), rows=0, depth=0, columns=0),
            a_strides=only_ones(self.a_strides),
            b_strides=only_ones(self.b_strides),
            out_strides=only_ones(self.out_strides),
            epilogue=replace(self.epilogue, operands=operands),
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The runtime dimensions of the code."""
        shape = self.shape
        strides = (self.a_strides, self.b_strides, self.out_strides)
        operands = [operand.strides for operand in self.epilogue.operands]
        return (
            *(*shape.batch, shape.rows, shape.depth, shape.columns),
            *(step for array in (*strides, *operands) for step in array),
            *(self._row_parts, self._chunk_rows, self.scratch),
        )

    def _with_runtime_sizes(self, sizes: RuntimeSizes) -> "DynamicMatrixProduct":
        """Return the kernel with the extents and strides read at run time."""
        batch = (sizes.one(), sizes.one())
        shape = MatrixShape(batch=batch, rows=sizes.one(), depth=sizes.one(), columns=sizes.one())
        a, b, out = map(sizes.some, (self.a_strides, self.b_strides, self.out_strides))
        operands = tuple(
            replace(operand, strides=sizes.some(operand.strides)) for operand in self.epilogue.operands
        )
        epilogue = replace(self.epilogue, operands=operands)
        return replace(self, shape=shape, a_strides=a, b_strides=b, out_strides=out, epilogue=epilogue)

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        return self.shape.regions(self.a_strides, self.b_strides, self.out_strides, self.epilogue)

    @property
    def scratch(self) -> int:
        """Elements of a panel, its rows rounded up to whole vectors."""
        return -(-self.shape.depth // self.lanes) * self.lanes * self._width

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return self.shape.products * self._row_parts

    @property
    def _row_parts(self) -> int:
        """Parts that the rows of a product are split into."""
        shape = self.shape
        work = prod((shape.products, shape.rows, shape.depth, shape.columns))
        wanted = min(_MOST_CHUNKS, work // _CHUNK) // shape.products
        return max(1, min(wanted, -(-shape.rows // self.tile.pixels)))

    @property
    def _chunk_rows(self) -> int:
        """Rows of one chunk, a multiple of the tile's."""
        tiles = -(-self.shape.rows // self.tile.pixels)
        return -(-tiles // self._row_parts) * self.tile.pixels

    @property
    def _width(self) -> int:
        """Columns of a panel."""
        return self.tile.vectors * self.lanes

    @property
    def _b_steps(self) -> tuple[IRIndex, IRIndex]:
        """Elements between b's rows and its columns; Python numbers where they are in the code."""
        return self.b_strides[2], self.b_strides[3]

    def emit(self, e: Emitter) -> None:
        """Write the kernel: the loop over the panels of a chunk's rows."""
        count = 4 + len(self.epilogue.operands)
        *arguments, scratch = (e.argument(place) for place in range(count))
        sizes = RuntimeSizes(e, count)
        kernel = self._with_runtime_sizes(sizes)
        row_parts, chunk_rows, scratch_size = (sizes.one() for _ in range(3))
        panel = e.address(scratch, e.mul(e.thread, scratch_size))
        kernel._emit_chunk(e, arguments, panel, (row_parts, chunk_rows))

    def _emit_chunk(
        self, e: Emitter, arguments: list[IRValue], panel: IRValue, parts: tuple[IRIndex, IRIndex]
    ) -> None:
        row_parts, chunk_rows = parts
        outer, inner, part = e.unravel(e.chunk, (*self.shape.batch, row_parts))
        a, b, out = (
            e.address(base, e.mul(outer, strides[0]), e.mul(inner, strides[1]))
            for base, strides in zip(
                arguments[:3], (self.a_strides, self.b_strides, self.out_strides), strict=True
            )
        )
        first = e.mul(part, chunk_rows)
        rows = first, e.minimum(e.add(first, chunk_rows), self.shape.rows)
        with e.loop(0, self.shape.columns, self._width) as loop:
            columns = e.sub(self.shape.columns, loop.index)
            source = e.address(b, e.mul(loop.index, self.b_strides[3]))
            self._pack(e, source, panel, e.minimum(columns, self._width))
            at = Place(outer, inner, 0, loop.index)
            self._emit_rows(e, (a, panel, out), arguments[3:], rows, at)

    def _emit_rows(
        self,
        e: Emitter,
        arrays: tuple[IRValue, IRValue, IRValue],
        operands: list[IRValue],
        rows: tuple[IRIndex, IRIndex],
        at: Place,
    ) -> None:
        """Write the loops over tiles of each height, for one panel."""
        a, panel, out = arrays
        first, end = rows
        for height in tails(self.tile.pixels):
            stop = e.add(first, e.mul(e.divmod(e.sub(end, first), height)[0], height))
            with e.loop(first, stop, height) as loop:
                source = e.address(a, e.mul(loop.index, self.a_strides[2]))
                sums = self._multiply(e, source, panel, height)
                for number, total in enumerate(sums):
                    row, vector = divmod(number, self.tile.vectors)
                    pixel, channel = e.add(loop.index, row), e.add(at.channel, vector * self.lanes)
                    count = e.sub(self.shape.columns, channel)
                    place = Place(at.image, at.row, pixel, channel)
                    result = finish(e, self.epilogue, total, operands, place, count)
                    e.store(result, out, e.mul(pixel, self.out_strides[2]), channel, count=count)
            first = stop

    def _multiply(self, e: Emitter, a: IRValue, panel: IRValue, height: int) -> list[IRValue]:
        """Write the product of some rows of a and a panel; returns the sums, a row's vectors together."""
        tile = Tile(height, self.tile.vectors)
        sums = [e.splat(0.0)] * (tile.pixels * tile.vectors)
        depth, (*_, row_step, step) = self.shape.depth, self.a_strides
        whole = e.mul(e.divmod(depth, _UNROLL)[0], _UNROLL)
        for first, count, unroll in ((0, whole, _UNROLL), (whole, e.sub(depth, whole), 1)):
            axes = (Axis(count, step, self._width, unroll),)
            here = e.address(a, e.mul(first, step))
            sums = emit_tile(e, tile, axes, here, row_step, e.address(panel, e.mul(first, self._width)), sums)
        return sums

    def _pack(self, e: Emitter, source: IRValue, panel: IRValue, count: IRIndex) -> None:
        """Write the copy of a panel of `count` columns into scratch memory."""
        has_rest, size = e.compare("<", count, self._width), e.mul(self.shape.depth, self._width)
        with e.when(has_rest), e.loop(0, size, self.lanes) as loop:
            e.store(e.splat(0.0), panel, loop.index)
        row_step, column_step = self._b_steps
        if isinstance(row_step, int) and not isinstance(column_step, int):
            self._pack_transposed(e, source, panel, count)
            return
        with e.loop(0, self.shape.depth) as row:
            here = e.address(source, e.mul(row.index, row_step))
            there = e.address(panel, e.mul(row.index, self._width))
            self._pack_row(e, here, there, count)

    def _pack_row(self, e: Emitter, source: IRValue, target: IRValue, count: IRIndex) -> None:
        """Write the copy of a row of a panel."""
        step = self._b_steps[1]
        if not isinstance(step, int):
            with e.loop(0, count) as loop:
                e.store_scalar(e.load_scalar(source, e.mul(loop.index, step)), target, loop.index)
            return

        def copy(index: IRIndex, lanes: IRIndex, totals: list[IRValue]) -> list[IRValue]:
            e.store(e.load(source, index, count=lanes), target, index, count=lanes)
            return totals

        emit_fold(e, count, [], copy)

    def _pack_transposed(self, e: Emitter, source: IRValue, panel: IRValue, count: IRIndex) -> None:
        """Write the copy of a panel whose columns are contiguous each, in squares of vectors."""
        last, lanes = e.sub(count, 1), self.lanes
        with e.loop(0, count, lanes) as column, e.loop(0, self.shape.depth, lanes) as row:
            # beyond the last column, that one is repeated
            columns = [e.minimum(e.add(column.index, lane), last) for lane in range(lanes)]
            left = e.sub(self.shape.depth, row.index)
            square = [
                e.load(source, e.mul(place, self.b_strides[3]), row.index, count=left) for place in columns
            ]
            there = e.address(panel, e.mul(row.index, self._width), column.index)
            for lane, vector in enumerate(e.transpose(square)):
                e.store(vector, there, lane * self._width)
