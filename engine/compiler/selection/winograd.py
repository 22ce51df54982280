"""The kernels of Winograd convolutions."""

from engine.compiler.kernels.compact_winograd import CompactWinograd
from engine.compiler.kernels.epilogue import Epilogue
from engine.compiler.kernels.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.kernels.tile import Tile, choose_tile
from engine.compiler.kernels.winograd import Winograd
from engine.compiler.selection import cost
from engine.compiler.selection.call import Selector, parallel_parts

_COMPACT_CHANNELS = 32
"""Channels whose filters, of one vector, stay in the nearest cache together with what is computed of them."""


def winograd_kernel(
    selector: Selector,
    shape: ConvShape,
    padding: ImplicitPadding,
    strides: ImageStrides,
    epilogue: Epilogue,
    outputs: int,
) -> Winograd:
    """Return the kernel whose filters were transformed before; a tile computes `outputs` rows and columns."""
    positions = (outputs + 2) ** 2
    count = _tiles_of_chunk(selector, shape, outputs)
    return Winograd(
        shape=shape,
        padding=padding,
        strides=strides,
        outputs=outputs,
        tiles=count,
        tile=choose_tile(selector.target, count, -(-shape.filters // selector.lanes)),
        lanes=selector.lanes,
        epilogue=epilogue,
        # not where they are few: batches of all sizes share the code that prefetches none
        prefetches_weights=4 * positions * shape.filters * shape.channels > selector.machine.cache,
    )


def compact_kernel(
    selector: Selector,
    shape: ConvShape,
    padding: ImplicitPadding,
    strides: ImageStrides,
    epilogue: Epilogue,
) -> CompactWinograd:
    """Return the kernel that transforms its own filters: threads share these, as there are few tiles."""
    machine, lanes = selector.machine, selector.lanes
    depth = -(-shape.channels // lanes) * lanes
    parts = parallel_parts(machine.time(cost.compact_winograd(machine, shape)), selector.threads, 1)
    return CompactWinograd(
        shape=shape,
        padding=padding,
        strides=strides,
        outputs=cost.COMPACT_OUTPUTS,
        tiles=cost.tiles_of(shape, cost.COMPACT_OUTPUTS),
        tile=Tile(cost.COMPACT_TILES, 1),
        lanes=lanes,
        epilogue=epilogue,
        positions=cost.COMPACT_OUTPUTS + 2,
        channels=max(step for step in range(lanes, _COMPACT_CHANNELS + lanes, lanes) if depth % step == 0),
        filter_parts=min(parts, -(-shape.filters // lanes)),
    )


def _tiles_of_chunk(selector: Selector, shape: ConvShape, outputs: int) -> int:
    """Choose how many tiles are computed together: as many as the core's cache holds, more if weights are many."""
    machine, tiles = selector.machine, cost.tiles_of(shape, outputs)
    tile_bytes = 4 * (outputs + 2) ** 2 * (shape.channels + shape.filters)
    weight_bytes = 4 * shape.taps * shape.channels * shape.filters
    room = machine.cache * (2 if machine.is_far(weight_bytes) else 1) * 3 // 4
    most = max(1, min(room // tile_bytes, -(-tiles // selector.threads)))
    chunks = -(-tiles // most)
    # as many chunks for each thread
    chunks = -(-chunks // selector.threads) * selector.threads if tiles >= selector.threads else chunks
    return -(-tiles // chunks)
