"""bf16 convolutions and linear layers: estimated cost, and kernel calls."""

from dataclasses import dataclass
from math import prod

from engine.compiler.graph import Convolution, Linear, TransposedConvolution
from engine.compiler.kernels.bf16_convolution import Bf16Convolution
from engine.compiler.kernels.bf16_layout import Bf16Layout, choose_runs
from engine.compiler.kernels.bf16_rate import bf16_speedup
from engine.compiler.kernels.bf16_staging import can_stage_planes
from engine.compiler.kernels.convolution_chunk import even_size
from engine.compiler.kernels.epilogue import Epilogue
from engine.compiler.kernels.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.memory.view import View
from engine.compiler.selection.bf16_group import product_group
from engine.compiler.selection.call import (
    Selector,
    channels_last,
    has_channels_last,
    image_strides,
    parallel_parts,
)
from engine.dtypes import Array
from engine.precision import Precision

STEP = 7.0
"""Nanoseconds of the product of two AMX tiles, their loads included; measured, as all figures here."""
TILE = 35.0
"""Nanoseconds that a tile of sums takes besides: its start, and its way through memory."""
STAGED_WORD = 0.16
"""Nanoseconds of rounding a pair and storing it in scratch memory."""
FINISHED_VECTOR = 1.2
"""Nanoseconds of the epilogue of a vector of sums."""
VECTOR_RATE = 5.5
"""Multiply-adds per lane and nanosecond in float32 vectors."""
STREAM = 7.5
"""Bytes per nanosecond at which weights are read that do not fit the core's own cache."""
NEAR_CACHE = 1 << 20
"""Bytes that stay in the core's own cache while other data streams through it."""
FAR_WEIGHTS = 256 << 10
"""Bytes of weights that are no longer in the core's own cache when needed: other layers' weights replaced them."""
_STAGED_BYTES = 192 << 10
"""Bytes of input of one chunk: it stays in the core's own cache while all weights are applied to it."""
_LARGE_BYTES = 512 << 10
"""The same where weights are many, so that they are read less often."""


@dataclass(frozen=True, slots=True)
class Bf16Work:
    """A convolution without groups as the kernel sees it.

    Attributes:
        node: the node.
        weight: (filters, channels, rows, columns).
        x: input.
        out: output.
        epilogue: operations on the results.
        operands: operands of the epilogue.
        shape: shape of the convolution.
        padding: zeros around the input.
        spread: rows and columns that each pixel becomes.
        is_bf16: whether input and output are of bfloat16, two channels to an element.
    """

    node: Convolution | Linear | TransposedConvolution
    weight: Array
    x: View
    out: View
    epilogue: Epilogue
    operands: list[View]
    shape: ConvShape
    padding: ImplicitPadding
    spread: tuple[int, int] = (1, 1)
    is_bf16: tuple[bool, bool] = (False, False)


def may_round(selector: Selector) -> bool:
    """Whether operands of products may be rounded to bfloat16."""
    return selector.precision in (Precision.BF16, Precision.AUTO)


def bf16_time(selector: Selector, shape: ConvShape) -> float:
    """Return the nanoseconds that a convolution of rounded operands is expected to take for one image.

    What is rounded is chosen by one image, so that results of an image do not depend on how many come with it.
    """
    layout = Bf16Layout(shape, shape.size[0], choose_runs(shape), selector.lanes)
    words = shape.taps * -(-shape.channels // 2) * shape.filters
    vectors = prod(shape.size) * -(-shape.filters // selector.lanes)
    moved = STAGED_WORD * layout.plane_words + FINISHED_VECTOR * vectors
    if selector.target.has_tiles:
        tiles = -(-layout.pixels // 16) * -(-shape.filters // 16)
        products = tiles * (TILE + STEP * layout.steps)
    else:
        rate = VECTOR_RATE * selector.lanes * bf16_speedup(selector.target)
        products = 2 * words * prod(shape.size) / rate
    stream = max(0, 4 * words - NEAR_CACHE) / STREAM
    return moved + max(products, stream) + 0.3 * min(products, stream)


def convolve_bf16(selector: Selector, work: Bf16Work) -> None:
    """Add the call of a convolution of rounded operands."""
    node, shape, weight = work.node, work.shape, work.weight
    rows, blocks = _chunk(selector, shape, prod(work.spread))
    layout = Bf16Layout(shape, rows, choose_runs(shape), selector.lanes)
    is_planar = (
        not work.is_bf16[0]
        and not has_channels_last(work.x)
        and work.x.strides[3] == 1
        and can_stage_planes(layout)
    )
    x = work.x if is_planar else channels_last(selector, work.x)
    kernel = Bf16Convolution(
        shape=shape,
        strides=ImageStrides(image_strides(x), image_strides(work.out)),
        padding=work.padding,
        rows=rows,
        blocks=blocks,
        has_tiles=selector.target.has_tiles,
        group=product_group(selector.target, shape, rows),
        lanes=selector.lanes,
        epilogue=work.epilogue,
        prefetches_weights=2 * weight.size > FAR_WEIGHTS,
        channel_step=x.strides[1] if is_planar else 1,
        spread=work.spread,
        is_bf16=work.is_bf16,
    )
    weights, bias = selector.weights(node, kernel, weight, node.bias)
    selector.call(kernel, x, weights, bias, work.out, *work.operands, precision=Precision.BF16)


def _chunk(selector: Selector, shape: ConvShape, windows: int) -> tuple[int, int]:
    """Choose the rows, and the blocks of filters for so many places in a window, of a chunk.

    Where weights are many and the input is small, threads share the filters, so that each weight is read once; else
    they share the rows.
    """
    rows = shape.size[0]
    layout = Bf16Layout(shape, rows, choose_runs(shape), selector.lanes)
    every = layout.blocks * windows  # no kernel's blocks are narrower than a vector
    staged, weights = 4 * layout.plane_words, 4 * layout.block_words * every
    room = _LARGE_BYTES if weights > FAR_WEIGHTS else _STAGED_BYTES
    parts = min(rows, -(-staged // room))
    least = parts * shape.images
    wanted = parallel_parts(windows * bf16_time(selector, shape), selector.threads, 1)
    if least < wanted and weights > FAR_WEIGHTS:
        blocks = _blocks(selector, shape, -(-rows // parts)) * windows
        if blocks >= min(wanted, rows * shape.images + 1):
            return -(-rows // parts), -(-blocks // wanted)
    return even_size(rows, shape.images, -(-least // wanted) * wanted, least, selector.threads), every


def _blocks(selector: Selector, shape: ConvShape, rows: int) -> int:
    """Return into how many blocks of filters the kernel of so many rows is cut."""
    _, vectors = product_group(selector.target, shape, rows)
    return -(-shape.filters // (vectors * selector.lanes))
