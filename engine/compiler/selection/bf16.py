"""bf16 convolutions and linear layers: their register blocking, their chunks, and kernel calls."""

from dataclasses import replace
from math import prod
from typing import Any

from engine.compiler.contraction.arithmetic import BF16
from engine.compiler.contraction.shapes import ConvShape
from engine.compiler.contraction.split import even_size
from engine.compiler.contraction.staged_convolution import StagedConvolution
from engine.compiler.contraction.staged_layout import StagedLayout, choose_runs
from engine.compiler.contraction.staging import can_stage_planes
from engine.compiler.contraction.tile import Tile, cycles_of, fitting_tiles
from engine.compiler.emit.target import Target
from engine.compiler.selection import cost
from engine.compiler.selection.call import (
    Selector,
    channels_last,
    has_channels_last,
    parallel_parts,
)
from engine.compiler.selection.work import Work
from engine.precision import Precision


def may_round(selector: Selector) -> bool:
    """Whether operands of products may be rounded to bfloat16."""
    return selector.precision in (Precision.BF16, Precision.AUTO)


def convolve_bf16(selector: Selector, work: Work[Any]) -> None:
    """Add the call of a convolution of rounded operands."""
    shape, weight = work.shape, work.weight
    rows, blocks = _chunk(selector, shape, prod(work.spread))
    is_planar = (
        not work.is_bf16[0]
        and not has_channels_last(work.x)
        and work.x.strides[3] == 1
        and can_stage_planes(choose_runs(shape.in_words(BF16.per_word)).pixel_words)
    )
    x = work.x if is_planar else channels_last(selector, work.x)
    kernel = StagedConvolution(
        shape=shape,
        strides=replace(work, x=x).strides,
        padding=work.padding,
        rows=rows,
        blocks=blocks,
        has_tiles=selector.target.has_tiles,
        group=product_group(selector.target, shape, rows),
        lanes=selector.lanes,
        epilogue=work.epilogue,
        prefetches_weights=selector.machine.is_far(2 * weight.size),
        channel_step=x.strides[1] if is_planar else 1,
        spread=work.spread,
        rounds=not work.is_bf16[0],
        stores_bf16=work.is_bf16[1],
    )
    weights, bias = selector.weights(work.node, kernel.packing, weight, work.node.bias)
    selector.call(kernel, x, weights, bias, work.out, *work.operands, precision=Precision.BF16)


def _chunk(selector: Selector, shape: ConvShape, windows: int) -> tuple[int, int]:
    """Choose the rows, and the blocks of filters for so many places in a window, of a chunk.

    Where weights are many and the input is small, threads share the filters, so that each weight is read once; else
    they share the rows.
    """
    rows, machine = shape.size[0], selector.machine
    in_words = shape.in_words(BF16.per_word)
    layout = StagedLayout(in_words, rows, choose_runs(in_words), selector.lanes)
    every = layout.blocks * windows  # no kernel's blocks are narrower than a vector
    staged, weights = 4 * layout.plane_words, 4 * layout.block_words * every
    has_many = machine.is_far(weights)  # of which each is to be read less often
    parts = min(rows, -(-staged // ((2 if has_many else 1) * machine.chunk)))
    least = parts * shape.images
    wanted = parallel_parts(windows * machine.time(cost.bf16(machine, shape)), selector.threads, 1)
    if least < wanted and has_many:
        blocks = _blocks(selector, shape, -(-rows // parts)) * windows
        if blocks >= min(wanted, rows * shape.images + 1):
            return -(-rows // parts), -(-blocks // wanted)
    return even_size(rows, shape.images, -(-least // wanted) * wanted, least, selector.threads), every


def _blocks(selector: Selector, shape: ConvShape, rows: int) -> int:
    """Return into how many blocks of filters the kernel of so many rows is cut."""
    _, vectors = product_group(selector.target, shape, rows)
    return -(-shape.filters // (vectors * selector.lanes))


def product_group(target: Target, shape: ConvShape, rows: int) -> tuple[int, int]:
    """Return the tiles of pixels and of filters, or the pixels and the vectors of filters, of a product.

    Args:
        target: the compilation target.
        shape: shape of the convolution.
        rows: rows of output of a chunk.
    """
    vectors, columns = -(-shape.filters // target.lanes), shape.size[1]
    if target.has_tiles:
        return (2, 2) if vectors > 1 else (3, 1)  # with those of the operands, as many tiles as there are
    fitting = [
        tile
        for tile in fitting_tiles(target, rows * columns, vectors)
        if tile.pixels < columns or tile.pixels % columns == 0
    ]
    best = min(fitting, key=lambda tile: _cycles(rows, columns, tile) * -(-vectors // tile.vectors))
    return best.pixels, best.vectors


def _cycles(rows: int, columns: int, tile: Tile) -> float:
    """Return the cycles that a step of all pixels takes with one block of filters."""
    lines, pixels = (rows, columns) if tile.pixels < columns else (1, rows * columns)
    full, rest = divmod(pixels, tile.pixels)
    return lines * (full * cycles_of(tile) + (cycles_of(Tile(rest, tile.vectors)) if rest else 0.0))
