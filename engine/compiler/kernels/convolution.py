"""Direct convolution, any kernel, stride, dilation and groups; with one pixel a row it is a matrix product.

Arguments: input, weights, bias, output, then the epilogue's operands. The input is padded already; its channels and the output's lie
side by side. Weights are packed by `pack`: [group][block of filters][kernel row][kernel column][channel][filter of the block].
"""

from dataclasses import dataclass

import numpy as np

from engine.compiler.emitter import Emitter, Index, Value
from engine.compiler.epilogue import Epilogue, Place, finish
from engine.compiler.kernels.tile import Axis, Tile, emit_tile, merged
from engine.dtypes import Array


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution of one exact shape.

    Attributes:
        images: batch.
        size: rows and columns of the output.
        channels: input channels of one group.
        filters: output channels of one group.
        groups: groups.
        kernel: rows and columns.
        stride: rows and columns.
        dilation: rows and columns.
        x_strides: elements between images, rows and pixels of the input.
        out_strides: the same of the output.
        tile: register tile.
        rows: rows of one chunk.
        tiles: tiles of a row in one chunk.
        blocks: blocks of filters in one chunk; a block is as wide as the tile.
        epilogue: what is done to the results.
    """

    images: int
    size: tuple[int, int]
    channels: int
    filters: int
    groups: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    x_strides: tuple[int, int, int]
    out_strides: tuple[int, int, int]
    tile: Tile
    rows: int
    tiles: int
    blocks: int
    lanes: int
    epilogue: Epilogue

    @property
    def scratch(self) -> int:
        """None is needed."""
        return 0

    @property
    def width(self) -> int:
        """Filters of a block."""
        return self.tile.vectors * self.lanes

    @property
    def group_blocks(self) -> int:
        """Blocks of filters in a group, the last one perhaps not full."""
        return -(-self.filters // self.width)

    @property
    def _parts(self) -> tuple[int, int, int]:
        """Parts that blocks, rows and tiles of a row are split into."""
        whole_rows = self.images * self.size[0]
        whole_tiles = -(-self.size[1] // self.tile.pixels)
        blocks = self.groups * self.group_blocks
        return -(-blocks // self.blocks), -(-whole_rows // self.rows), -(-whole_tiles // self.tiles)

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        blocks, rows, tiles = self._parts
        return blocks * rows * tiles

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""
        arguments = [e.argument(place) for place in range(4 + len(self.epilogue.operands))]
        part = e.unravel(e.chunk, self._parts)
        first_block = e.mul(part[0], self.blocks)
        last_block = e.minimum(e.add(first_block, self.blocks), self.groups * self.group_blocks)
        with e.loop(first_block, last_block) as loop:
            group, block = e.divmod(loop.index, self.group_blocks)
            last = self._lanes_in_use(self.group_blocks - 1)
            if self.group_blocks == 1 or self.filters % self.width == 0:
                self._emit_block(e, arguments, part, (group, block), last)
                return
            is_last = e.compare("==", block, self.group_blocks - 1)
            with e.when(is_last):
                self._emit_block(e, arguments, part, (group, block), last)
            with e.when(e.builder.not_(is_last)):
                self._emit_block(e, arguments, part, (group, block), [self.lanes] * self.tile.vectors)

    def _lanes_in_use(self, block: int) -> list[int]:
        """Return how many lanes of each vector of a block hold filters."""
        left = self.filters - block * self.width
        starts = range(0, self.width, self.lanes)
        return [max(0, min(self.lanes, left - start)) for start in starts]

    def _emit_block(
        self, e: Emitter, arguments: list[Value], part: list[Index], where: tuple[Index, Index], lanes: list[int]
    ) -> None:
        first_row = e.mul(part[1], self.rows)
        last_row = e.minimum(e.add(first_row, self.rows), self.images * self.size[0])
        full, rest = divmod(self.size[1], self.tile.pixels)
        first_tile = e.mul(part[2], self.tiles)
        last_tile = e.minimum(e.add(first_tile, self.tiles), full)
        with e.loop(first_row, last_row) as loop:
            image, row = e.divmod(loop.index, self.size[0])
            with e.loop(first_tile, last_tile) as tiles:
                pixel = e.mul(tiles.index, self.tile.pixels)
                self._emit_tile(e, arguments, (image, row, pixel), where, lanes, self.tile.pixels)
            if rest:
                with e.when(e.compare(">=", e.add(first_tile, self.tiles), full + 1)):
                    self._emit_tile(e, arguments, (image, row, full * self.tile.pixels), where, lanes, rest)

    def _emit_tile(
        self,
        e: Emitter,
        arguments: list[Value],
        at: tuple[Index, Index, Index],
        where: tuple[Index, Index],
        lanes: list[int],
        pixels: int,
    ) -> None:
        x, w, bias, out, *operands = arguments
        image, row, pixel = at
        group, block = where
        tile = Tile(pixels, sum(count > 0 for count in lanes))
        reduction = self.kernel[0] * self.kernel[1] * self.channels
        channel = e.add(e.mul(group, self.filters), e.mul(block, self.width))
        source = e.address(
            x,
            e.mul(image, self.x_strides[0]),
            e.mul(row, self.stride[0] * self.x_strides[1]),
            e.mul(pixel, self.stride[1] * self.x_strides[2]),
            e.mul(group, self.channels),
        )
        whole_block = e.add(e.mul(group, self.group_blocks), block)
        weights = e.address(w, e.mul(whole_block, reduction * self.width))
        start = [e.load(bias, e.mul(whole_block, self.width), v * e.lanes) for v in range(tile.vectors)]
        sums = emit_tile(e, tile, self._axes(), source, self.stride[1] * self.x_strides[2], weights, start * pixels)
        for p in range(pixels):
            for v in range(tile.vectors):
                place = Place(image, row, e.add(pixel, p), e.add(channel, v * e.lanes))
                result = finish(e, self.epilogue, sums[p * tile.vectors + v], operands, place, lanes[v])
                offset = [e.mul(index, step) for index, step in zip((image, row, place.pixel), self.out_strides, strict=True)]
                e.store(result, out, *offset, place.channel, count=lanes[v])

    def _axes(self) -> tuple[Axis, ...]:
        rows, columns = self.kernel
        return merged(
            (
                Axis(rows, self.dilation[0] * self.x_strides[1], columns * self.channels * self.width),
                Axis(columns, self.dilation[1] * self.x_strides[2], self.channels * self.width),
                Axis(self.channels, 1, self.width),
            )
        )

    def pack(self, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        """Pack weights (filters of all groups, channels of one, rows, columns) and bias; absent filters are 0."""
        shape = (self.groups, self.filters, self.channels, *self.kernel)
        blocks = np.zeros((self.groups, self.group_blocks * self.width, *shape[2:]), np.float32)
        blocks[:, : self.filters] = weight.reshape(shape)
        starts = np.zeros((self.groups, self.group_blocks * self.width), np.float32)
        if bias is not None:
            starts[:, : self.filters] = bias.reshape(self.groups, self.filters)
        split = blocks.reshape(self.groups, self.group_blocks, self.width, *shape[2:])
        return np.ascontiguousarray(split.transpose(0, 1, 4, 5, 3, 2)), starts
