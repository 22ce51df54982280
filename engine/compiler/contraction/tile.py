"""The register tile that convolutions and matrix products are made of.

A tile is `pixels` x `vectors` accumulators that stay in registers for a whole reduction: every step of it loads
`vectors` vectors of weights once, one number per pixel, and multiplies each with each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd, prod

from engine.compiler.contraction.arithmetic import FLOAT32, Arithmetic
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.target import Target
from engine.compiler.emit.types import IRIndex, IRValue

MANY_ROWS = 2520
"""Rows that tiles are chosen for if their number is a runtime dimension: a multiple of every height up to 10."""
LINE = 16
"""Elements of a cache line."""
_WAYS, _WAY_BYTES = 8, 1 << 12
"""Lines of the first cache that lie a multiple of so many bytes apart: of x86-64's processors the fewest."""
_UNROLL = 4
_LARGE = 16
"""Accumulators of a large tile."""
_WIDEST = 4
"""Vectors of a tile, twice as many where there are too few pixels to keep the multipliers busy."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Shape of a register tile.

    Attributes:
        pixels: pixels (rows of a matrix) that it covers.
        vectors: vectors of filters (columns of a matrix).
    """

    pixels: int
    vectors: int


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of the reduction.

    Attributes:
        count: steps.
        x_step: elements between two steps in the input.
        w_step: elements between two steps in the weights.
    """

    count: IRIndex
    x_step: IRIndex
    w_step: IRIndex


def merged(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Return the same reduction with fewer axes: neighbours that lie end to end become one."""
    result: list[Axis] = []
    for axis in axes:
        if axis.count == 1:
            continue
        outer = result[-1] if result else None
        if outer and (outer.x_step, outer.w_step) == (axis.count * axis.x_step, axis.count * axis.w_step):
            result[-1] = Axis(outer.count * axis.count, axis.x_step, axis.w_step)
        else:
            result.append(axis)
    return tuple(result) or (Axis(1, 0, 0),)


def choose_tile(target: Target, pixels: int, vectors: int, step: int = 0, width_gain: float = 0.0) -> Tile:
    """Choose the tile for an output of so many pixels in a row and so many vectors of filters.

    Wanted: all accumulators, the weights and one number in registers; no remainder; enough accumulators to hide
    the latency of an fma; many multiplications per load; and one cache line of each pixel in the first cache.

    Args:
        target: the instructions.
        pixels: pixels in a row.
        vectors: vectors of filters.
        step: elements between the input's pixels; 0 where it is not known.
        width_gain: each vector makes a tile better by this factor: the fewer blocks weights are cut into, the more
            time there is to prefetch the next one.
    """
    return max(
        fitting_tiles(target, min(pixels, _cached_lines(4 * step)), vectors),
        key=lambda tile: _efficiency(pixels, vectors, tile) * (1 + width_gain * tile.vectors),
        default=Tile(1, 1),
    )


def _cached_lines(step: int) -> int:
    """Return how many lines, so many bytes apart, the first cache holds at once."""
    return _WAYS * _WAY_BYTES // gcd(_WAY_BYTES, step) if step else _WAYS * _WAY_BYTES


def fitting_tiles(target: Target, pixels: int, vectors: int) -> Iterator[Tile]:
    """Yield the tiles that leave registers for the weights and one number; few pixels have wider ones."""
    widest = _WIDEST if pixels >= _WIDEST else 2 * _WIDEST
    for width in range(1, min(vectors, widest, target.registers // 2 - 2) + 1):
        room = (target.registers - 1 - width) // width
        for height in range(1, min(pixels, room) + 1):
            yield Tile(height, width)


def cycles_of(tile: Tile) -> float:
    """Return the cycles that a step of a tile is expected to take; measured on processors with two fma units."""
    height, width = tile.pixels, tile.vectors
    cycles = max(height * width / 2, (height + width) / 2, 4.0)  # two fmas or two loads each; four of latency
    return cycles + 0.02 * (height + width) + 0.15


def _efficiency(pixels: int, vectors: int, tile: Tile) -> float:
    """Return the part of peak that a tile is expected to reach."""
    full = tile.pixels * tile.vectors
    runs = -(-pixels // tile.pixels) * -(-vectors // tile.vectors)
    useful = pixels * vectors / (runs * full)
    return useful * (full / 2) / cycles_of(tile)


def each_tile(
    e: Emitter, part: tuple[IRIndex, IRIndex], count: IRIndex, height: int
) -> Iterator[tuple[IRIndex, int]]:
    """Write the loop over the tiles of a part of some pixels; yields the first pixel of each, and its height.

    Of a known number of pixels, what whole tiles leave is one smaller tile; of any other, ever smaller ones.

    Args:
        e: the kernel.
        part: first pixel and end of the part, after a whole tile or the last pixel.
        count: number of all pixels.
        height: pixels of a whole tile.
    """
    first, end = part
    if isinstance(count, int):
        whole = count - count % height
        if whole:
            with e.loop(first, e.minimum(end, whole), height) as loop:
                yield loop.index, height
        if whole < count:
            with e.when(e.compare(">", end, whole)):
                yield whole, count - whole
        return
    end = e.minimum(end, count)
    for pixels in (height, *(lower for lower in (4, 2, 1) if lower < height)):
        stop = e.add(first, e.mul(e.divmod(e.sub(end, first), pixels)[0], pixels))
        with e.loop(first, stop, pixels) as loop:
            yield loop.index, pixels
        first = stop


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Weights that are needed soon, and prefetched while others are multiplied.

    Attributes:
        start: address of the first element that this tile prefetches.
        lines: cache lines that each step of the innermost loop prefetches.
    """

    start: IRValue
    lines: int


def each_block(e: Emitter, place: IRIndex, filters: int, width: int) -> Iterator[int]:
    """Write what is done to a block of filters twice where the last one is not full; yields filters of a block.

    Args:
        e: the kernel.
        place: the block's place among all of them.
        filters: number of all filters.
        width: filters of a full block.
    """
    count = -(-filters // width)
    last = filters - (count - 1) * width
    if count == 1 or last == width:
        yield last
        return
    is_last = e.compare("==", place, count - 1)
    with e.when(is_last):
        yield last
    with e.when(e.negated(is_last)):
        yield width


def steps_of(axes: Sequence[Axis], tile: Tile) -> int:
    """Return how often the innermost loop of a reduction goes round."""
    return prod(axis.count for axis in axes) // _unroll(axes[-1], tile)


def emit_tile(
    e: Emitter,
    tile: Tile,
    axes: Sequence[Axis],
    x: IRValue,
    pixel_step: IRIndex,
    w: IRValue,
    start: Sequence[IRValue],
    prefetch: Prefetch | None = None,
    arithmetic: Arithmetic = FLOAT32,
) -> list[IRValue]:
    """Write the reduction of one tile.

    Args:
        e: the kernel.
        tile: the tile's shape.
        axes: the reduction, outermost first.
        x: address of the first pixel's first element.
        pixel_step: elements between two pixels of the tile.
        w: address of the weights; the tile's filters are contiguous.
        start: what the accumulators start with, `pixels` x `vectors`, a pixel's vectors together.
        prefetch: weights to prefetch during the reduction.
        arithmetic: arithmetic of the products.

    Returns:
        The accumulators, in the order of `start`.
    """
    reduction = _Reduction(e, tile, pixel_step, 0 if prefetch is None else prefetch.lines, arithmetic)
    carried = [*start] if prefetch is None else [*start, prefetch.start]
    return reduction.emit(tuple(axes), x, w, carried)[: len(start)]


@dataclass(frozen=True, slots=True)
class _Reduction:
    """Constants of the loops of a reduction; the prefetch address is carried after the accumulators."""

    e: Emitter
    tile: Tile
    pixel_step: IRIndex
    lines: int
    arithmetic: Arithmetic

    def emit(self, axes: tuple[Axis, ...], x: IRValue, w: IRValue, carried: list[IRValue]) -> list[IRValue]:
        """Write the loops over the axes; returns what they carry out."""
        e, axis, inner = self.e, axes[0], axes[1:]
        if isinstance(axis.count, int):
            return self._loop(
                (0, axis.count, 1 if inner else _unroll(axis, self.tile)), axes, (x, w), carried
            )
        whole = e.mul(e.divmod(axis.count, _UNROLL)[0], _UNROLL)
        carried = self._loop((0, whole, _UNROLL), axes, (x, w), carried)
        return self._loop((whole, axis.count, 1), axes, (x, w), carried)

    def _loop(
        self,
        steps: tuple[IRIndex, IRIndex, int],
        axes: tuple[Axis, ...],
        at: tuple[IRValue, IRValue],
        carried: list[IRValue],
    ) -> list[IRValue]:
        """Write the loop over some steps of the first axis, several at a time."""
        e, axis, inner = self.e, axes[0], axes[1:]
        first, stop, unroll = steps
        with e.loop(first, stop, unroll, carry=carried) as loop:
            here = e.address(at[0], e.mul(loop.index, axis.x_step))
            weights = e.address(at[1], e.mul(loop.index, axis.w_step))
            if inner:
                loop.following = self.emit(inner, here, weights, loop.carried)
            else:
                for step in range(unroll):
                    at = (
                        e.address(here, e.mul(step, axis.x_step)),
                        e.address(weights, e.mul(step, axis.w_step)),
                    )
                    loop.following = self._multiply(*at, loop.following)
                loop.following = self._bring(loop.following)
        return loop.results

    def _multiply(self, x: IRValue, w: IRValue, carried: list[IRValue]) -> list[IRValue]:
        """Write one step: every pixel's number times every vector of weights."""
        e, vectors, arithmetic = self.e, self.tile.vectors, self.arithmetic
        weights = [arithmetic.weight(e, w, vector * e.lanes) for vector in range(vectors)]
        results = []
        for pixel in range(self.tile.pixels):
            number = arithmetic.number(e, x, e.mul(pixel, self.pixel_step))
            row = carried[pixel * vectors : (pixel + 1) * vectors]
            results += [
                arithmetic.add(e, number, weight, total) for weight, total in zip(weights, row, strict=True)
            ]
        return results + carried[self.tile.pixels * vectors :]

    def _bring(self, carried: list[IRValue]) -> list[IRValue]:
        if not self.lines:
            return carried
        *accumulators, address = carried
        for line in range(self.lines):
            self.e.prefetch(address, line * LINE)
        return [*accumulators, self.e.address(address, self.lines * LINE)]


def _unroll(axis: Axis, tile: Tile) -> int:
    """Return how many steps a round of the innermost loop has: one of a large tile keeps the multipliers busy."""
    if tile.pixels * tile.vectors >= _LARGE:
        return 1
    return next(u for u in (_UNROLL, 3, 2, 1) if axis.count % u == 0)
