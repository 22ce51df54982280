"""What each kind of kernel has to do for a convolution or a matrix product, in the terms of the cost model."""

from dataclasses import replace
from math import prod

from engine.compiler.contraction.shapes import ConvShape
from engine.compiler.contraction.staged_layout import StagedLayout, choose_runs
from engine.compiler.kernels.winograd_transforms import OUTPUTS, POSITIONS
from engine.compiler.selection.machine import Effort, Machine
from engine.precision import Precision
from engine.quantization.int4 import GROUP

TILE_WIDTH = 16
"""Rows, and columns of float32, of a matrix register."""
_TILE_BYTES = 2 * 4 * TILE_WIDTH**2
"""Bytes of a matrix register of sums on its way through memory."""
_UNPACKING = 4
"""Operations on vectors that make float32 of a vector of weights of four bits."""
_FILTER_TRANSFORM = 100
"""Operations on vectors that transform one channel of a vector of 3x3 filters to 6x6."""
_BLOCK_VECTORS = 2
"""Vectors of a block of filters, mostly."""


def plain(machine: Machine, shape: ConvShape, *, prefetches: bool = True) -> Effort:
    """Return the effort of a direct convolution, or of a linear layer, in float32."""
    vectors, depth = _vectors(machine, shape), shape.taps * shape.channels
    return Effort(
        multiply_adds=vectors * machine.target.lanes * depth,
        weights=4 * depth * shape.out_channels,
        prefetches=prefetches,
        moved=4 * machine.target.lanes * vectors,
    )


def streamed(machine: Machine, shape: ConvShape) -> Effort:
    """Return the effort of a convolution whose loops follow the weights: partial sums wait in memory meanwhile."""
    effort = plain(machine, shape)
    return replace(effort, moved=effort.moved * (1 + 2 * shape.taps))


def winograd(machine: Machine, shape: ConvShape) -> Effort:
    """Return the effort of a Winograd convolution whose filters were transformed before."""
    tiles = tiles_of(shape)
    vectors = -(-shape.filters // machine.target.lanes)
    return Effort(
        multiply_adds=POSITIONS * tiles * shape.channels * vectors * machine.target.lanes,
        weights=4 * POSITIONS * shape.channels * shape.filters,
        moved=_patch_bytes(machine, shape),
    )


def compact_winograd(machine: Machine, shape: ConvShape) -> Effort:
    """Return the effort of one that transforms its filters in each run: each block of them reads all patches."""
    tiles = tiles_of(shape)
    vectors = -(-shape.filters // machine.target.lanes)
    patches = 4 * POSITIONS * tiles * shape.channels * vectors // _BLOCK_VECTORS
    return Effort(
        multiply_adds=(POSITIONS * tiles + _FILTER_TRANSFORM)
        * shape.channels
        * vectors
        * machine.target.lanes,
        weights=4 * shape.taps * shape.channels * shape.filters,
        moved=_patch_bytes(machine, shape) + patches,
    )


def bf16(machine: Machine, shape: ConvShape) -> Effort:
    """Return the effort of a convolution, without groups, of operands rounded to bfloat16."""
    layout = _layout(shape.in_words(2))
    vectors, depth = _vectors(machine, shape), shape.taps * 2 * layout.shape.channels
    effort = Effort(
        multiply_adds=0.0 if machine.target.has_tiles else vectors * machine.target.lanes * depth,
        precision=Precision.BF16,
        weights=2 * depth * shape.filters,
        moved=8 * shape.images * layout.plane_words + 4 * machine.target.lanes * vectors,
    )
    return _in_tiles(effort, layout) if machine.target.has_tiles else effort


def int4(machine: Machine, shape: ConvShape) -> Effort:
    """Return the effort of a linear layer in float32 with weights of four bits, and a scale for 32 of them."""
    effort = plain(machine, shape)
    multiply_adds = effort.multiply_adds + _UNPACKING * effort.weights / 4
    return replace(effort, multiply_adds=multiply_adds, weights=effort.weights * (1 / 8 + 1 / GROUP))


def int8(machine: Machine, shape: ConvShape) -> Effort:
    """Return the effort of a convolution of bytes in vectors."""
    vectors, depth = _vectors(machine, shape), shape.taps * 4 * -(-shape.channels // 4)
    return Effort(
        multiply_adds=vectors * machine.target.lanes * depth,
        precision=Precision.INT8,
        weights=depth * shape.out_channels,
        moved=4 * machine.target.lanes * vectors,
    )


def int8_tiles(machine: Machine, shape: ConvShape) -> Effort:
    """Return the same in matrix registers."""
    layout = _layout(shape.in_words(4))
    plain = int8(machine, shape)
    moved = plain.moved + 4 * shape.images * layout.plane_words
    return _in_tiles(replace(plain, multiply_adds=0.0, moved=moved), layout)


def tiles_of(shape: ConvShape) -> int:
    """Return how many tiles a Winograd convolution has."""
    return shape.images * prod(-(-extent // OUTPUTS) for extent in shape.size)


def _layout(shape: ConvShape) -> StagedLayout:
    """Return how a convolution's operands lie where all rows are staged; `shape` counts channels in words."""
    return StagedLayout(shape, shape.size[0], choose_runs(shape), TILE_WIDTH)


def _in_tiles(effort: Effort, layout: StagedLayout) -> Effort:
    shape = layout.shape
    tiles = shape.images * -(-layout.pixels // TILE_WIDTH) * -(-shape.filters // TILE_WIDTH)
    moved = effort.moved + tiles * _TILE_BYTES
    return replace(effort, tile_products=tiles * layout.steps, moved=moved)


def _patch_bytes(machine: Machine, shape: ConvShape) -> int:
    """Return the bytes of transformed patches and products, written and read, and of the results."""
    patches = 2 * 4 * POSITIONS * tiles_of(shape) * (shape.channels + shape.filters)
    return patches + 4 * machine.target.lanes * _vectors(machine, shape)


def _vectors(machine: Machine, shape: ConvShape) -> int:
    """Return the vectors of filters that the output consists of, the last of a group perhaps not full."""
    return shape.pixels * shape.groups * -(-shape.filters // machine.target.lanes)
