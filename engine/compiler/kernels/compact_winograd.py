"""Winograd convolution, 3x3 with stride 1, whose filters are transformed while they are multiplied.

Transformed filters of F(4x4, 3x3) take four times the memory of the filters themselves, and for few tiles the time of a
convolution is that of reading them. This kernel reads the filters as they are: those of a block, some channels at a
time, are transformed into scratch memory, and stay in the core's own cache while all tiles of the chunk are multiplied
with them. The results have the bits of `Winograd`.

Arguments: input, weights (packed by `pack`), bias, output, the epilogue's operands, scratch.
"""

from dataclasses import dataclass, replace
from typing import Self

from engine.compiler.contraction.tile import LINE, Axis, emit_tile
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.runtime_sizes import RuntimeSizes, Sizes
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.kernels.winograd_tiles import WinogradTiles
from engine.compiler.kernels.winograd_transforms import FILTER, POSITIONS, SIDE, half_transformed, of_vectors
from engine.compiler.memory.alignment import aligned_zeros
from engine.dtypes import Array

_TAPS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactWinograd(WinogradTiles):
    """A 3x3 convolution that transforms its filters itself; see `WinogradTiles`.

    Attributes:
        channels: whose filters are transformed at a time; a divisor of the channels in whole vectors.
        filter_parts: parts that the blocks of filters are split into, each a chunk of its own for the same tiles.
    """

    channels: int
    filter_parts: int = 1

    def sized(self, sizes: Sizes) -> Self:
        """Return the kernel with what stands for its runtime dimensions."""
        parts = sizes.extent(self.filter_parts) if self.is_dynamic else self.filter_parts
        return replace(WinogradTiles.sized(self, sizes), filter_parts=parts)

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return -(-self.all_tiles // self.tiles) * self.filter_parts

    @property
    def packed_sizes(self) -> tuple[int, int]:
        """Elements of packed weights and bias."""
        starts = self._blocks * self._width
        return starts * self._depth * _TAPS, starts

    @property
    def _shared_scratch(self) -> int:
        """Elements for a patch that reaches over the border, and for the filters of a block and a step of channels."""
        return POSITIONS * (self._depth + self._plane)

    @property
    def _plane(self) -> int:
        """Elements between two positions of transformed filters: an odd number of cache lines, as in `_planes`."""
        return (-(-self.channels * self._width // LINE) | 1) * LINE

    @property
    def _products_width(self) -> int:
        return self._width

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""
        self.sized(RuntimeSizes(e, 5 + len(self.epilogue.operands)))._emit(e)

    def _emit(self, e: Emitter) -> None:
        (x, filters, bias, out, *operands), border, all_tiles = self._begin(e)
        transformed = e.address(border, POSITIONS * self._depth)
        strips = e.address(border, self._shared_scratch)
        tile_part, filter_part = e.divmod(e.chunk, self.filter_parts)
        first = e.mul(tile_part, self.tiles)
        count = e.minimum(self.tiles, e.sub(all_tiles, first))
        with e.loop(0, count) as loop:
            self._transform_patch(e, x, strips, border, e.add(first, loop.index), loop.index)
        blocks = e.ceil_divide(self._blocks, self.filter_parts)
        begin = e.mul(filter_part, blocks)
        with e.loop(begin, e.minimum(self._blocks, e.add(begin, blocks))) as block:
            taps = e.address(filters, e.mul(block.index, self._depth * _TAPS * self._width))
            with e.loop(0, self._depth, self.channels) as step:
                here = e.address(taps, e.mul(step.index, _TAPS * self._width))
                self._transform_filters(e, here, transformed)
                following = e.address(here, self.channels * _TAPS * self._width)
                self._multiply(e, strips, transformed, following, step.index, count)
            channel = e.mul(block.index, self._width)
            width = e.minimum(self._width, e.sub(self.shape.filters, channel))
            with e.loop(0, count) as loop:
                arguments, tile = (strips, bias, out, *operands), e.add(first, loop.index)
                self._transform_result(e, arguments, tile, loop.index, channel, width)

    def _transform_filters(self, e: Emitter, taps: IRValue, target: IRValue) -> None:
        """Write G g G^T of a step's filters, position by position."""
        arithmetic = of_vectors(e)
        with e.loop(0, self.channels) as loop, e.loop(0, self._width, self.lanes) as vector:
            here = e.address(taps, e.mul(loop.index, _TAPS * self._width), vector.index)
            there = e.address(target, e.mul(loop.index, self._width), vector.index)
            columns = [
                [e.load(here, (3 * row + column) * self._width) for row in range(3)] for column in range(3)
            ]
            for row, coefficients in enumerate(FILTER):
                halves = [half_transformed(arithmetic, (coefficients,), column)[0] for column in columns]
                for place, value in enumerate(half_transformed(arithmetic, FILTER, halves)):
                    e.store(value, there, (row * SIDE + place) * self._plane)

    def _multiply(
        self,
        e: Emitter,
        strips: IRValue,
        weights: IRValue,
        following: IRValue,
        step: IRIndex,
        count: IRIndex,
    ) -> None:
        """Write, for every position, tiles x channels of a step times channels x filters, added to earlier steps'.

        Meanwhile the filters that are transformed next are prefetched, each position some lines of them.
        """
        height, (patches, products) = self.tile.pixels, self._planes
        # the last rows of a strip that is not full are computed too: their results are never read
        used = e.divmod(e.add(count, height - 1), height)[0]
        axes = (Axis(self.channels, 1, self._width),)
        lines = -(-self.channels * _TAPS * self._width // (LINE * POSITIONS))
        with e.loop(0, POSITIONS) as position:
            with e.loop(0, lines) as loop:
                e.prefetch(following, e.mul(e.add(e.mul(position.index, lines), loop.index), LINE))
            filters = e.address(weights, e.mul(position.index, self._plane))
            with e.loop(0, used) as strip:
                here = e.address(strips, e.mul(strip.index, self._strip))
                source = e.address(here, e.mul(position.index, patches), step)
                target = e.address(here, POSITIONS * patches, e.mul(position.index, products))
                start = self._start(e, step, target)
                sums = emit_tile(e, self.tile, axes, source, self._depth, filters, start)
                for place, value in enumerate(sums):
                    e.store(value, target, place * self.lanes)

    def _start(self, e: Emitter, step: IRIndex, target: IRValue) -> list[IRValue]:
        """Return the sums of earlier steps, zeros in the first one."""
        zero, places = e.splat(0.0), range(self.tile.pixels * self.tile.vectors)
        if self.channels == self._depth:
            return [zero for _ in places]
        is_first = e.compare("==", step, 0)
        return [e.select(is_first, zero, e.load(target, place * self.lanes)) for place in places]

    @property
    def layout(self) -> tuple[object, ...]:
        """The layout of packed weights."""
        return (self._width,)

    def pack(self, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        """Pack weights (filters, channels, 3, 3) as [block][channel][tap][filter], and the bias."""
        channels = weight.shape[1]
        packed = aligned_zeros((self._blocks, self._depth, _TAPS, self._width))
        starts = aligned_zeros((self._blocks * self._width,))
        for block in range(self._blocks):
            some = weight[block * self._width : (block + 1) * self._width].reshape(-1, channels, _TAPS)
            packed[block, :channels, :, : len(some)] = some.transpose(1, 2, 0)
        if bias is not None:
            starts[: self.shape.filters] = bias
        return packed, starts
