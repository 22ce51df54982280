"""The register tile that convolutions and matrix products are made of.

A tile is `pixels` x `vectors` accumulators that stay in registers for a whole reduction: every step of it loads
`vectors` vectors of weights once, one number per pixel, and multiplies each with each.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.compiler.emitter import Emitter, Value
from engine.compiler.target import Target

_UNROLL = 4
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

    count: int
    x_step: int
    w_step: int


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


def choose_tile(target: Target, pixels: int, vectors: int) -> Tile:
    """Choose the tile for an output of so many pixels in a row and so many vectors of filters.

    Wanted: all accumulators, the weights and one number in registers; no remainder; enough accumulators to hide
    the latency of an fma; and many multiplications per load.
    """
    best, tile = -1.0, Tile(1, 1)
    widest = _WIDEST if pixels >= _WIDEST else 2 * _WIDEST
    for nv in range(1, min(vectors, widest, target.registers // 2 - 2) + 1):
        room = (target.registers - 1 - nv) // nv
        for mr in range(1, min(pixels, room) + 1):
            value = _worth(pixels, vectors, mr, nv)
            if value > best:
                best, tile = value, Tile(mr, nv)
    return tile


def _worth(pixels: int, vectors: int, mr: int, nv: int) -> float:
    """Return the part of peak that a tile is expected to reach; measured on processors with two fma units."""
    runs = -(-pixels // mr) * -(-vectors // nv)
    useful = pixels * vectors / (runs * mr * nv)
    cycles = max(mr * nv / 2, (mr + nv) / 2, 4.0)  # two fmas or two loads a cycle; four cycles of latency
    return useful * (mr * nv / 2) / (cycles + 0.02 * (mr + nv) + 0.15)


def emit_tile(
    e: Emitter,
    tile: Tile,
    axes: Sequence[Axis],
    x: Value,
    pixel_step: int,
    w: Value,
    start: Sequence[Value],
) -> list[Value]:
    """Write the reduction of one tile.

    Args:
        e: the kernel.
        tile: the tile's shape.
        axes: the reduction, outermost first.
        x: address of the first pixel's first element.
        pixel_step: elements between two pixels of the tile.
        w: address of the weights; the tile's filters lie side by side.
        start: what the accumulators start with, `pixels` x `vectors`, a pixel's vectors together.

    Returns:
        The accumulators, in the order of `start`.
    """
    return _reduce(e, tile, tuple(axes), (x, pixel_step), w, list(start))


def _reduce(
    e: Emitter,
    tile: Tile,
    axes: tuple[Axis, ...],
    source: tuple[Value, int],
    w: Value,
    accumulators: list[Value],
) -> list[Value]:
    axis, inner = axes[0], axes[1:]
    unroll = 1 if inner else next(u for u in (_UNROLL, 3, 2, 1) if axis.count % u == 0)
    x, pixel_step = source
    with e.loop(0, axis.count, unroll, carry=accumulators) as loop:
        here = e.address(x, e.mul(loop.index, axis.x_step))
        weights = e.address(w, e.mul(loop.index, axis.w_step))
        if inner:
            loop.following = _reduce(e, tile, inner, (here, pixel_step), weights, loop.carried)
        else:
            for step in range(unroll):
                offsets = (step * axis.x_step, step * axis.w_step)
                loop.following = _multiply(e, tile, (here, pixel_step), weights, loop.following, offsets)
    return loop.results


def _multiply(
    e: Emitter,
    tile: Tile,
    source: tuple[Value, int],
    w: Value,
    accumulators: list[Value],
    offsets: tuple[int, int],
) -> list[Value]:
    """Write one step: every pixel's number times every vector of weights."""
    x, pixel_step = source
    weights = [e.load(w, offsets[1] + vector * e.lanes) for vector in range(tile.vectors)]
    results = []
    for pixel in range(tile.pixels):
        number = e.load_broadcast(x, offsets[0] + pixel * pixel_step)
        row = accumulators[pixel * tile.vectors : (pixel + 1) * tile.vectors]
        results += [e.fma(number, weight, total) for weight, total in zip(weights, row, strict=True)]
    return results
