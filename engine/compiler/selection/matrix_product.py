"""Kernels for products of tensors that runs differ in."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from math import prod

import numpy as np

from engine.compiler.contraction.bf16_matmul import Bf16MatrixProduct
from engine.compiler.contraction.epilogue import NOTHING, Broadcast, Epilogue, EpilogueOperand
from engine.compiler.contraction.matrix_product import MatrixProductKernel
from engine.compiler.contraction.shapes import ConvShape, MatrixShape
from engine.compiler.emit.pointwise import PointwiseExpression
from engine.compiler.emit.tiles import ROWS
from engine.compiler.graph import Attention, MatrixProduct
from engine.compiler.kernels.softmax import SoftmaxKernel
from engine.compiler.memory.view import View
from engine.compiler.selection import cost
from engine.compiler.selection.bf16 import may_round, product_group
from engine.compiler.selection.call import BF16, Selector, row_by_row, selects, view_of
from engine.compiler.selection.machine import Effort
from engine.precision import Precision

RANK = 4
"""Axes of a product as its kernel sees it: two of batches, rows, columns."""
_BLOCK, _MAX_BLOCKS = 128, 4096
"""Rows of a block of attention for each thread: fewer copy keys too often, more leave the cache; and blocks of all
heads, at most."""


@selects(MatrixProduct)
def select_matrix_product(selector: Selector, node: MatrixProduct) -> None:
    """Choose the kernel of a batch of matrix products."""
    target = view_of(node.output)
    if len(target.shape) > RANK and not _is_even(target):
        target = selector.temporary(node.output.shape)
    _multiply(selector, node, target)
    if target is not node.output.view:
        selector.copy(target, view_of(node.output))


def _is_even(view: View) -> bool:
    """Whether some way to make two axes of a product's batches needs no copy."""
    return any(_merged(view, order) is not None for order in _orders(len(view.shape) - 2))


def _multiply(selector: Selector, node: MatrixProduct, target: View) -> None:
    """Choose the kernel, which writes to a view."""
    out, left, right, *others = _batched(selector, target, node)
    epilogue, operands = _epilogue(selector, node.epilogue, out, others)
    is_bf16 = _chooses_bf16(selector, _shape(left, out), may_round(selector) and _can_pair(left, right))
    _call(selector, (left, right, out), epilogue, operands, is_bf16)


def _shape(left: View, out: View) -> MatrixShape:
    batch = (out.shape[0], out.shape[1])
    return MatrixShape(batch=batch, rows=out.shape[2], depth=left.shape[3], columns=out.shape[3])


def _call(
    selector: Selector,
    views: tuple[View, View, View],
    epilogue: Epilogue,
    operands: Sequence[View],
    is_bf16: bool,
) -> None:
    """Add the call of a product whose precision is chosen."""
    left, right, out = views
    shape = _shape(left, out)
    if is_bf16:
        bf16 = _bf16(selector, shape, (left, right, out), epilogue)
        selector.call(bf16, left, right, out, *operands, precision=Precision.BF16)
        return
    kernel = MatrixProductKernel.tuned(
        selector.target,
        shape=shape,
        a_strides=_strides(left),
        b_strides=_strides(right),
        out_strides=(out.strides[0], out.strides[1], out.strides[2]),
        epilogue=epilogue,
        is_dynamic=selector.is_dynamic,
    )
    selector.call(kernel, left, right, out, *operands)


@selects(Attention)
def select_attention(selector: Selector, node: Attention) -> None:
    """Choose the kernels of attention: of each block of rows of each head the scores, their softmax, and the product.

    A block's scores and weights stay in a cache, while those of all rows would go to memory and back.
    """
    out, query, keys, values, *masks = (
        _spread(view, RANK) for view in (view_of(node.output), *map(view_of, node.inputs))
    )
    batch, rows, columns = (out.shape[0], out.shape[1]), out.shape[2], keys.shape[3]
    query, keys, values = (
        view.expanded((*batch, *view.shape[2:]))
        for view in (query, row_by_row(selector, keys), row_by_row(selector, values))
    )
    masks = [view.expanded((*batch, rows, columns)) for view in masks]
    # one choice for all rows, so that it does not depend on how they are cut
    whole = (
        MatrixShape(batch=batch, rows=rows, depth=query.shape[3], columns=columns),
        MatrixShape(batch=batch, rows=rows, depth=columns, columns=out.shape[3]),
    )
    first, second = (_chooses_bf16(selector, shape, may_round(selector)) for shape in whole)
    block = _block(selector, rows, batch[0] * batch[1])
    scores, weights = (selector.temporary((1, 1, block, columns)) for _ in range(2))
    for head in np.ndindex(*batch):
        q, k, v, to, *others = (_part(view, head) for view in (query, keys, values, out, *masks))
        for start in range(0, rows, block):
            count = min(block, rows - start)
            seen, found = (view.sliced(2, 0, count) for view in (scores, weights))
            read = [view.sliced(2, start, count) for view in others]
            epilogue, operands = _epilogue(selector, node.epilogue, seen, read)
            _call(selector, (q.sliced(2, start, count), k, seen), epilogue, operands, first)
            selector.call(_row_softmax(count, columns, node.skip_masked), seen, found)
            _call(selector, (found, v, to.sliced(2, start, count)), NOTHING, (), second)


def _block(selector: Selector, rows: int, heads: int) -> int:
    """Return the rows of a block, which threads share: all are as high, but for the last."""
    count = min(-(-rows // (_BLOCK * selector.threads)), max(1, _MAX_BLOCKS // heads))
    return -(-rows // count)


def _part(view: View, head: Sequence[int]) -> View:
    """Return the matrix of one head, as a batch of one."""
    return view.sliced(0, head[0], 1).sliced(1, head[1], 1)


def _row_softmax(rows: int, columns: int, skip_masked: bool) -> SoftmaxKernel:
    return SoftmaxKernel(
        length=columns,
        x_step=1,
        out_step=1,
        shape=(rows,),
        x_strides=(columns,),
        out_strides=(columns,),
        skip_masked=skip_masked,
    )


def _can_pair(left: View, right: View) -> bool:
    """Whether the operands lie as they have to: the left's columns side by side, the right's rows or columns."""
    return left.strides[3] == 1 and 1 in right.strides[2:]


def _chooses_bf16(selector: Selector, shape: MatrixShape, can_round: bool) -> bool:
    """Whether operands are rounded to bfloat16."""
    efforts, of_one = (
        _efforts(selector, _as_convolution(shape, products), can_round) for products in (shape.products, 1)
    )
    return selector.choose(efforts, of_one) == BF16


def _efforts(selector: Selector, shape: ConvShape, can_round: bool) -> dict[str, Effort]:
    """Return what products take in each precision; for bfloat16 right matrices are copied into panels before."""
    efforts = {"f32": replace(cost.plain(selector.machine, shape), weights=0)}
    if can_round:
        rounded = cost.bf16(selector.machine, shape)
        panels = 8 * shape.images * -(-shape.channels // 2) * shape.filters
        efforts[BF16] = replace(rounded, weights=0, moved=rounded.moved + panels)
    return efforts


def _as_convolution(shape: MatrixShape, products: int = 1) -> ConvShape:
    return ConvShape(images=products, size=(shape.rows, 1), channels=shape.depth, filters=shape.columns)


def _bf16(
    selector: Selector, shape: MatrixShape, views: tuple[View, View, View], epilogue: Epilogue
) -> Bf16MatrixProduct:
    """Return the kernel of operands rounded to bfloat16: threads share products, and rows where these are fewer."""
    left, right, out = views
    parts = min(-(-selector.threads // shape.products), -(-shape.rows // ROWS))
    rows = -(-shape.rows // parts)
    return Bf16MatrixProduct(
        shape=shape,
        a_strides=_strides(left),
        b_strides=_strides(right),
        out_strides=(out.strides[0], out.strides[1], out.strides[2]),
        rows=rows,
        has_tiles=selector.target.has_tiles,
        group=product_group(selector.target, _as_convolution(shape), rows),
        lanes=selector.lanes,
        epilogue=epilogue,
    )


def _batched(selector: Selector, out: View, node: MatrixProduct) -> list[View]:
    """Return the output and all inputs with two axes of batches: of more, neighbours that lie evenly are one."""
    rank = len(out.shape)
    views = [out, *(_spread(view_of(tensor), rank) for tensor in node.inputs)]
    views[1:3] = [view.expanded((*out.shape[:-2], *view.shape[-2:])) for view in views[1:3]]
    if rank <= RANK:
        return [_spread(view, RANK) for view in views]
    orders = [order for order in _orders(rank - 2) if _merged(out, order) is not None]
    best = min(orders, key=lambda order: sum(_merged(view, order) is None for view in views))
    return [_merged(view, best) or _copied(selector, view, best) for view in views]


_Order = tuple[tuple[int, ...], tuple[int, ...]]
"""Axes of batches that become the first of two, and those that become the second."""


def _orders(axes: int) -> Iterator[_Order]:
    """Yield the ways to make two axes of several: their own order comes first."""
    for order in permutations(range(axes)):
        yield from ((order[:first], order[first:]) for first in range(axes + 1))


def _merged(view: View, order: _Order) -> View | None:
    """Return a view with its axes of batches made two; None where that needs a copy."""
    rank = len(view.shape)
    transposed = view.permuted((*order[0], *order[1], rank - 2, rank - 1))
    return transposed.reshaped((*(prod(view.shape[a] for a in axes) for axes in order), *view.shape[-2:]))


def _copied(selector: Selector, view: View, order: _Order) -> View:
    """Return a copy of a view, its axes of batches made two."""
    rank = len(view.shape)
    transposed = view.permuted((*order[0], *order[1], rank - 2, rank - 1))
    copy = selector.temporary(transposed.shape)
    selector.copy(transposed, copy)
    return copy.in_shape((*(prod(view.shape[a] for a in axes) for axes in order), *view.shape[-2:]))


def _spread(view: View, rank: int) -> View:
    return view.expanded((*(1,) * (rank - len(view.shape)), *view.shape))


def _strides(view: View) -> tuple[int, int, int, int]:
    return view.strides[0], view.strides[1], view.strides[2], view.strides[3]


def _epilogue(
    selector: Selector, expression: PointwiseExpression, out: View, others: Sequence[View]
) -> tuple[Epilogue, list[View]]:
    operands, views = [], []
    for view in others:
        if view.size == 1:
            operands.append(EpilogueOperand(Broadcast.SCALAR))
            views.append(view)
            continue
        rows = view if view.strides[3] == 1 else row_by_row(selector, view)
        is_full = rows.shape == out.shape
        steps = (rows.strides[0], rows.strides[1], rows.strides[2]) if is_full else (0,)
        operands.append(EpilogueOperand(Broadcast.FULL if is_full else Broadcast.CHANNEL, steps))
        views.append(rows)
    return Epilogue(expression, tuple(operands)), views
