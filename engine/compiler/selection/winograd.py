"""The kernels of Winograd convolutions."""

from engine.compiler.kernels.compact_winograd import CompactWinograd
from engine.compiler.kernels.shapes import ImageStrides
from engine.compiler.kernels.tile import Tile, choose_tile
from engine.compiler.kernels.winograd import Winograd
from engine.compiler.selection.call import Selector, image_strides, parallel_parts
from engine.compiler.selection.convolution_time import (
    COMPACT_TILES,
    NEAR_CACHE,
    Work,
    is_compact,
    product_time,
    tiles_of,
)

_COMPACT_CHANNELS = 32
"""Channels whose filters, of one vector, stay in the nearest cache together with what is computed of them."""


def winograd_kernel(selector: Selector, work: Work, outputs: int) -> Winograd | CompactWinograd:
    """Return the kernel of a Winograd convolution.

    Args:
        selector: the compilation target.
        work: the convolution, its channels last.
        outputs: rows and columns that a tile computes.
    """
    if is_compact(selector, work, outputs):
        return _compact(selector, work, outputs)
    shape = work.shape
    tiles = tiles_of(work, outputs)
    positions = (outputs + 2) ** 2
    count = _tiles_of_chunk(selector, tiles, positions * (shape.channels + shape.filters) * 4, work)
    return Winograd(
        shape=shape,
        padding=work.padding,
        strides=_strides(work),
        outputs=outputs,
        tiles=count,
        tile=choose_tile(selector.target, count, -(-shape.filters // selector.lanes)),
        lanes=selector.lanes,
        epilogue=work.epilogue,
        # not where they are few: batches of all sizes share the code that prefetches none
        prefetches_weights=4 * positions * shape.filters * shape.channels > NEAR_CACHE,
    )


def _compact(selector: Selector, work: Work, outputs: int) -> CompactWinograd:
    """Return the kernel that transforms its own filters: threads share these, as there are few tiles."""
    shape, lanes = work.shape, selector.lanes
    tiles = tiles_of(work, outputs)
    depth = -(-shape.channels // lanes) * lanes
    parts = parallel_parts(product_time(selector, work), selector.threads, 1)
    return CompactWinograd(
        shape=shape,
        padding=work.padding,
        strides=_strides(work),
        outputs=outputs,
        tiles=tiles,
        tile=Tile(COMPACT_TILES, 1),
        lanes=lanes,
        epilogue=work.epilogue,
        positions=outputs + 2,
        channels=max(step for step in range(lanes, _COMPACT_CHANNELS + lanes, lanes) if depth % step == 0),
        filter_parts=min(parts, -(-shape.filters // lanes)),
    )


def _strides(work: Work) -> ImageStrides:
    return ImageStrides(image_strides(work.x), image_strides(work.out))


def _tiles_of_chunk(selector: Selector, tiles: int, tile_bytes: int, work: Work) -> int:
    """Choose how many tiles are computed together: as many as the core's cache holds, more if weights are many."""
    weight_bytes = 4 * work.node.weight.size
    room = NEAR_CACHE * (2 if weight_bytes > NEAR_CACHE // 4 else 1) * 3 // 4
    most = max(1, min(room // tile_bytes, -(-tiles // selector.threads)))
    chunks = -(-tiles // most)
    # as many chunks for each thread
    chunks = -(-chunks // selector.threads) * selector.threads if tiles >= selector.threads else chunks
    return -(-tiles // chunks)
