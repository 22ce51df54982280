"""Matrix products of two computed tensors, batched as attention needs them: a (rows x depth) by b (depth x columns).

Arguments: a, b, output, the epilogue's operands, then scratch memory where `packed`. Operands and output may have any
strides, so either operand may be transposed; only the output's columns are contiguous.

b is cut into panels of as many columns as the register tile is wide. Where its rows don't lie as the tile reads them,
or lie far apart, a chunk first copies each of its panels into scratch memory, row below row: a copy of depth x columns
numbers serves rows x depth x columns multiplications.

For the epilogue, the two axes of the batch are images and rows, the product's rows are pixels, its columns channels.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.target import Target
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.kernels.epilogue import NOTHING, Epilogue, Place, finish
from engine.compiler.kernels.shapes import MatrixShape
from engine.compiler.kernels.tile import Axis, Tile, choose_tile, emit_tile
from engine.compiler.memory.region import Region

_CHUNK = 1 << 20
"""Minimum multiplications of a chunk, about 15 microseconds: chunks of one panel each make a copy of it."""
_MOST_CHUNKS = 8
"""Chunks up to which the products of a batch are split."""
_WIDE = 4
"""Vectors of a panel, unless there are too few rows to keep the multipliers busy."""
_FEW_TILES = 2
"""Tiles of rows up to which a panel is read too seldom for a copy of it to pay."""
_FAR_ROWS = 2
"""Widths of a panel up to which its rows may lie apart and still share the cache well."""


@dataclass(frozen=True, slots=True)
class _Panel:
    """Columns of b that one tile covers.

    Attributes:
        start: the first one.
        valid: lanes of each vector that hold columns.
    """

    start: IRIndex
    valid: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Arrays:
    """Addresses of the operands and results of one product.

    Attributes:
        a: address of its first element.
        b: the same.
        out: the same.
        operands: operands of the epilogue: addresses of their first elements, of all products.
        scratch: memory of the thread, if it is needed.
    """

    a: IRValue
    b: IRValue
    out: IRValue
    operands: list[IRValue]
    scratch: IRValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixProductKernel:
    """A batch of matrix products of one exact shape.

    Attributes:
        shape: shape of the products.
        a_strides: elements between a's batches (two axes), rows and columns.
        b_strides: the same of b.
        out_strides: elements between the output's batches (two axes) and rows.
        tile: register tile.
        packed: whether panels of b are copied before they are used.
        panels: panels of one chunk.
        chunk_rows: rows of one chunk, a multiple of the tile's.
        lanes: float32 lanes of a vector.
        epilogue: operations on the results.
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
    ) -> "MatrixProductKernel":
        """Return the kernel with tile, packing and chunks chosen for a target."""
        rows, vectors = shape.rows, -(-shape.columns // target.lanes)
        # wide panels: the last one is written for its own width, so that what it lacks costs nothing
        tile = choose_tile(target, rows, vectors if rows < _WIDE else min(vectors, _WIDE))
        readable = b_strides[3] == 1 and shape.columns % target.lanes == 0
        far = b_strides[2] > _FAR_ROWS * tile.vectors * target.lanes
        wanted = min(_MOST_CHUNKS, shape.products * rows * shape.depth * shape.columns // _CHUNK)
        all_panels, all_tiles = -(-vectors // tile.vectors), -(-rows // tile.pixels)
        parts = max(1, wanted // shape.products)
        panel_parts = min(all_panels, parts)
        row_parts = min(all_tiles, parts // panel_parts)
        return cls(
            shape=shape,
            a_strides=a_strides,
            b_strides=b_strides,
            out_strides=out_strides,
            tile=tile,
            packed=not readable or (far and rows > _FEW_TILES * tile.pixels),
            panels=-(-all_panels // panel_parts),
            chunk_rows=-(-all_tiles // row_parts) * tile.pixels,
            lanes=target.lanes,
            epilogue=epilogue,
        )

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        return self.shape.regions(self.a_strides, self.b_strides, self.out_strides, self.epilogue)

    @property
    def scratch(self) -> int:
        """Elements of a panel, where it is copied."""
        return self.shape.depth * self._width if self.packed else 0

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        *_, panels, rows = self._parts
        return self.shape.products * panels * rows

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""
        outer, inner, panel_part, row_part = e.unravel(e.chunk, self._parts)
        first = e.mul(row_part, self.chunk_rows)
        rows = first, e.minimum(e.add(first, self.chunk_rows), self.shape.rows)
        arrays = self._arrays(e, (outer, inner))
        for panel in self._each_panel(e, panel_part, arrays):
            b, b_step = e.address(arrays.b, e.mul(panel.start, self.b_strides[3])), self.b_strides[2]
            if self.packed:
                b, b_step = arrays.scratch, self._width
            for start, count in self._each_tile(e, rows):
                product = self._multiply(e, arrays, (b, b_step), (start, count), panel)
                self._store(e, arrays, product, Place(outer, inner, start, panel.start), panel)

    @property
    def _width(self) -> int:
        """Columns of a panel."""
        return self.tile.vectors * self.lanes

    @property
    def _all_panels(self) -> int:
        return -(-self.shape.columns // self._width)

    @property
    def _parts(self) -> tuple[int, int, int, int]:
        """Parts that the batch's axes, panels and rows are split into."""
        return (
            *self.shape.batch,
            -(-self._all_panels // self.panels),
            -(-self.shape.rows // self.chunk_rows),
        )

    def _arrays(self, e: Emitter, at: tuple[IRIndex, IRIndex]) -> _Arrays:
        def of_product(place: int, strides: tuple[int, ...]) -> IRValue:
            return e.address(e.argument(place), e.mul(at[0], strides[0]), e.mul(at[1], strides[1]))

        count = len(self.epilogue.operands)
        operands = [e.argument(3 + place) for place in range(count)]
        scratch = e.address(e.argument(3 + count), e.mul(e.thread, self.scratch)) if self.packed else None
        return _Arrays(
            of_product(0, self.a_strides),
            of_product(1, self.b_strides),
            of_product(2, self.out_strides),
            operands,
            scratch,
        )

    def _each_panel(self, e: Emitter, part: IRIndex, arrays: _Arrays) -> Iterator[_Panel]:
        """Write the loop over a chunk's panels, each copied where it has to be; full ones and the last one apart."""
        first = e.mul(part, self.panels)
        full, rest = divmod(self.shape.columns, self._width)
        with e.loop(first, e.minimum(e.add(first, self.panels), self._all_panels)) as loop:
            start = e.mul(loop.index, self._width)
            if self.packed:
                _pack_panel(e, self, arrays, start)
            if full:
                with e.when(e.compare("<", loop.index, full)):
                    yield _Panel(start, (self.lanes,) * self.tile.vectors)
            if rest:
                valid = tuple(min(self.lanes, rest - done) for done in range(0, rest, self.lanes))
                with e.when(e.compare("==", loop.index, full)):
                    yield _Panel(start, valid)

    def _each_tile(self, e: Emitter, rows: tuple[IRIndex, IRIndex]) -> Iterator[tuple[IRIndex, int]]:
        """Write the loop over a chunk's tiles, as first row and count; the one that isn't full is written after it."""
        first, last = rows
        whole = self.shape.rows - self.shape.rows % self.tile.pixels
        if whole:
            with e.loop(first, e.minimum(last, whole), self.tile.pixels) as loop:
                yield loop.index, self.tile.pixels
        if whole < self.shape.rows:
            with e.when(e.compare(">", last, whole)):
                yield whole, self.shape.rows - whole

    def _multiply(
        self, e: Emitter, arrays: _Arrays, b: tuple[IRValue, int], rows: tuple[IRIndex, int], panel: _Panel
    ) -> list[IRValue]:
        """Write the product of some rows of a and a panel; returns the sums, a row's vectors together."""
        start, count = rows
        *_, row_step, step = self.a_strides
        tile = Tile(count, len(panel.valid))
        zeros = [e.splat(0.0)] * (tile.pixels * tile.vectors)
        a = e.address(arrays.a, e.mul(start, row_step))
        return emit_tile(e, tile, (Axis(self.shape.depth, step, b[1]),), a, row_step, b[0], zeros)

    def _store(self, e: Emitter, arrays: _Arrays, sums: list[IRValue], first: Place, panel: _Panel) -> None:
        """Write the epilogue and the stores of a tile whose first result belongs at a place."""
        out = e.address(arrays.out, e.mul(first.pixel, self.out_strides[2]), first.channel)
        vectors = len(panel.valid)
        for number, total in enumerate(sums):
            row, vector = divmod(number, vectors)
            channel = e.add(first.channel, vector * self.lanes)
            place = Place(first.image, first.row, e.add(first.pixel, row), channel)
            result = finish(e, self.epilogue, total, arrays.operands, place, panel.valid[vector])
            e.store(result, out, row * self.out_strides[2], vector * self.lanes, count=panel.valid[vector])


def _pack_panel(e: Emitter, product: MatrixProductKernel, arrays: _Arrays, start: IRIndex) -> None:
    """Write the copy of the panel that starts at a column into scratch memory, rows of its width below each other.

    Lanes beyond the columns may hold anything: the results that they lead to are never stored.
    """
    *_, row_step, column_step = product.b_strides
    source = e.address(arrays.b, e.mul(start, column_step))
    width = product.tile.vectors * product.lanes
    count = e.minimum(width, e.sub(product.shape.columns, start))
    if row_step == 1 and column_step != 1:
        _pack_transposed(e, product, (source, arrays.scratch), count)
        return
    with e.loop(0, product.shape.depth) as row:
        here = e.address(source, e.mul(row.index, row_step))
        there = e.address(arrays.scratch, e.mul(row.index, width))
        _pack_row(e, (here, there), column_step, count)


def _pack_row(e: Emitter, move: tuple[IRValue, IRValue], step: int, count: IRIndex) -> None:
    """Write the copy of the first `count` elements of a row with a step between them."""
    here, there = move
    whole: IRIndex = 0
    if step == 1:
        whole = e.mul(e.divmod(count, e.lanes)[0], e.lanes)
        with e.loop(0, whole, e.lanes) as column:
            e.store(e.load(here, column.index), there, column.index)
    with e.loop(whole, count) as column:
        e.store_scalar(e.load_scalar(here, e.mul(column.index, step)), there, column.index)


def _pack_transposed(
    e: Emitter, product: MatrixProductKernel, move: tuple[IRValue, IRValue], count: IRIndex
) -> None:
    """Write the copy of a panel of `count` columns, each of which is contiguous, in squares of vectors."""
    source, target = move
    column_step, width, lanes = product.b_strides[3], product.tile.vectors * product.lanes, product.lanes
    high = min(lanes, product.shape.depth)
    last_column = e.sub(count, 1)
    with e.loop(0, count, lanes) as column, e.loop(0, product.shape.depth, lanes) as row:
        # squares at an end repeat what their neighbours did: the last column, and rows of the square before
        top = e.minimum(row.index, product.shape.depth - high)
        columns = [e.minimum(e.add(column.index, lane), last_column) for lane in range(lanes)]
        square = [e.load(source, e.mul(place, column_step), top, count=high) for place in columns]
        there = e.address(target, e.mul(top, width), column.index)
        for lane, vector in enumerate(e.transpose(square)[:high]):
            e.store(vector, there, lane * width)
