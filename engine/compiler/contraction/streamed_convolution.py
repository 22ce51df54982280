"""Direct convolution for few pixels and many weights, which come from far away: deep layers on small images.

The order of loops follows the weights, each of which is read once: a chunk is one block of filters; position by
position of the kernel, its weights (channels x filters of the block) meet all pixels, whose partial sums wait in
scratch memory. While they do, the weights of the next position are brought near, so that memory and arithmetic work at
the same time.

Arguments: input with its padding around it, weights, biases, output, the epilogue's operands, scratch. Channels of
input and output are contiguous. Weights are those of `packing`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.compiler.contraction.arithmetic import FLOAT32, FilterPacking
from engine.compiler.contraction.epilogue import NOTHING, Epilogue, Output, Place
from engine.compiler.contraction.shapes import ConvShape, ImageStrides
from engine.compiler.contraction.tile import LINE, Axis, Prefetch, Tile, each_block, emit_tile, steps_of
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.memory.region import Region, line


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedConvolution:
    """A convolution of one exact shape, without groups.

    Attributes:
        shape: shape of the convolution.
        strides: elements between images, rows and pixels of input and output.
        tile: register tile; a block of filters is as wide.
        lanes: float32 lanes of a vector.
        epilogue: operations on the results.
    """

    shape: ConvShape
    strides: ImageStrides
    tile: Tile
    lanes: int
    epilogue: Epilogue = NOTHING

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments; of the input with its padding, which is in memory."""
        shape = self.shape
        x, out = shape.regions(shape.padded_size, self.strides)
        operands = self.epilogue.regions(shape.images, shape.size, shape.filters)
        return x, *map(line, self.packing.packed_sizes), out, *operands

    @property
    def packing(self) -> FilterPacking:
        """How weights are packed."""
        return FilterPacking(
            arithmetic=FLOAT32,
            groups=1,
            filters=self.shape.filters,
            words=self.shape.channels,
            kernel=self.shape.kernel,
            width=self._width,
        )

    @property
    def scratch(self) -> int:
        """Elements of the partial sums of one block."""
        return self.shape.pixels * self._width

    @property
    def chunks(self) -> int:
        """Parts that the work is split into: blocks of filters."""
        return -(-self.shape.filters // self._width)

    @property
    def _width(self) -> int:
        return self.tile.vectors * self.lanes

    @property
    def _panel(self) -> int:
        """Weights of one position of the kernel."""
        return self.shape.channels * self._width

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""
        count = len(self.epilogue.operands)
        x, w, bias, out, *operands, scratch = (e.argument(place) for place in range(5 + count))
        sums = e.address(scratch, e.mul(e.thread, self.scratch))
        positions = self.shape.taps
        weights = e.address(w, e.mul(e.chunk, positions * self._panel))
        self._start(e, e.address(bias, e.mul(e.chunk, self._width)), sums)
        with e.loop(0, positions) as position:
            row, column = e.divmod(position.index, self.shape.kernel[1])
            corner = e.address(
                x,
                e.mul(row, self.shape.dilation[0] * self.strides.x[1]),
                e.mul(column, self.shape.dilation[1] * self.strides.x[2]),
            )
            self._multiply(e, corner, e.address(weights, e.mul(position.index, self._panel)), sums)
        self._finish(e, sums, Output(out, self.strides.out, self.epilogue, operands))

    def _start(self, e: Emitter, bias: IRValue, sums: IRValue) -> None:
        """Write the bias into the partial sums."""
        starts = [e.load(bias, vector * e.lanes) for vector in range(self.tile.vectors)]
        with e.loop(0, self.shape.pixels) as pixel:
            for vector, start in enumerate(starts):
                e.store(start, sums, e.mul(pixel.index, self._width), vector * e.lanes)

    def _multiply(self, e: Emitter, x: IRValue, weights: IRValue, sums: IRValue) -> None:
        """Write what one position of the kernel adds to all partial sums."""
        axes = (Axis(self.shape.channels, 1, self._width),)
        step = self.shape.stride[1] * self.strides.x[2]
        for image, row, pixel, count in self._tiles(e):
            source = e.address(
                x,
                e.mul(image, self.strides.x[0]),
                e.mul(row, self.shape.stride[0] * self.strides.x[1]),
                e.mul(pixel, step),
            )
            place = e.add(e.mul(e.add(e.mul(image, self.shape.size[0]), row), self.shape.size[1]), pixel)
            here = e.address(sums, e.mul(place, self._width))
            offsets = [p * self._width + v * e.lanes for p in range(count) for v in range(self.tile.vectors)]
            before = [e.load(here, offset) for offset in offsets]
            prefetch = self._prefetch(e, e.address(weights, self._panel), axes, place)
            tile = Tile(count, self.tile.vectors)
            after = emit_tile(e, tile, axes, source, step, weights, before, prefetch)
            for offset, value in zip(offsets, after, strict=True):
                e.store(value, here, offset)

    def _tiles(self, e: Emitter) -> Iterator[tuple[IRIndex, IRIndex, IRIndex, int]]:
        """Write the loops over tiles; yields image, row, first pixel and pixels of each."""
        full, rest = divmod(self.shape.size[1], self.tile.pixels)
        with e.loop(0, self.shape.images * self.shape.size[0]) as rows:
            image, row = e.divmod(rows.index, self.shape.size[0])
            with e.loop(0, full) as tiles:
                yield image, row, e.mul(tiles.index, self.tile.pixels), self.tile.pixels
            if rest:
                yield image, row, full * self.tile.pixels, rest

    def _prefetch(self, e: Emitter, following: IRValue, axes: Sequence[Axis], place: IRIndex) -> Prefetch:
        """Return the part of the next position's weights that the tile at a place prefetches."""
        tiles = max(1, self.shape.pixels // self.tile.pixels)
        lines = max(1, round(self._panel / (LINE * tiles * steps_of(axes, self.tile))))
        part = e.divmod(place, self.tile.pixels)[0]
        return Prefetch(e.address(following, e.mul(part, lines * LINE * steps_of(axes, self.tile))), lines)

    def _finish(self, e: Emitter, sums: IRValue, output: Output) -> None:
        """Write the sums through the epilogue into the output; of the last block only the filters that there are."""
        for filters in each_block(e, e.chunk, self.shape.filters, self._width):
            with e.loop(0, self.shape.pixels) as loop:
                image, row, pixel = e.unravel(loop.index, (self.shape.images, *self.shape.size))
                here = e.address(sums, e.mul(loop.index, self._width))
                results = FLOAT32.load_sums(e, here, -(-filters // e.lanes))
                output.store(e, results, Place(image, row, pixel, e.mul(e.chunk, self._width)), filters)
