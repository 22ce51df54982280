"""Winograd convolution, 3x3 with stride 1: fewer multiplications for a few more additions.

Filters are transformed when they are packed: for products of many tiles, which read them again and again.

Arguments: input, weights (packed by `pack`), bias, output, the epilogue's operands, scratch.
"""

from dataclasses import dataclass

from engine.compiler.contraction.tile import LINE, Axis, Prefetch, emit_tile, steps_of
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.runtime_sizes import RuntimeSizes
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.kernels.winograd_tiles import WinogradTiles
from engine.compiler.kernels.winograd_transforms import POSITIONS, transformed_filters
from engine.compiler.memory.alignment import aligned_zeros
from engine.dtypes import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Winograd(WinogradTiles):
    """A 3x3 convolution whose filters are transformed at compile time; see `WinogradTiles`.

    Attributes:
        prefetches_weights: whether the next panel of weights is prefetched while one is multiplied.
    """

    prefetches_weights: bool = False

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return -(-self.all_tiles // self.tiles)

    @property
    def _products_width(self) -> int:
        return self._blocks * self._width

    @property
    def _has_runtime_tiles(self) -> bool:
        # how much of the next weights a strip prefetches depends on the number of strips
        return not self.prefetches_weights

    @property
    def packed_sizes(self) -> tuple[int, int]:
        """Elements of packed weights and bias."""
        starts = self._blocks * self._width
        return POSITIONS * self._depth * starts, starts

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""
        self.sized(RuntimeSizes(e, 5 + len(self.epilogue.operands)))._emit(e)

    def _emit(self, e: Emitter) -> None:
        (x, u, bias, out, *operands), border, all_tiles = self._begin(e)
        strips = e.address(border, self._shared_scratch)
        first = e.mul(e.chunk, self.tiles)
        count = e.minimum(self.tiles, e.sub(all_tiles, first))
        with e.loop(0, count) as loop:
            self._transform_patch(e, x, strips, border, e.add(first, loop.index), loop.index)
        self._multiply(e, strips, u, count)
        with e.loop(0, count) as loop:
            arguments = (strips, bias, out, *operands)
            tile = e.add(first, loop.index)
            self._transform_result(e, arguments, tile, loop.index, 0, self.shape.filters)

    def _multiply(self, e: Emitter, strips: IRValue, u: IRValue, count: IRIndex) -> None:
        """Write, for every position and block of filters, tiles x channels times channels x filters."""
        height, panel, filters = self.tile.pixels, self._depth * self._width, self._blocks * self._width
        patches, products = self._planes
        # the last rows of a strip that is not full are computed too: their results are never read
        used = e.divmod(e.add(count, height - 1), height)[0]
        with e.loop(0, POSITIONS) as position, e.loop(0, self._blocks) as block:
            weights = e.address(u, e.mul(e.add(e.mul(position.index, self._blocks), block.index), panel))
            left = e.address(strips, e.mul(position.index, patches))
            right = e.address(
                strips,
                POSITIONS * patches,
                e.mul(position.index, products),
                e.mul(block.index, self._width),
            )
            with e.loop(0, used) as strip:
                here = e.mul(strip.index, self._strip)
                zeros = [e.splat(0.0)] * (height * self.tile.vectors)
                axes = (Axis(self._depth, 1, self._width),)
                prefetch = (
                    self._prefetch(e, e.address(weights, panel), axes, strip.index)
                    if self.prefetches_weights
                    else None
                )
                source = e.address(left, here)
                sums = emit_tile(e, self.tile, axes, source, self._depth, weights, zeros, prefetch)
                target = e.address(right, here)
                for place, value in enumerate(sums):
                    tile, vector = divmod(place, self.tile.vectors)
                    e.store(value, target, tile * filters + vector * self.lanes)

    def _prefetch(self, e: Emitter, following: IRValue, axes: tuple[Axis, ...], strip: IRIndex) -> Prefetch:
        """Return the part of the next panel of weights that a strip of tiles prefetches."""
        share = -(-self.tiles // self.tile.pixels) * steps_of(axes, self.tile)
        lines = -(-self._depth * self._width // (LINE * share))
        return Prefetch(e.address(following, e.mul(strip, lines * LINE * steps_of(axes, self.tile))), lines)

    @property
    def layout(self) -> tuple[object, ...]:
        """The layout of packed weights."""
        return (self._width,)

    def pack(self, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        """Transform and pack weights (filters, channels, 3, 3) as [position][block][channel][filter], and the bias."""
        packed = aligned_zeros((POSITIONS, self._blocks, self._depth, self._width))
        starts = aligned_zeros((self._blocks * self._width,))
        for block in range(self._blocks):
            filters = weight[block * self._width : (block + 1) * self._width]
            positions = transformed_filters(filters)  # position, filter, channel
            packed[:, block, : self.shape.channels, : len(filters)] = positions.swapaxes(1, 2)
        if bias is not None:
            starts[: self.shape.filters] = bias
        return packed, starts
