"""Kernels for convolutions: Winograd, depthwise or direct, whichever is expected to be fastest."""

from dataclasses import replace

from engine.compiler.contraction.convolution import DirectConvolution
from engine.compiler.contraction.epilogue import NOTHING, Broadcast
from engine.compiler.contraction.shapes import ConvShape, ImplicitPadding
from engine.compiler.contraction.split import ChunkSize
from engine.compiler.contraction.streamed_convolution import StreamedConvolution
from engine.compiler.contraction.tile import MANY_ROWS, Tile, choose_tile
from engine.compiler.graph import Convolution
from engine.compiler.kernels.compact_winograd import CompactWinograd
from engine.compiler.kernels.depthwise import Depthwise
from engine.compiler.kernels.winograd import Winograd
from engine.compiler.kernels.winograd_transforms import POSITIONS
from engine.compiler.memory.view import View, natural_strides
from engine.compiler.selection import cost
from engine.compiler.selection.bf16 import convolve_bf16, may_round
from engine.compiler.selection.call import (
    BF16,
    Selector,
    channels_last,
    has_channels_last,
    image_epilogue,
    image_of,
    image_of_shape,
    parallel_parts,
    selects,
)
from engine.compiler.selection.machine import Effort
from engine.compiler.selection.movement import pad
from engine.compiler.selection.work import Work, convolution_work

_Kernel = DirectConvolution | StreamedConvolution | Winograd | CompactWinograd | Depthwise
_ALL = 1 << 30
_MANY = (64, 64)
"""Rows and columns that kernels for images of all sizes are chosen for."""
_TRANSPOSED = (0, 1, 3, 2)
_DIRECT, _STREAMED, _WINOGRAD, _COMPACT = "direct", "streamed", "winograd", "compact winograd"
_MAX_TRANSFORMED = 8 << 20
"""Bytes of transformed filters, up to four times the model's, beyond which each run transforms them instead: that takes
a fifth longer, but networks of many channels would take three times the memory of their weights."""
_CHUNK = 4 << 20
"""Bytes of a chunk's tiles where weights are far: from the next cache, so that weights are read once for all."""


@selects(Convolution)
def select_convolution(selector: Selector, node: Convolution) -> None:
    """Choose the kernel of a convolution."""
    epilogue, operands = image_epilogue(selector, node)
    images = image_of(node.inputs[0]), image_of(node.output)
    work = _in_one_row(convolution_work(node, node.weight, images, epilogue, operands))
    is_bf16 = node.inputs[0].is_bf16, node.output.is_bf16
    node = work.node
    if selector.has_dynamic_images:
        _dynamic(selector, work)
        return
    filters, channels = node.weight.shape[:2]
    if node.groups > 1 and filters == node.groups * channels and _fits_vector(selector, channels):
        _depthwise(selector, replace(work, x=channels_last(selector, work.x)))
        return
    bf16 = _bf16(selector, work)
    chosen = selector.choose(_efforts(selector, work.shape, bf16), _efforts_of_one(selector, work, bf16))
    if bf16 is not None and (any(is_bf16) or chosen == BF16):
        convolve_bf16(selector, replace(bf16, is_bf16=is_bf16))
    elif chosen in (_WINOGRAD, _COMPACT):
        _winograd(selector, replace(work, x=channels_last(selector, work.x)), chosen)
    else:
        _direct(selector, of_pixels(selector, work), chosen)


def _dynamic(selector: Selector, work: Work[Convolution]) -> None:
    """Choose the kernel of a convolution of images of all sizes, by what they have in common."""
    filters, channels = work.weight.shape[:2]
    efforts = _efforts(selector, replace(work.shape, images=1, size=_MANY), None)
    if work.node.groups > 1 and filters == work.node.groups * channels and _fits_vector(selector, channels):
        _depthwise(selector, _with_padding(selector, work))
    elif efforts.keys() & {_WINOGRAD, _COMPACT}:
        chosen = _WINOGRAD if _WINOGRAD in efforts else _COMPACT
        _winograd(selector, replace(work, x=channels_last(selector, work.x)), chosen)
    else:
        _direct(selector, _with_padding(selector, of_pixels(selector, work)), _DIRECT)


def _with_padding(selector: Selector, work: Work[Convolution]) -> Work[Convolution]:
    """Return a convolution whose input has its padding in memory."""
    x = _padded(selector, work)
    node = replace(work.node, padding=(0, 0, 0, 0))
    return replace(work, node=node, x=x, padding=ImplicitPadding((x.shape[2], x.shape[3]), (0, 0)))


def _fits_vector(selector: Selector, channels: int) -> bool:
    """Whether a vector of channels has several whole groups of so many."""
    return channels < selector.lanes and selector.lanes % channels == 0


def _efforts(selector: Selector, shape: ConvShape, bf16: Work[Convolution] | None) -> dict[str, Effort]:
    """Return the candidates, and what each has to do."""
    machine = selector.machine
    efforts = {_DIRECT: cost.plain(machine, shape, prefetches=False)}
    is_plain = (shape.stride, shape.dilation, shape.groups) == ((1, 1), (1, 1), 1)
    if shape.groups == 1 and machine.is_far(4 * shape.taps * shape.channels * shape.filters):
        efforts[_STREAMED] = cost.streamed(machine, shape)
    if shape.kernel == (3, 3) and is_plain and shape.channels >= selector.lanes:
        efforts[_COMPACT] = cost.compact_winograd(machine, shape)
        effort = cost.winograd(machine, shape)
        if effort.weights <= _MAX_TRANSFORMED:
            efforts[_WINOGRAD] = effort
    if bf16 is not None:
        efforts[BF16] = cost.bf16(machine, replace(bf16.shape, images=shape.images))
    return efforts


def _efforts_of_one(
    selector: Selector, work: Work[Convolution], bf16: Work[Convolution] | None
) -> dict[str, Effort]:
    return _efforts(selector, replace(work.shape, images=1), bf16)


def _in_one_row(work: Work[Convolution]) -> Work[Convolution]:
    """Return the convolution of an image of one column as that of one row: register tiles go along rows."""
    if (work.x.shape[3], work.out.shape[3]) != (1, 1) or work.out.shape[2] == 1:
        return work
    transposed = [view.permuted(_TRANSPOSED) for view in work.operands]
    spreads = tuple(
        replace(operand, strides=(operand.strides[0], *reversed(operand.strides[1:])))
        if operand.broadcast is Broadcast.FULL
        else operand
        for operand in work.epilogue.operands
    )
    top, left, bottom, right = work.node.padding
    node = replace(
        work.node,
        weight=work.weight.swapaxes(2, 3),
        stride=(work.node.stride[1], work.node.stride[0]),
        padding=(left, top, right, bottom),
        dilation=(work.node.dilation[1], work.node.dilation[0]),
    )
    images = work.x.permuted(_TRANSPOSED), work.out.permuted(_TRANSPOSED)
    epilogue = replace(work.epilogue, operands=spreads)
    return convolution_work(node, node.weight, images, epilogue, transposed)


def _bf16(selector: Selector, work: Work[Convolution]) -> Work[Convolution] | None:
    """Return the convolution as one of operands rounded to bfloat16; None where that may not or cannot be."""
    node, x = work.node, work.x
    if not may_round(selector) or node.groups > 1:
        return None
    if node.weight.shape[2:] == (1, 1) and not any(node.padding):
        # pixels that no window begins at are not looked at
        x = x.sliced(2, 0, work.out.shape[2], node.stride[0]).sliced(3, 0, work.out.shape[3], node.stride[1])
        padding = ImplicitPadding((x.shape[2], x.shape[3]), (0, 0))
        return replace(work, x=x, shape=replace(work.shape, stride=(1, 1)), padding=padding)
    return work


def rounds_convolution(selector: Selector, node: Convolution) -> bool:
    """Whether the operands of a convolution's products will be rounded to bfloat16, wherever its tensors lie."""
    images = image_of_shape(node.inputs[0].shape), image_of_shape(node.output.shape)
    work = convolution_work(node, node.weight, images, NOTHING, [])
    bf16 = _bf16(selector, work)
    return bf16 is not None and selector.rounds(_efforts_of_one(selector, work, bf16))


def _depthwise(selector: Selector, work: Work[Convolution]) -> None:
    kernel = Depthwise.tuned(
        selector.target,
        shape=work.shape,
        padding=work.padding,
        strides=work.strides,
        threads=selector.threads,
        epilogue=work.epilogue,
        is_dynamic=selector.has_dynamic_images,
    )
    _call(selector, work, kernel)


def _winograd(selector: Selector, work: Work[Convolution], chosen: str) -> None:
    make = _compact_kernel if chosen == _COMPACT else _winograd_kernel
    kernel: Winograd | CompactWinograd = make(selector, work)
    _call(selector, work, kernel)


def _winograd_kernel(selector: Selector, work: Work[Convolution]) -> Winograd:
    """Return the kernel whose filters were transformed before."""
    shape, lanes, threads = work.shape, selector.lanes, selector.threads
    is_dynamic = selector.has_dynamic_images
    tiles = cost.tiles_of(shape)
    chunks = -(-tiles // _tiles_of_chunk(selector, shape))
    if tiles >= threads:  # as many for each of them
        chunks = -(-chunks // threads) * threads
    count = -(-tiles // chunks)
    return Winograd(
        shape=shape,
        padding=work.padding,
        strides=work.strides,
        tiles=count,
        tile=choose_tile(
            selector.target, _expected(selector, count), -(-shape.filters // lanes), shape.channels
        ),
        lanes=lanes,
        epilogue=work.epilogue,
        is_dynamic=is_dynamic,
        # not where they are few: batches of all sizes share the code that prefetches none
        prefetches_weights=not is_dynamic
        and 4 * POSITIONS * shape.filters * shape.channels > selector.machine.cache,
    )


def _compact_kernel(selector: Selector, work: Work[Convolution]) -> CompactWinograd:
    """Return the kernel that transforms its own filters: where tiles are few, threads share these."""
    shape, machine, lanes = work.shape, selector.machine, selector.lanes
    count = _tiles_of_chunk(selector, shape)
    chunks = -(-cost.tiles_of(shape) // count)
    tile = choose_tile(selector.target, _expected(selector, count), -(-shape.filters // lanes))
    width, depth = tile.vectors * lanes, -(-shape.channels // lanes) * lanes
    most = max(lanes, machine.cache // 2 // (4 * POSITIONS * width))
    parts = parallel_parts(machine.time(cost.compact_winograd(machine, shape)), selector.threads, 1)
    return CompactWinograd(
        shape=shape,
        padding=work.padding,
        strides=work.strides,
        tiles=count,
        tile=tile,
        lanes=lanes,
        epilogue=work.epilogue,
        is_dynamic=selector.has_dynamic_images,
        channels=max(step for step in range(lanes, depth + 1, lanes) if depth % step == 0 and step <= most),
        filter_parts=min(-(-parts // chunks), -(-shape.filters // width)),
    )


def _expected(selector: Selector, count: int) -> int:
    """Return for how many tiles, or pixels of a row, a register tile is chosen."""
    return MANY_ROWS if selector.has_dynamic_images else count


def _tiles_of_chunk(selector: Selector, shape: ConvShape) -> int:
    """Choose how many tiles are computed together: as many as the core's own cache holds, more if weights are many."""
    machine, tiles = selector.machine, cost.tiles_of(shape)
    tile_bytes = 4 * POSITIONS * (shape.channels + shape.filters)
    is_far = machine.is_far(4 * shape.taps * shape.channels * shape.filters)
    room = _CHUNK if is_far else machine.cache * 3 // 4
    return -(-tiles // -(-tiles // max(1, room // tile_bytes)))


def _direct(selector: Selector, work: Work[Convolution], chosen: str) -> None:
    shape = work.shape
    is_streamed = chosen == _STREAMED
    is_staged = _is_staged(selector, work) and not is_streamed
    if not is_staged:
        work = replace(work, x=_padded(selector, work))
    if not any(work.node.padding) and work.is_flat:
        shape = work.flat_shape
    step = shape.stride[1] * work.strides.x[2]
    columns = _expected(selector, shape.size[1])
    tile = choose_tile(selector.target, columns, -(-shape.filters // selector.lanes), step)
    if is_streamed:
        kernel: _Kernel = StreamedConvolution(
            shape=shape, strides=work.strides, tile=tile, lanes=selector.lanes, epilogue=work.epilogue
        )
    else:
        kernel = DirectConvolution(
            shape=shape,
            strides=work.strides,
            tile=tile,
            chunk=_staged_chunk(selector, work) if is_staged else _chunk(selector, work, tile, shape),
            lanes=selector.lanes,
            epilogue=work.epilogue,
            padding=work.padding if is_staged else None,
            is_dynamic=selector.has_dynamic_images,
        )
    _call(selector, work, kernel)


def _call(selector: Selector, work: Work[Convolution], kernel: _Kernel) -> None:
    """Add the call of a convolution's kernel, with its weights packed for it."""
    packing = kernel.packing if isinstance(kernel, DirectConvolution | StreamedConvolution) else kernel
    weights, bias = selector.weights(work.node, packing, work.weight, work.node.bias)
    selector.call(kernel, work.x, weights, bias, work.out, *work.operands)


def _is_staged(selector: Selector, work: Work[Convolution]) -> bool:
    """Whether the input is staged row by row, which is better than a padded copy of all of it if it is large."""
    is_large = 4 * work.x.size > 2 * selector.machine.chunk
    return any(work.node.padding) and has_channels_last(work.x) and is_large


def _staged_chunk(selector: Selector, work: Work[Convolution]) -> ChunkSize:
    """Choose what one chunk does: as many rows as fit the core's own cache together with the weights."""
    node, rows = work.node, work.out.shape[2]
    step = 4 * work.x.shape[1] * work.x.shape[3] * node.stride[0]
    least = max(1, -(-rows // max(1, selector.machine.chunk * 2 // step)))
    parts = -(-least // selector.threads) * selector.threads
    return ChunkSize(-(-rows // parts), _ALL, _ALL)


def _padded(selector: Selector, work: Work[Convolution]) -> View:
    """Return the input with its padding around it and its channels last."""
    top, left, bottom, right = work.node.padding
    images, channels, rows, columns = work.x.shape
    if not any(work.node.padding) and has_channels_last(work.x):
        return work.x
    padded = selector.temporary((images, channels, rows + top + bottom, columns + left + right), (0, 2, 3, 1))
    pad(selector, work.x, padded, (top, left))
    return padded


def _chunk(selector: Selector, work: Work[Convolution], tile: Tile, shape: ConvShape) -> ChunkSize:
    """Choose what one chunk does.

    Where the whole input is small and the weights are many, a chunk takes few filters over all pixels, so that each
    weight is read once; else it takes all filters over few pixels.
    """
    machine, (rows, columns) = selector.machine, shape.size
    weight_bytes, x_bytes = 4 * work.weight.size, 4 * work.x.size
    tiles = -(-columns // tile.pixels)
    blocks = shape.groups * -(-shape.filters // (tile.vectors * selector.lanes))
    shared = parallel_parts(machine.time(cost.plain(machine, shape)), selector.threads)
    if x_bytes <= 2 * machine.chunk < 2 * weight_bytes:
        return ChunkSize(rows, tiles, -(-blocks // shared))
    parts = max(-(-x_bytes // machine.chunk), shared)
    if shape.images * rows >= parts:
        return ChunkSize(max(1, shape.images * rows // parts), tiles, blocks)
    return ChunkSize(1, max(1, tiles * shape.images * rows // parts), blocks)


_LEAST_COLUMNS = 8
"""Columns of a patch from which on its rows are copied at about the speed of memory."""


def of_pixels(selector: Selector, work: Work[Convolution]) -> Work[Convolution]:
    """Return a convolution of patches as one of single pixels, copied; any other as it is.

    Patches are windows that are contiguous, as in vision transformers. A patch's elements, of all its channels, become
    the channels of one pixel. That is one copy of the input, in rows as wide as a patch, instead of one that transposes
    its channels, whose few elements would leave vectors and reductions short.

    Args:
        selector: receives the calls.
        work: the convolution of an image.
    """
    node, x, size = work.node, work.x, work.shape.size
    filters, channels, rows, columns = node.weight.shape
    is_tiling = node.stride == (rows, columns) and node.dilation == (1, 1) and not any(node.padding)
    if not is_tiling or node.groups > 1 or columns < _LEAST_COLUMNS or has_channels_last(x):
        return work
    images = x.shape[0]
    whole = x.sliced(2, 0, size[0] * rows).sliced(3, 0, size[1] * columns)
    apart = whole.in_shape((images, channels, size[0], rows, size[1], columns))
    source = apart.permuted((0, 2, 4, 1, 3, 5))
    target = selector.temporary(source.shape)
    selector.copy(source, target)
    depth = channels * rows * columns
    patched = replace(node, weight=node.weight.reshape(filters, depth, 1, 1), stride=(1, 1))
    pixels = natural_strides((images, *size, depth))
    x = replace(target, shape=(images, depth, *size), strides=(pixels[0], 1, *pixels[1:3]))
    return convolution_work(patched, patched.weight, (x, work.out), work.epilogue, work.operands)
