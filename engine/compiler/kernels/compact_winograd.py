"""Winograd convolution, 3x3 with stride 1, whose filters are transformed while they are multiplied.

Transformed filters of F(4x4, 3x3) take four times the memory of the filters themselves. For few tiles the time of a
convolution is that of reading them, so this kernel reads the filters as they are. Of a vector of filters and some
channels it writes a row of G g into memory of the nearest cache, and makes a row of G g G^T of that in registers, while
it multiplies. The results have the bits of `Winograd`.

Arguments: input, weights (packed by `pack`), bias, output, the epilogue's operands, `extents`, scratch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.compiler.contraction.tile import LINE
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.kernels.winograd_tiles import WinogradTiles
from engine.compiler.kernels.winograd_transforms import VectorArithmetic, half_transformed
from engine.compiler.memory.alignment import aligned_zeros
from engine.dtypes import Array

_TAPS = 9


@dataclass(frozen=True, slots=True)
class _Group:
    """Positions of a row that are multiplied together, for the tiles of a strip and the channels of a step.

    Attributes:
        strip: address of the strip.
        halves: address of the step's filters, a row of G g of each.
        taps: address of these filters as they are.
        step: its first channel.
        row: row of positions.
        column: the first of them.
    """

    strip: IRValue
    halves: IRValue
    taps: IRValue
    step: IRIndex
    row: IRIndex
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactWinograd(WinogradTiles):
    """A 3x3 convolution that transforms its filters itself; see `WinogradTiles`. Its register tile has one vector.

    Attributes:
        positions: positions of a row, whose products are summed at a time; a divisor of a row's.
        channels: after which sums are put down, so that the filters stay in the nearest cache meanwhile; a divisor of
            the channels in whole vectors.
        filter_parts: parts that the blocks of filters are split into, each a chunk of its own for the same tiles.
    """

    positions: int
    channels: int
    filter_parts: int = 1

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return -(-self.all_tiles // self.tiles) * self.filter_parts

    @property
    def general(self) -> "CompactWinograd":
        """The kernel whose code this one runs: `extents` passes the number of tiles."""
        return replace(self, shape=replace(self.shape, images=1), tiles=1)

    @property
    def packed_sizes(self) -> tuple[int, int]:
        """Elements of packed weights and bias."""
        starts = self._blocks * self._width
        return starts * self._depth * _TAPS, starts

    @property
    def scratch(self) -> int:
        """Elements as `WinogradTiles` needs them, and for a row of half-transformed filters."""
        return self._tiles_scratch + self._halves

    @property
    def _halves(self) -> int:
        return 3 * self.channels * self.lanes

    @property
    def _products_width(self) -> int:
        return self._width

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""
        x, filters, bias, out, *operands, extents, scratch = (
            e.argument(place) for place in range(6 + len(self.epilogue.operands))
        )
        all_tiles, tiles, of_thread = (e.load_extent(extents, place) for place in range(3))
        border = e.address(scratch, e.mul(e.thread, of_thread))
        halves = e.address(border, self._positions * self._depth)
        strips = e.address(halves, self._halves)
        tile_part, filter_part = e.divmod(e.chunk, self.filter_parts)
        first = e.mul(tile_part, tiles)
        count = e.minimum(tiles, e.sub(all_tiles, first))
        with e.loop(0, count) as loop:
            self._transform_patch(e, x, strips, border, e.add(first, loop.index), loop.index)
        blocks = -(-self._blocks // self.filter_parts)
        begin = e.mul(filter_part, blocks)
        with e.loop(begin, e.minimum(self._blocks, e.add(begin, blocks))) as block:
            self._multiply(e, (strips, halves), e.address(filters, e.mul(block.index, self._block)), count)
            channel = e.mul(block.index, self._width)
            width = e.minimum(self._width, e.sub(self.shape.filters, channel))
            with e.loop(0, count) as loop:
                arguments, tile = (strips, bias, out, *operands), e.add(first, loop.index)
                self._transform_result(e, arguments, tile, loop.index, channel, width)

    @property
    def _block(self) -> int:
        """Elements of a block of filters."""
        return self._depth * _TAPS * self._width

    def _multiply(
        self, e: Emitter, memory: tuple[IRValue, IRValue], filters: IRValue, count: IRIndex
    ) -> None:
        """Write, for every position, tiles x channels times channels x filters of a block."""
        strips, halves = memory
        side = self.transforms.inputs
        rows = e.table([float(number) for row in self.transforms.filter for number in row])
        # the last rows of a strip that is not full are computed too: their results are never read
        used = e.divmod(e.add(count, self.tile.pixels - 1), self.tile.pixels)[0]
        with e.loop(0, self._depth, self.channels) as step, e.loop(0, side) as row:
            taps = e.address(filters, e.mul(step.index, _TAPS * self.lanes))
            self._transform_columns(e, taps, e.address(rows, e.mul(row.index, 3)), halves)
            with e.loop(0, used) as strip:
                here = e.address(strips, e.mul(strip.index, self._strip))
                for column in range(0, side, self.positions):
                    self._multiply_group(e, _Group(here, halves, taps, step.index, row.index, column))

    def _transform_columns(self, e: Emitter, taps: IRValue, coefficients: IRValue, halves: IRValue) -> None:
        """Write a row of G g, for each channel of a step.

        Coefficients of 0 are multiplied with as well. That changes no sum of products: each begins with 0, so that it
        makes no difference whether it is a 0 or a -0 that is added to it.
        """
        factors = [e.load_broadcast(coefficients, place) for place in range(3)]
        with e.loop(0, self.channels) as loop:
            here = e.address(taps, e.mul(loop.index, _TAPS * self.lanes))
            there = e.address(halves, e.mul(loop.index, 3 * self.lanes))
            for column in range(3):
                outer, inner, last = (
                    e.fmul(factor, e.load(here, (3 * place + column) * self.lanes))
                    for place, factor in enumerate(factors)
                )
                e.store(e.fadd(e.fadd(outer, last), inner), there, column * self.lanes)

    def _multiply_group(self, e: Emitter, group: _Group) -> None:
        """Write the products of some positions of a row, added to those of earlier steps."""
        of_patches, of_products = self._planes
        first = e.add(e.mul(group.row, self.transforms.inputs), group.column)
        source = e.address(group.strip, group.step, e.mul(first, of_patches))
        products = e.address(group.strip, self._positions * of_patches, e.mul(first, of_products))
        places = [(j, tile) for j in range(self.positions) for tile in range(self.tile.pixels)]
        targets = [e.address(products, j * of_products + tile * self._width) for j, tile in places]
        with e.loop(0, self.channels, carry=self._start(e, group.step, targets)) as loop:
            self._prefetch(e, group, loop.index)
            here = e.address(group.halves, e.mul(loop.index, 3 * self.lanes))
            columns = [e.load(here, column * self.lanes) for column in range(3)]
            row = half_transformed(VectorArithmetic(e), self.transforms.filter, columns)
            weights = row[group.column : group.column + self.positions]
            loop.following = [
                e.fma(
                    e.load_broadcast(source, loop.index, j * of_patches + tile * self._depth),
                    weights[j],
                    total,
                )
                for (j, tile), total in zip(places, loop.carried, strict=True)
            ]
        for target, value in zip(targets, loop.results, strict=True):
            e.store(value, target)

    def _prefetch(self, e: Emitter, group: _Group, channel: IRIndex) -> None:
        """Prefetch a part of the next step's filters, of which each row of positions has its own."""
        lines = -(-_TAPS * self.lanes // (LINE * self.transforms.inputs))
        following = e.address(group.taps, self.channels * _TAPS * self.lanes)
        place = e.mul(e.add(e.mul(group.row, self.channels), channel), lines * LINE)
        for line in range(lines):
            e.prefetch(following, place, line * LINE)

    def _start(self, e: Emitter, step: IRIndex, targets: Sequence[IRValue]) -> list[IRValue]:
        """Return the sums of earlier steps, zeros in the first one."""
        zero = e.splat(0.0)
        if self.channels == self._depth:
            return [zero] * len(targets)
        is_first = e.compare("==", step, 0)
        return [e.select(is_first, zero, e.load(target)) for target in targets]

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
