"""Matrix products of two computed tensors, batched as attention needs them: a (rows x depth) by b (depth x columns).

Arguments: a, b, output, the epilogue's operands, scratch memory where `packed`, then `sizes`. Operands and output may
have any strides, so either operand may be transposed; only the output's columns are contiguous.

b is cut into panels of as many columns as the register tile is wide. Where its rows don't lie as the tile reads them,
or lie far apart, a chunk first copies each of its panels into scratch memory, row below row: a copy of depth x columns
numbers serves rows x depth x columns multiplications.

Extents and strides are numbers, or runtime dimensions. One code serves all of the latter: it packs all panels, takes
the last one with masks, and finishes rows in ever smaller tiles.

For the epilogue, the two axes of the batch are images and rows, the product's rows are pixels, its columns channels.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from engine.compiler.contraction.epilogue import NOTHING, Epilogue, Place, finish
from engine.compiler.contraction.shapes import MatrixShape
from engine.compiler.contraction.tile import Axis, Tile, choose_tile, each_tile, emit_tile
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.runtime_sizes import RuntimeSizes, only_ones
from engine.compiler.emit.target import Target
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.memory.region import Region

_CHUNK = 1 << 20
"""Minimum multiplications of a chunk, about 15 microseconds: chunks of one panel each make a copy of it."""
_MAX_CHUNKS = 8
"""Chunks up to which the products of a batch are split."""
_WIDE = 4
"""Vectors of a panel, unless there are too few rows to keep the multipliers busy."""
_FEW_TILES = 2
"""Tiles of rows up to which a panel is read too seldom for a copy of it to pay."""
_FAR_ROWS = 2
"""Widths of a panel up to which its rows may lie apart and still share the cache well."""
_DYNAMIC_ROWS, _DYNAMIC_VECTORS = 64, 2
"""Rows that a tile is chosen for where their number is not known, as high tiles leave much to small ones; and vectors
of a panel where the number of columns is not known, as what the last one lacks is computed all the same."""


@dataclass(frozen=True, slots=True)
class _Panel:
    """Columns of b that one tile covers.

    Attributes:
        base: address of its first element.
        step: elements between its rows.
        start: the first column.
        valid: lanes of each vector that hold columns.
    """

    base: IRValue
    step: IRIndex
    start: IRIndex
    valid: tuple[IRIndex, ...]


@dataclass(frozen=True, slots=True)
class _Arrays:
    """Addresses of the operands and results of one product.

    Attributes:
        a: address of its first element.
        b: the same.
        out: the same.
        operands: operands of the epilogue: addresses of their first elements, of all products.
        packed: memory of the thread for a panel, if it is copied.
    """

    a: IRValue
    b: IRValue
    out: IRValue
    operands: list[IRValue]
    packed: IRValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixProductKernel:
    """A batch of matrix products.

    Attributes:
        shape: shape of the products.
        a_strides: elements between a's batches (two axes), rows and columns.
        b_strides: the same of b.
        out_strides: elements between the output's batches (two axes) and rows.
        tile: register tile.
        packed: whether panels of b are copied before they are used.
        panels: panels of one chunk; all of them where extents are runtime dimensions.
        chunk_rows: rows of one chunk, a multiple of the tile's.
        lanes: float32 lanes of a vector.
        epilogue: operations on the results.
        is_dynamic: whether extents and strides other than 1 are runtime dimensions.
    """

    shape: MatrixShape
    a_strides: tuple[int, int, int, int]
    b_strides: tuple[int, int, int, int]
    out_strides: tuple[int, int, int]
    tile: Tile
    packed: bool
    panels: int
    chunk_rows: int
    lanes: int
    epilogue: Epilogue = NOTHING
    is_dynamic: bool = False

    @classmethod
    def tuned(
        cls,
        target: Target,
        *,
        shape: MatrixShape,
        a_strides: tuple[int, int, int, int],
        b_strides: tuple[int, int, int, int],
        out_strides: tuple[int, int, int],
        epilogue: Epilogue = NOTHING,
        is_dynamic: bool = False,
    ) -> "MatrixProductKernel":
        """Return the kernel with tile, packing and chunks chosen for a target."""
        rows, vectors = shape.rows, -(-shape.columns // target.lanes)
        if is_dynamic:
            tile = choose_tile(target, _DYNAMIC_ROWS, _DYNAMIC_VECTORS)
        else:
            # wide panels: the last one is written for its own width, so that what it lacks costs nothing
            tile = choose_tile(target, rows, vectors if rows < _WIDE else min(vectors, _WIDE))
        readable = b_strides[3] == 1 and shape.columns % target.lanes == 0
        far = b_strides[2] > _FAR_ROWS * tile.vectors * target.lanes
        wanted = min(_MAX_CHUNKS, shape.products * rows * shape.depth * shape.columns // _CHUNK)
        all_panels, all_tiles = -(-vectors // tile.vectors), -(-rows // tile.pixels)
        parts = max(1, wanted // shape.products)
        panel_parts = 1 if is_dynamic else min(all_panels, parts)
        row_parts = min(all_tiles, parts // panel_parts)
        return cls(
            shape=shape,
            a_strides=a_strides,
            b_strides=b_strides,
            out_strides=out_strides,
            tile=tile,
            packed=is_dynamic or not readable or (far and rows > _FEW_TILES * tile.pixels),
            panels=-(-all_panels // panel_parts),
            chunk_rows=-(-all_tiles // row_parts) * tile.pixels,
            lanes=target.lanes,
            epilogue=epilogue,
            is_dynamic=is_dynamic,
        )

    @property
    def general(self) -> "MatrixProductKernel":
        """The kernel whose code this one runs."""
        if not self.is_dynamic:
            return self
        operands = tuple(
            replace(operand, strides=(0,) * len(operand.strides)) for operand in self.epilogue.operands
        )
        return replace(
            self,
            shape=MatrixShape(batch=(0, 0), rows=0, depth=0, columns=0),
            a_strides=only_ones(self.a_strides),
            b_strides=only_ones(self.b_strides),
            out_strides=only_ones(self.out_strides),
            panels=0,
            chunk_rows=0,
            epilogue=replace(self.epilogue, operands=operands),
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The runtime dimensions of the code."""
        if not self.is_dynamic:
            return ()
        shape, operands = self.shape, [operand.strides for operand in self.epilogue.operands]
        strides = (self.a_strides, self.b_strides, self.out_strides, *operands)
        extents = (*shape.batch, shape.rows, shape.depth, shape.columns, self.chunk_rows)
        return (*extents, *(step for array in strides for step in array))

    def _with_runtime_sizes(self, sizes: RuntimeSizes) -> "MatrixProductKernel":
        """Return the kernel with the extents and strides read at run time."""
        batch = (sizes.one(), sizes.one())
        shape = MatrixShape(batch=batch, rows=sizes.one(), depth=sizes.one(), columns=sizes.one())
        chunk_rows = sizes.one()
        a, b, out = map(sizes.some, (self.a_strides, self.b_strides, self.out_strides))
        operands = tuple(
            replace(operand, strides=sizes.some(operand.strides)) for operand in self.epilogue.operands
        )
        return replace(
            self,
            shape=shape,
            a_strides=a,
            b_strides=b,
            out_strides=out,
            chunk_rows=chunk_rows,
            epilogue=replace(self.epilogue, operands=operands),
        )

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        return self.shape.regions(self.a_strides, self.b_strides, self.out_strides, self.epilogue)

    @property
    def scratch(self) -> int:
        """Elements of a panel, where it is copied; of runtime dimensions its rows are rounded up to whole vectors."""
        rows = self.lanes if self.is_dynamic else 1
        return -(-self.shape.depth // rows) * rows * self._width if self.packed else 0

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        panels = -(-self._all_panels // self.panels)
        return prod((self.shape.products, panels, -(-self.shape.rows // self.chunk_rows)))

    @property
    def _width(self) -> int:
        """Columns of a panel."""
        return self.tile.vectors * self.lanes

    @property
    def _all_panels(self) -> int:
        return -(-self.shape.columns // self._width)

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""
        if not self.is_dynamic:
            self._emit(e, self.scratch)
            return
        kernel = self._with_runtime_sizes(RuntimeSizes(e, 4 + len(self.epilogue.operands)))
        vectors = e.ceil_divide(kernel.shape.depth, self.lanes)
        kernel._emit(e, e.mul(vectors, self.lanes * self._width))

    def _emit(self, e: Emitter, scratch: IRIndex) -> None:
        """Write the loops over the panels and tiles of a chunk; `scratch` is the memory of one thread."""
        panel_parts = 1 if self.is_dynamic else -(-self._all_panels // self.panels)
        parts = (*self.shape.batch, panel_parts, e.ceil_divide(self.shape.rows, self.chunk_rows))
        outer, inner, panel_part, row_part = e.unravel(e.chunk, parts)
        first = e.mul(row_part, self.chunk_rows)
        rows = first, e.add(first, self.chunk_rows)
        arrays = self._arrays(e, (outer, inner), scratch)
        for panel in self._each_panel(e, panel_part, arrays):
            for start, count in each_tile(e, rows, self.shape.rows, self.tile.pixels):
                sums = self._multiply(e, arrays, panel, (start, count))
                self._store(e, arrays, sums, Place(outer, inner, start, panel.start), panel)

    def _arrays(self, e: Emitter, at: tuple[IRIndex, IRIndex], scratch: IRIndex) -> _Arrays:
        def of_product(place: int, strides: tuple[int, ...]) -> IRValue:
            return e.address(e.argument(place), e.mul(at[0], strides[0]), e.mul(at[1], strides[1]))

        count = len(self.epilogue.operands)
        operands = [e.argument(3 + place) for place in range(count)]
        packed = e.address(e.argument(3 + count), e.mul(e.thread, scratch)) if self.packed else None
        a, b, out = (
            of_product(place, strides)
            for place, strides in enumerate((self.a_strides, self.b_strides, self.out_strides))
        )
        return _Arrays(a, b, out, operands, packed)

    def _each_panel(self, e: Emitter, part: IRIndex, arrays: _Arrays) -> Iterator[_Panel]:
        """Write the loop over a chunk's panels, each copied where it has to be; full ones and the last one apart."""
        if self.is_dynamic:
            with e.loop(0, self.shape.columns, self._width) as loop:
                left = [e.sub(self.shape.columns, loop.index)]
                left += [e.sub(left[0], vector * self.lanes) for vector in range(1, self.tile.vectors)]
                yield self._panel(e, arrays, loop.index, left)
            return
        first = e.mul(part, self.panels)
        full, rest = divmod(self.shape.columns, self._width)
        with e.loop(first, e.minimum(e.add(first, self.panels), self._all_panels)) as loop:
            start = e.mul(loop.index, self._width)
            panel = self._panel(e, arrays, start, [self.lanes] * self.tile.vectors)
            if full:
                with e.when(e.compare("<", loop.index, full)):
                    yield panel
            if rest:
                valid = tuple(min(self.lanes, rest - done) for done in range(0, rest, self.lanes))
                with e.when(e.compare("==", loop.index, full)):
                    yield replace(panel, valid=valid)

    def _panel(self, e: Emitter, arrays: _Arrays, start: IRIndex, valid: list[IRIndex]) -> _Panel:
        """Return the panel that starts at a column, copied where it has to be."""
        source, packed = e.address(arrays.b, e.mul(start, self.b_strides[3])), arrays.packed
        if packed is None:
            return _Panel(source, self.b_strides[2], start, tuple(valid))
        count = e.minimum(self._width, e.sub(self.shape.columns, start))
        if self.is_dynamic:
            # what else is computed of the last panel is never stored, but what other kernels left there, integers for
            # example, could be numbers that are too small to be multiplied fast
            size = e.mul(self.shape.depth, self._width)
            with e.when(e.compare("<", count, self._width)), e.loop(0, size, self.lanes) as loop:
                e.store(e.splat(0.0), packed, loop.index)
        self._pack(e, source, packed, count)
        return _Panel(packed, self._width, start, tuple(valid))

    def _pack(self, e: Emitter, source: IRValue, packed: IRValue, count: IRIndex) -> None:
        """Write the copy of a panel of `count` columns into scratch memory, rows of its width below each other.

        Lanes beyond the columns may hold anything: the results that they lead to are never stored.
        """
        *_, row_step, column_step = self.b_strides
        if row_step == 1 and column_step != 1:
            self._pack_transposed(e, source, packed, count)
            return
        with e.loop(0, self.shape.depth) as row:
            here = e.address(source, e.mul(row.index, row_step))
            there = e.address(packed, e.mul(row.index, self._width))
            if column_step == 1:
                whole = e.mul(e.divmod(count, e.lanes)[0], e.lanes)
                for first, end, lanes in ((0, whole, e.lanes), (whole, count, e.sub(count, whole))):
                    with e.loop(first, end, e.lanes) as column:
                        e.store(e.load(here, column.index, count=lanes), there, column.index, count=lanes)
            else:
                with e.loop(0, count) as column:
                    e.store_scalar(e.load_scalar(here, e.mul(column.index, column_step)), there, column.index)

    def _pack_transposed(self, e: Emitter, source: IRValue, packed: IRValue, count: IRIndex) -> None:
        """Write the copy of a panel of `count` columns, each of which is contiguous, in squares of vectors."""
        depth, lanes = self.shape.depth, self.lanes
        high = lanes if self.is_dynamic else min(lanes, depth)
        last_column = e.sub(count, 1)
        with e.loop(0, count, lanes) as column, e.loop(0, depth, lanes) as row:
            # the square at the end repeats rows of the square before, where there is one for certain
            top = row.index if self.is_dynamic else e.minimum(row.index, depth - high)
            there = e.sub(depth, row.index) if self.is_dynamic else high
            # beyond the last column, that one is repeated
            columns = [e.minimum(e.add(column.index, lane), last_column) for lane in range(lanes)]
            square = [e.load(source, e.mul(place, self.b_strides[3]), top, count=there) for place in columns]
            target = e.address(packed, e.mul(top, self._width), column.index)
            for lane, vector in enumerate(e.transpose(square)[:high]):
                e.store(vector, target, lane * self._width)

    def _multiply(
        self, e: Emitter, arrays: _Arrays, panel: _Panel, rows: tuple[IRIndex, int]
    ) -> list[IRValue]:
        """Write the product of some rows of a and a panel; returns the sums, a row's vectors together."""
        start, count = rows
        *_, row_step, step = self.a_strides
        tile = Tile(count, len(panel.valid))
        zeros = [e.splat(0.0)] * (tile.pixels * tile.vectors)
        a = e.address(arrays.a, e.mul(start, row_step))
        axis = Axis(self.shape.depth, step, panel.step)
        return emit_tile(e, tile, (axis,), a, row_step, panel.base, zeros)

    def _store(self, e: Emitter, arrays: _Arrays, sums: list[IRValue], first: Place, panel: _Panel) -> None:
        """Write the epilogue and the stores of a tile whose first result belongs at a place."""
        out = e.address(arrays.out, e.mul(first.pixel, self.out_strides[2]), first.channel)
        for number, total in enumerate(sums):
            row, vector = divmod(number, len(panel.valid))
            valid = panel.valid[vector]
            channel = e.add(first.channel, vector * self.lanes)
            place = Place(first.image, first.row, e.add(first.pixel, row), channel)
            result = finish(e, self.epilogue, total, arrays.operands, place, valid)
            e.store(result, out, e.mul(row, self.out_strides[2]), vector * self.lanes, count=valid)
