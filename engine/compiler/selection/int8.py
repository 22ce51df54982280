"""Kernels for 8-bit integers."""

import numpy as np

from engine.compiler.contraction.arithmetic import Int8
from engine.compiler.contraction.convolution import DirectConvolution
from engine.compiler.contraction.epilogue import Broadcast, Epilogue, EpilogueOperand
from engine.compiler.contraction.shapes import ConvShape, ImplicitPadding
from engine.compiler.contraction.split import ChunkSize, even_size
from engine.compiler.contraction.staged_convolution import StagedConvolution
from engine.compiler.contraction.staged_layout import StagedLayout, choose_runs
from engine.compiler.contraction.tile import Tile, choose_tile
from engine.compiler.emit.int8 import WORD_CHANNELS, ZERO
from engine.compiler.emit.jit import Kernel
from engine.compiler.graph import Dequantize, Int8Convolution, Int8Linear, Quantize, Requantize, RowQuantize
from engine.compiler.kernels.conversion import ConversionKernel
from engine.compiler.kernels.depthwise import Depthwise
from engine.compiler.kernels.row_quantization import RowQuantization
from engine.compiler.memory.view import View
from engine.compiler.memory.weights import Packing
from engine.compiler.selection import cost
from engine.compiler.selection.call import (
    Selector,
    as_image,
    channels_last,
    image_epilogue,
    parallel_parts,
    selects,
    view_of,
)
from engine.compiler.selection.linear import copied_rows, linear_kernel, written_rows
from engine.compiler.selection.work import Work, convolution_work
from engine.precision import Precision
from engine.quantization.tensor_scale import TensorScale

_BLOCKS_OF_THREAD = 4
"""Blocks of filters of a thread from which on it matters little that another has one more."""
_VECTORS, _TILES = "int8", "int8 in matrix registers"


@selects(Quantize)
def select_quantize(selector: Selector, node: Quantize) -> None:
    """Choose the kernel that makes integers."""
    x, out = flat_image(view_of(node.inputs[0])), flat_image(view_of(node.output))
    if 1 not in (x.strides[1], x.strides[3]):
        x = channels_last(selector, x)
    _convert(selector, x, out, x.shape[1], (None, node.scale))


@selects(Dequantize)
def select_dequantize(selector: Selector, node: Dequantize) -> None:
    """Choose the kernel that makes float32 of integers."""
    x, out = flat_image(view_of(node.inputs[0])), flat_image(view_of(node.output))
    # storage is channels-last in whatever this node writes to
    _convert(selector, x, out, out.shape[1], (node.scale, None))


@selects(Requantize)
def select_requantize(selector: Selector, node: Requantize) -> None:
    """Choose the kernel that makes integers by one scale those by another."""
    x, out = flat_image(view_of(node.inputs[0])), flat_image(view_of(node.output))
    _convert(selector, x, out, WORD_CHANNELS * out.shape[1], (node.x_scale, node.scale))


def _convert(
    selector: Selector,
    x: View,
    out: View,
    channels: int,
    scales: tuple[TensorScale | None, TensorScale | None],
) -> None:
    images, _, rows, columns = out.shape
    kernel = ConversionKernel(
        images=images,
        size=(rows, columns),
        channels=channels,
        x_strides=_four(x.strides),
        out_strides=_four(out.strides),
        x_scale=scales[0],
        out_scale=scales[1],
        lanes=selector.lanes,
    )
    selector.call(kernel, x, out)


def _four(strides: tuple[int, ...]) -> tuple[int, int, int, int]:
    images, channels, rows, pixels = strides
    return images, channels, rows, pixels


def flat_image(view: View) -> View:
    """Return a tensor as an image; rows of a matrix are pixels of one row."""
    if len(view.shape) != 2:
        return as_image(view)
    (rows, channels), (row, channel) = view.shape, view.strides
    return View(view.buffer, view.offset, (1, channels, 1, rows), (rows * row, channel, rows * row, row))


@selects(Int8Convolution)
def select_int8_convolution(selector: Selector, node: Int8Convolution) -> None:
    """Choose the kernel of a convolution of integers, or of a linear layer."""
    x, out = flat_image(view_of(node.inputs[0])), flat_image(view_of(node.output))
    epilogue, operands = image_epilogue(selector, node, flat_image)
    work = convolution_work(node, node.weights.integers, (x, out), epilogue, operands)
    kernel: Kernel
    packing: Packing
    if node.is_depthwise:
        packing = kernel = _depthwise(selector, work)
    else:
        kernel = contraction(selector, work)
        packing = kernel.packing
    factors = np.float32(node.x_scale.scale) * node.weights.scales
    bias = np.zeros_like(factors) if node.bias is None else node.bias
    weights, starts = selector.weights(node, packing, work.weight, np.stack([factors, bias]))
    selector.call(kernel, x, weights, starts, out, *operands, precision=Precision.INT8)


def _depthwise(selector: Selector, work: Work[Int8Convolution]) -> Depthwise:
    return Depthwise.tuned(
        selector.target,
        shape=work.shape,
        padding=work.padding,
        strides=work.strides,
        threads=selector.threads,
        epilogue=work.epilogue,
        x_scale=work.node.x_scale,
        out_scale=work.node.output.scale,
    )


def contraction(selector: Selector, work: Work[Int8Convolution]) -> DirectConvolution | StagedConvolution:
    """Choose the kernel of a convolution that is not depthwise: in matrix registers or in vectors."""
    machine, shape = selector.machine, work.shape
    efforts = {_VECTORS: cost.int8(machine, shape)}
    if machine.has_int8_tiles and shape.groups == 1:
        efforts[_TILES] = cost.int8_tiles(machine, shape)
    make = {_VECTORS: _direct, _TILES: _in_tiles}[selector.choose(efforts)]
    return make(selector, work)


def _direct(selector: Selector, work: Work[Int8Convolution]) -> DirectConvolution | StagedConvolution:
    is_padded = any(work.node.padding)
    shape = work.flat_shape if work.is_flat and not is_padded else work.shape
    step = shape.stride[1] * work.strides.x[2]
    tile = choose_tile(selector.target, shape.size[1], -(-shape.filters // selector.lanes), step)
    return DirectConvolution(
        shape=shape.in_words(WORD_CHANNELS),
        strides=work.strides,
        tile=tile,
        chunk=_chunk(selector, work, shape, tile),
        lanes=selector.lanes,
        epilogue=work.epilogue,
        padding=work.padding if is_padded else None,
        prefetches_weights=selector.machine.is_far(work.weight.size),
        arithmetic=Int8(work.node.x_scale),
        out_scale=work.node.output.scale,
    )


def _in_tiles(selector: Selector, work: Work[Int8Convolution]) -> DirectConvolution | StagedConvolution:
    machine, shape, padding = selector.machine, work.shape, work.padding
    shared = parallel_parts(machine.time(cost.int8_tiles(machine, shape)), selector.threads, 2)
    has_more_weights = _has_more_weights(work)
    rows, blocks = _tile_chunk(shape, machine.chunk, selector.threads, shared, has_more_weights)
    if rows == shape.size[0] and not any(work.node.padding) and work.is_flat:
        shape, rows = work.flat_shape, 1
        padding = ImplicitPadding(shape.size, (0, 0))
    return StagedConvolution(
        shape=shape,
        strides=work.strides,
        padding=padding,
        rows=rows,
        blocks=blocks,
        has_tiles=True,
        group=(2, 2),
        lanes=selector.lanes,
        epilogue=work.epilogue,
        prefetches_weights=selector.machine.is_far(work.weight.size),
        arithmetic=Int8(work.node.x_scale),
        out_scale=work.node.output.scale,
    )


def _tile_chunk(
    shape: ConvShape, room: int, threads: int, shared: int, has_more_weights: bool
) -> tuple[int, int]:
    """Choose the rows and the blocks of filters of a chunk in matrix registers, as `_chunk` does in vectors.

    Threads share the filters as well where an image has too few rows for them, as the only one of a linear layer.
    """
    rows, images = shape.size[0], shape.images
    in_words = shape.in_words(WORD_CHANNELS)
    layout = StagedLayout(in_words, rows, choose_runs(in_words), 2 * cost.TILE_WIDTH)
    least = min(rows, -(-4 * layout.plane_words // room))
    shares_filters = has_more_weights or rows * images < shared
    block_parts = _filter_parts(layout.blocks, shared, threads) if shares_filters else 1
    if block_parts > 1:
        return -(-rows // least), -(-layout.blocks // block_parts)
    least *= images
    return even_size(rows, images, -(-least // shared) * shared, least, threads), layout.blocks


def _has_more_weights(work: Work[Int8Convolution]) -> bool:
    """Whether weights are more than input and output."""
    return work.weight.size > 4 * work.x.size + work.shape.pixels * work.shape.out_channels


def _chunk(selector: Selector, work: Work[Int8Convolution], shape: ConvShape, tile: Tile) -> ChunkSize:
    """Choose what one chunk does.

    One thread does all filters over as much of the input as the core's own cache holds. Threads share the pixels, so
    that each finds in its core's cache what it wrote there in the step before; where weights are more than input and
    output, they share the filters, so that each weight is read by one core.
    """
    rows, tiles = shape.images * shape.size[0], -(-shape.size[1] // tile.pixels)
    blocks = shape.groups * -(-shape.filters // (tile.vectors * selector.lanes))
    machine, threads = selector.machine, selector.threads
    parts = least = -(-4 * work.x.size // machine.chunk)
    shared = parallel_parts(machine.time(cost.int8(machine, shape)), threads)
    filter_parts = _filter_parts(blocks, shared, threads) if _has_more_weights(work) else 1
    if filter_parts > 1:
        blocks, threads = -(-blocks // filter_parts), 1
    else:
        parts = -(-least // shared) * shared
    if any(work.node.padding) or rows >= parts:
        return ChunkSize(even_size(shape.size[0], shape.images, parts, least, threads), tiles, blocks)
    return ChunkSize(1, even_size(tiles, rows, parts, least, threads), blocks)


def _filter_parts(blocks: int, shared: int, threads: int) -> int:
    """Return into how many parts threads split blocks of filters, up to `shared`; 1 where that cannot be even."""
    even = (parts for parts in range(shared, 1, -threads) if blocks % parts == 0)
    most = min(shared, threads)
    return next(even, most if blocks >= _BLOCKS_OF_THREAD * most else 1)


_STEPS = TensorScale(1.0, ZERO)
"""Scale of integers before the scales of their rows."""


@selects(RowQuantize)
def select_row_quantize(selector: Selector, node: RowQuantize) -> None:
    """Choose the kernel that makes integers of rows."""
    x = copied_rows(selector, view_of(node.inputs[0]))
    integers, scales = (copied_rows(selector, view_of(tensor)) for tensor in node.outputs)
    rows, columns = x.shape
    kernel = RowQuantization(
        rows=rows,
        columns=columns,
        x_step=x.strides[0],
        out_step=integers.strides[0],
        lanes=selector.lanes,
        is_dynamic=selector.is_dynamic,
    )
    selector.call(kernel, x, integers, scales)


@selects(Int8Linear)
def select_int8_linear(selector: Selector, node: Int8Linear) -> None:
    """Choose the kernel of a linear layer of integers whose rows have scales of their own."""
    x, (target, out) = copied_rows(selector, view_of(node.inputs[0])), written_rows(selector, node)
    operands = [copied_rows(selector, view_of(tensor)) for tensor in node.inputs[node.own :]]
    described = [_operand(operand, out) for operand in operands]
    made = Int8Convolution(node.steps, node.inputs, weights=node.weights, bias=None, x_scale=_STEPS)
    made.outputs = node.outputs
    epilogue = Epilogue(node.epilogue, tuple(described))
    images = flat_image(x), flat_image(out)
    numbers = np.stack([node.weights.scales, np.zeros_like(node.weights.scales)])
    kernel: DirectConvolution | StagedConvolution
    if selector.is_dynamic:  # in vectors, as only those kernels have runtime rows
        kernel = linear_kernel(selector, x, out, epilogue, Int8(_STEPS))
    else:
        views = [flat_image(view) for view in operands]
        kernel = contraction(selector, convolution_work(made, node.weights.integers, images, epilogue, views))
    weights, starts = selector.weights(made, kernel.packing, node.weights.integers, numbers)
    selector.call(kernel, images[0], weights, starts, images[1], *operands, precision=Precision.INT8)
    if target is not node.output.view:
        selector.copy(target, view_of(node.output))


def _operand(view: View, out: View) -> EpilogueOperand:
    """Return how an operand, as rows, spreads over the rows of the output."""
    if view.shape == out.shape and view.size > 1:
        return EpilogueOperand(Broadcast.FULL, (0, 0, view.strides[0]))
    if view.shape == (out.shape[0], 1):
        return EpilogueOperand(Broadcast.PIXEL, (0, 0, view.strides[0]))
    return EpilogueOperand(Broadcast.SCALAR) if view.size == 1 else EpilogueOperand(Broadcast.CHANNEL, (0,))
