"""Kernels for linear layers: a matrix product is a convolution of one pixel a row."""

from dataclasses import replace
from math import prod

from engine.compiler.contraction.arithmetic import FLOAT32, Arithmetic
from engine.compiler.contraction.convolution import DirectConvolution
from engine.compiler.contraction.epilogue import Broadcast, Epilogue, EpilogueOperand
from engine.compiler.contraction.int4 import Int4
from engine.compiler.contraction.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.contraction.split import ChunkSize
from engine.compiler.contraction.tile import MANY_ROWS, choose_tile
from engine.compiler.graph import Linear, Node
from engine.compiler.memory.view import View
from engine.compiler.selection import cost
from engine.compiler.selection.bf16 import convolve_bf16, may_round
from engine.compiler.selection.call import BF16, Selector, selects, view_of
from engine.compiler.selection.machine import Effort
from engine.compiler.selection.work import Work
from engine.precision import Precision

_FEW_TILES = 4
"""Tiles of rows, and chunks of a thread, that are few."""
_WIDTH_WORTH = 0.01
"""Gain of one more vector in a tile, measured on rows of 128 and 197 tokens."""


@selects(Linear)
def select_linear(selector: Selector, node: Linear) -> None:
    """Choose the kernel of a linear layer."""
    x, (target, out) = copied_rows(selector, view_of(node.inputs[0])), written_rows(selector, node)
    epilogue, operands = _epilogue(selector, node)
    bf16 = _bf16(node, x, out, epilogue, operands)
    efforts, of_one = (
        _efforts(selector, node, shape) for shape in (bf16.shape, _of_one_item(node, bf16.shape))
    )
    if selector.choose(efforts, of_one) == BF16:
        convolve_bf16(selector, bf16)
    else:
        arithmetic = Int4(x.shape[1]) if node.is_int4 else FLOAT32
        kernel = linear_kernel(selector, x, out, epilogue, arithmetic)
        weights, bias = selector.weights(node, kernel.packing, node.weight[:, :, None, None], node.bias)
        precision = Precision.INT4 if node.is_int4 else Precision.F32
        selector.call(kernel, x, weights, bias, out, *operands, precision=precision)
    if target is not node.output.view:
        selector.copy(target, view_of(node.output))


def _bf16(node: Linear, x: View, out: View, epilogue: Epilogue, operands: list[View]) -> Work[Linear]:
    """Return a linear layer as a convolution of operands rounded to bfloat16: each row of x is an image's row."""
    rows, columns = out.shape
    full = [operand.broadcast is Broadcast.FULL for operand in epilogue.operands]
    transposed = tuple(
        replace(operand, strides=(0, operand.strides[2], 0)) if is_full else operand
        for operand, is_full in zip(epilogue.operands, full, strict=True)
    )
    views = [_as_image(view) if is_full else view for view, is_full in zip(operands, full, strict=True)]
    return Work(
        node=node,
        weight=node.weight[:, :, None, None],
        x=_as_image(x),
        out=_as_image(out),
        epilogue=replace(epilogue, operands=transposed),
        operands=views,
        shape=ConvShape(images=1, size=(rows, 1), channels=x.shape[1], filters=columns),
        padding=ImplicitPadding((rows, 1), (0, 0)),
    )


def _as_image(matrix: View) -> View:
    """Return a matrix as an image of one column, whose channels are the matrix's columns."""
    (rows, columns), (step, _) = matrix.shape, matrix.strides
    return View(matrix.buffer, matrix.offset, (1, columns, rows, 1), (rows * step, 1, step, step))


def _of_one_item(node: Linear, shape: ConvShape) -> ConvShape:
    """Return the shape for one item of the batch, which the first axis is, if it is not the only one."""
    items = node.output.shape[0] if node.output.rank > 1 else 1
    return replace(shape, size=(max(1, shape.size[0] // max(1, items)), 1))


def _efforts(selector: Selector, node: Linear, shape: ConvShape) -> dict[str, Effort]:
    """Return what the layer takes in each precision."""
    if node.is_int4:  # for any number of rows, so that weights are packed in one way
        return {Precision.INT4.value: cost.int4(selector.machine, shape)}
    efforts = {"f32": cost.plain(selector.machine, shape)}
    return efforts | {BF16: cost.bf16(selector.machine, shape)} if may_round(selector) else efforts


def linear_kernel(
    selector: Selector, x: View, out: View, epilogue: Epilogue, arithmetic: Arithmetic = FLOAT32
) -> DirectConvolution:
    """Return the kernel of a matrix times packed weights; in a dynamic-shape program, for any number of rows.

    Args:
        selector: options of kernel selection.
        x: the input, rows that lie evenly.
        out: the output, the same.
        epilogue: operations on sums.
        arithmetic: arithmetic of the products.
    """
    (rows, columns), channels = out.shape, x.shape[1]
    blocks, expected_rows = -(-columns // selector.lanes), MANY_ROWS if selector.is_dynamic else rows
    tile = choose_tile(selector.target, expected_rows, blocks, x.strides[0], _WIDTH_WORTH)
    parts = -(-blocks // tile.vectors)
    if selector.is_dynamic:
        height = max(1, selector.machine.cache // (4 * channels) // tile.pixels)
        chunk = ChunkSize(1, height, max(1, parts // (_FEW_TILES * selector.threads)))
    else:
        chunk = _chunk(selector, 4 * x.size, -(-rows // tile.pixels), parts)
    # weights that are unpacked before are near by then
    prefetches = parts > 1 and expected_rows >= _FEW_TILES * tile.pixels and arithmetic.input_words == 1
    return DirectConvolution(
        shape=ConvShape(images=1, size=(1, rows), channels=channels, filters=columns),
        strides=ImageStrides((0, 0, x.strides[0]), (0, 0, out.strides[0])),
        tile=tile,
        chunk=chunk,
        lanes=selector.lanes,
        epilogue=epilogue,
        arithmetic=arithmetic,
        prefetches_weights=prefetches,
        is_dynamic=selector.is_dynamic,
    )


def _chunk(selector: Selector, x_bytes: int, tiles: int, parts: int) -> ChunkSize:
    """Choose what one chunk does.

    Weights mostly come from far away: they are read once where the input stays in the near cache meanwhile, or where
    there are few rows; else the rows are split.
    """
    if tiles >= _FEW_TILES * selector.threads and (
        x_bytes > selector.machine.cache or parts < selector.threads
    ):
        return ChunkSize(1, tiles // (_FEW_TILES * selector.threads), parts)
    blocks = max(1, parts // (_FEW_TILES * selector.threads))
    chunks = -(-parts // blocks)
    is_even = chunks % selector.threads == 0 or chunks >= _FEW_TILES * selector.threads
    return ChunkSize(1, tiles if is_even else -(-tiles // selector.threads), blocks)


def _epilogue(selector: Selector, node: Linear) -> tuple[Epilogue, list[View]]:
    shape = node.output.shape
    operands, views = [], []
    for tensor in node.inputs[node.own :]:
        view = view_of(tensor)
        rows = copied_rows(selector, view)
        if view.size == prod(shape):
            operands.append(EpilogueOperand(Broadcast.FULL, (0, 0, rows.strides[0])))
        elif view.size == 1:
            operands.append(EpilogueOperand(Broadcast.SCALAR))
        else:
            operands.append(EpilogueOperand(Broadcast.CHANNEL, (0,)))
        views.append(rows)
    return Epilogue(node.epilogue, tuple(operands)), views


def even_rows(view: View) -> View | None:
    """Return a tensor as a matrix of its last axis; None where its rows or what is in them do not lie evenly."""
    columns = view.shape[-1]
    rows = view.reshaped((view.size // columns, columns))
    return rows if rows is not None and (rows.strides[1] == 1 or columns == 1) else None


def written_rows(selector: Selector, node: Node) -> tuple[View, View]:
    """Return where a node's output is computed, and that as a matrix of its last axis.

    It is not the output itself where that is a part of a whole in which its rows do not lie evenly.
    """
    target = view_of(node.output)
    rows = even_rows(target)
    if rows is None:
        target = selector.temporary(node.output.shape)
        rows = copied_rows(selector, target)
    return target, rows


def copied_rows(selector: Selector, view: View) -> View:
    """Return a tensor as a matrix of its last axis, copied where its rows do not lie evenly."""
    rows = even_rows(view)
    if rows is None:
        copy = selector.temporary(view.shape)
        selector.copy(view, copy)
        rows = copy.in_shape((view.size // view.shape[-1], view.shape[-1]))
    return rows
