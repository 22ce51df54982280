"""The tiles of Winograd convolutions: how patches and results are transformed, and where they lie meanwhile.

F(4x4, 3x3) computes 4x4 outputs from a patch of 6x6 inputs with 36 multiplications instead of 144 (Lavin and Gray,
"Fast Algorithms for Convolutional Neural Networks", 2015): a patch d and a filter g give

    A^T [ (G g G^T) * (B^T d B) ] A

so that every position of the patch is a matrix product of its own over tiles x channels x filters. In channels-last
layout each step works on whole vectors of channels. A chunk does all three steps for some tiles, whose intermediates
stay in the thread's scratch memory and so in its cache. There they lie strip by strip, a strip being the tiles that are
multiplied together: so where an element lies does not depend on the number of tiles, and batches of all sizes share
one kernel's code.
"""

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Self

from engine.compiler.contraction.epilogue import NOTHING, Epilogue, Place, each_kept, finish
from engine.compiler.contraction.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.contraction.tile import Tile
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.pointwise import is_long
from engine.compiler.emit.runtime_sizes import Sized, Sizes
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.kernels.winograd_transforms import OUTPUTS, PATCH, POSITIONS, RESULT, SIDE, transformed
from engine.compiler.memory.region import Region, line


@dataclass(frozen=True, slots=True, kw_only=True)
class WinogradTiles(Sized):
    """A 3x3 convolution with stride 1 of one exact shape, without dilation and groups.

    Attributes:
        shape: shape of the convolution.
        padding: zeros around the input.
        strides: elements between images, rows and pixels of input and output.
        tiles: tiles of one chunk.
        tile: register tile of the matrix products.
        lanes: float32 lanes of a vector.
        epilogue: operations on the results.
        is_dynamic: whether rows and columns are runtime dimensions, as numbers of images and tiles always are.
    """

    shape: ConvShape
    padding: ImplicitPadding
    strides: ImageStrides
    tiles: int
    tile: Tile
    lanes: int
    epilogue: Epilogue = NOTHING
    is_dynamic: bool = False

    def sized(self, sizes: Sizes) -> Self:
        """Return the kernel with what stands for its runtime dimensions."""
        tiles = sizes.extent(self.tiles) if self._has_runtime_tiles else self.tiles
        if not self.is_dynamic:
            shape = replace(self.shape, images=sizes.extent(self.shape.images))
            return replace(self, shape=shape, tiles=tiles)
        return replace(
            self,
            shape=self.shape.sized(sizes),
            tiles=tiles,
            padding=self.padding.sized(sizes),
            strides=self.strides.sized(sizes),
            epilogue=self.epilogue.sized(sizes),
        )

    @property
    def _has_runtime_tiles(self) -> bool:
        return True

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of tiles of an image."""
        return -(-self.shape.size[0] // OUTPUTS), -(-self.shape.size[1] // OUTPUTS)

    @property
    def all_tiles(self) -> int:
        """Tiles of the whole batch."""
        return self.shape.images * self.grid[0] * self.grid[1]

    @property
    def _depth(self) -> int:
        """Channels, rounded up to whole vectors."""
        return -(-self.shape.channels // self.lanes) * self.lanes

    @property
    def _width(self) -> int:
        """Filters of a block."""
        return self.tile.vectors * self.lanes

    @property
    def _blocks(self) -> int:
        return -(-self.shape.filters // self._width)

    @property
    @abstractmethod
    def _products_width(self) -> int:
        """Filters whose products are contiguous in scratch memory."""

    @property
    @abstractmethod
    def packed_sizes(self) -> tuple[int, int]:
        """Elements of packed weights and bias."""

    @property
    def _planes(self) -> tuple[int, int]:
        """Elements between two positions of a strip's transformed patches, and of its products.

        An odd number of cache lines, so that a tile's positions do not meet in the same sets of the cache.
        """
        line, height = max(self.lanes, 16), self.tile.pixels
        patches, products = (
            (-(-height * width // line) | 1) * line for width in (self._depth, self._products_width)
        )
        return patches, products

    @property
    def _strip(self) -> int:
        """Elements of a strip's transformed patches and of its products."""
        return POSITIONS * sum(self._planes)

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        shape = self.shape
        x, out = shape.regions(self.padding.x_size, self.strides)
        operands = self.epilogue.regions(shape.images, shape.size, shape.filters)
        return x, *map(line, self.packed_sizes), out, *operands

    @property
    def scratch(self) -> int:
        """Elements of scratch memory that each thread needs: its own, and the strips of a chunk, each of them whole."""
        return self._shared_scratch + -(-self.tiles // self.tile.pixels) * self._strip

    @property
    def _shared_scratch(self) -> int:
        """Elements for one patch that reaches over the border."""
        return POSITIONS * self._depth

    def _begin(self, e: Emitter) -> tuple[list[IRValue], IRValue, IRIndex]:
        """Return the arguments without scratch memory, the thread's part of that, and the number of all tiles."""
        *arguments, scratch = (e.argument(place) for place in range(5 + len(self.epilogue.operands)))
        strips = e.mul(e.ceil_divide(self.tiles, self.tile.pixels), self._strip)
        border = e.address(scratch, e.mul(e.thread, e.add(self._shared_scratch, strips)))
        return arguments, border, e.product((self.shape.images, *self._grid(e)))

    def _grid(self, e: Emitter) -> tuple[IRIndex, IRIndex]:
        """Return the rows and columns of tiles of an image."""
        rows, columns = self.shape.size
        return e.ceil_divide(rows, OUTPUTS), e.ceil_divide(columns, OUTPUTS)

    def _row(self, e: Emitter, strips: IRValue, place: IRIndex, width: int) -> IRValue:
        """Return the address of a tile's row in its strip, of rows as wide as given."""
        strip, row = e.divmod(place, self.tile.pixels)
        return e.address(strips, e.mul(strip, self._strip), e.mul(row, width))

    def _transform_patch(
        self, e: Emitter, x: IRValue, strips: IRValue, border: IRValue, tile: IRIndex, place: IRIndex
    ) -> None:
        """Write B^T d B of one tile into its row of every position's matrix."""
        image, row, column = e.unravel(tile, (self.shape.images, *self._grid(e)))
        top = e.sub(e.mul(row, OUTPUTS), self.padding.before[0])
        left = e.sub(e.mul(column, OUTPUTS), self.padding.before[1])
        inside = e.both(
            e.compare(">=", top, 0),
            e.compare(">=", left, 0),
            e.compare("<=", e.add(top, SIDE), self.padding.x_size[0]),
            e.compare("<=", e.add(left, SIDE), self.padding.x_size[1]),
        )
        corner = e.address(x, *self._offset(e, (image, top, left)))
        with e.when(e.builder.not_(inside)):
            self._copy_border(e, corner, border, top, left)
        source = e.select(inside, corner, border)
        row_step = e.select(inside, e.index(self.strides.x[1]), e.index(SIDE * self._depth))
        pixel_step = e.select(inside, e.index(self.strides.x[2]), e.index(self._depth))
        target = self._row(e, strips, place, self._depth)
        whole = self.shape.channels // self.lanes * self.lanes
        rows = [e.address(source, e.mul(i, row_step)) for i in range(SIDE)]
        with e.loop(0, whole, self.lanes) as loop:
            self._transform_channels(e, rows, pixel_step, target, loop.index, None)
        if whole < self.shape.channels:
            rest = self.shape.channels - whole
            self._transform_channels(e, rows, pixel_step, target, whole, rest)

    def _transform_channels(
        self,
        e: Emitter,
        rows: Sequence[IRValue],
        pixel_step: IRIndex,
        target: IRValue,
        channel: IRIndex,
        count: int | None,
    ) -> None:
        def load(row: IRIndex, column: IRIndex) -> IRValue:
            return e.load(rows[row], e.mul(column, pixel_step), channel, count=count)

        plane = self._planes[0]
        for row, values in transformed(e, PATCH, load, in_loops=False):
            for column, value in enumerate(values):
                e.store(value, target, e.mul(row, SIDE * plane), column * plane, channel)

    def _offset(self, e: Emitter, place: Sequence[IRIndex]) -> list[IRIndex]:
        return [e.mul(index, step) for index, step in zip(place, self.strides.x, strict=True)]

    def _copy_border(self, e: Emitter, corner: IRValue, border: IRValue, top: IRIndex, left: IRIndex) -> None:
        """Copy a patch that reaches over the border, with zeros for what lies beyond."""
        with e.loop(0, SIDE) as rows, e.loop(0, SIDE) as columns:
            row, column = e.add(top, rows.index), e.add(left, columns.index)
            there = e.both(
                e.compare(">=", row, 0),
                e.compare(">=", column, 0),
                e.compare("<", row, self.padding.x_size[0]),
                e.compare("<", column, self.padding.x_size[1]),
            )
            target = e.address(border, e.mul(e.add(e.mul(rows.index, SIDE), columns.index), self._depth))
            with e.when(there):
                source = e.address(
                    corner, e.mul(rows.index, self.strides.x[1]), e.mul(columns.index, self.strides.x[2])
                )
                self._copy_channels(e, source, target)
            with e.when(e.builder.not_(there)), e.loop(0, self._depth, self.lanes) as loop:
                e.store(e.splat(0.0), target, loop.index)

    def _copy_channels(self, e: Emitter, source: IRValue, target: IRValue) -> None:
        whole = self.shape.channels // self.lanes * self.lanes
        with e.loop(0, whole, self.lanes) as loop:
            e.store(e.load(source, loop.index), target, loop.index)
        if whole < self.shape.channels:
            e.store(e.load(source, whole, count=self.shape.channels - whole), target, whole)

    def _transform_result(
        self,
        e: Emitter,
        arguments: Sequence[IRValue],
        tile: IRIndex,
        place: IRIndex,
        first: IRIndex,
        count: IRIndex,
    ) -> None:
        """Write A^T m A of one tile, of filters from the first on, through the epilogue into the output."""
        strips, *rest = arguments
        image, row, column = e.unravel(tile, (self.shape.images, *self._grid(e)))
        corner = (image, e.mul(row, OUTPUTS), e.mul(column, OUTPUTS))
        row_of_tile = self._row(e, strips, place, self._products_width)
        source = e.address(row_of_tile, POSITIONS * self._planes[0])
        whole = count // self.lanes * self.lanes if isinstance(count, int) else 0
        if whole:
            with e.loop(0, whole, self.lanes) as loop:
                products = e.address(source, loop.index)
                self._finish_filters(e, products, rest, corner, e.add(first, loop.index), None)
        if whole != count:  # of a count that is known: those that fill no vector
            with e.loop(whole, count, self.lanes) as loop:
                products, left = e.address(source, loop.index), e.sub(count, loop.index)
                lanes = None if self.shape.filters % self.lanes == 0 else left
                self._finish_filters(e, products, rest, corner, e.add(first, loop.index), lanes)

    def _finish_filters(
        self,
        e: Emitter,
        source: IRValue,
        arguments: Sequence[IRValue],
        corner: tuple[IRIndex, IRIndex, IRIndex],
        channel: IRIndex,
        count: IRIndex | None,
    ) -> None:
        bias, out, *operands = arguments
        start = e.load(bias, channel)
        plane = self._planes[1]
        is_long_epilogue = is_long(self.epilogue.expression)

        def load(row: IRIndex, column: IRIndex) -> IRValue:
            return e.load(source, e.mul(row, SIDE * plane), e.mul(column, plane))

        def put(row: IRIndex, pixel: IRIndex, value: IRValue) -> None:
            place = Place(corner[0], e.add(corner[1], row), e.add(corner[2], pixel), channel)
            with self._inside(e, place):
                result = finish(e, self.epilogue, e.fadd(value, start), operands, place, count)
                steps = zip((place.image, place.row, place.pixel), self.strides.out, strict=True)
                e.store(result, out, *(e.mul(i, step) for i, step in steps), channel, count=count)

        for row, values in transformed(e, RESULT, load, is_long_epilogue):
            if is_long_epilogue:
                with each_kept(e, values, 1) as (pixel, (value,)):
                    put(row, pixel, value)
            else:
                for pixel, value in enumerate(values):
                    put(row, pixel, value)

    def _inside(self, e: Emitter, place: Place) -> AbstractContextManager[None]:
        """Write what is done only for a pixel that the output has; the last tiles reach beyond it."""
        height, width = self.shape.size
        if not self.is_dynamic and height % OUTPUTS == 0 and width % OUTPUTS == 0:
            return nullcontext()
        return e.when(e.both(e.compare("<", place.row, height), e.compare("<", place.pixel, width)))
