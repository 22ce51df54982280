"""Kernels for products of tensors that runs differ in."""

from engine.compiler.emit.tiles import ROWS
from engine.compiler.graph import MatrixProduct
from engine.compiler.kernels.epilogue import Broadcast, Epilogue, EpilogueOperand
from engine.compiler.kernels.matmul import MatrixProductKernel
from engine.compiler.kernels.open_matmul import OpenMatrixProduct
from engine.compiler.kernels.paired_matmul import PairedMatrixProduct
from engine.compiler.kernels.shapes import ConvShape, MatrixShape
from engine.compiler.kernels.tile import choose_tile
from engine.compiler.memory.view import View
from engine.compiler.selection.call import Selector, row_by_row, selects, view_of
from engine.compiler.selection.paired import (
    FINISHED_VECTOR,
    STAGED_WORD,
    VECTOR_RATE,
    may_round,
    paired_time,
)
from engine.compiler.selection.paired_group import product_group
from engine.precision import Precision

_OPEN_ROWS = 64
"""Rows that a tile is chosen for where their number is not known: high tiles leave much to small ones."""
_OPEN_VECTORS = 2
"""Vectors of a panel where the number of columns is not known: what the last one lacks is computed all the same."""
RANK = 4
"""Axes of a product as its kernel sees it: two of batches, rows, columns."""


@selects(MatrixProduct)
def select_matrix_product(selector: Selector, node: MatrixProduct) -> None:
    """Choose the kernel of a batch of matrix products."""
    out = _spread(view_of(node.output))
    left, right = (_spread(view_of(tensor)) for tensor in node.inputs[:2])
    batch = (out.shape[0], out.shape[1])
    left, right = (view.expanded((*batch, *view.shape[2:])) for view in (left, right))
    epilogue, operands = _epilogue(selector, node, out)
    shape = MatrixShape(batch=batch, rows=out.shape[2], depth=left.shape[3], columns=out.shape[3])
    if may_round(selector) and _can_pair(left, right) and _is_faster_paired(selector, shape):
        paired = _paired(selector, shape, (left, right, out), epilogue)
        selector.call(paired, left, right, out, *operands, precision=Precision.BF16)
        return
    if selector.is_open:
        selector.call(_open(selector, shape, (left, right, out), epilogue), left, right, out, *operands)
        return
    kernel = MatrixProductKernel.tuned(
        selector.target,
        shape=shape,
        a_strides=_strides(left),
        b_strides=_strides(right),
        out_strides=(out.strides[0], out.strides[1], out.strides[2]),
        epilogue=epilogue,
    )
    selector.call(kernel, left, right, out, *operands)


def _open(
    selector: Selector, shape: MatrixShape, views: tuple[View, View, View], epilogue: Epilogue
) -> OpenMatrixProduct:
    """Return the kernel whose code is told extents and strides."""
    left, right, out = views
    return OpenMatrixProduct(
        shape=shape,
        a_strides=_strides(left),
        b_strides=_strides(right),
        out_strides=(out.strides[0], out.strides[1], out.strides[2]),
        tile=choose_tile(selector.target, _OPEN_ROWS, _OPEN_VECTORS),
        lanes=selector.lanes,
        epilogue=epilogue,
    )


def _can_pair(left: View, right: View) -> bool:
    """Whether the operands lie as they have to: the left's columns side by side, the right's rows or columns."""
    return left.strides[3] == 1 and 1 in right.strides[2:]


def _is_faster_paired(selector: Selector, shape: MatrixShape) -> bool:
    """Whether operands rounded to bfloat16 are expected to be faster, for one product of the batch."""
    panels = -(-shape.depth // 2) * shape.columns
    paired = paired_time(selector, _as_convolution(shape)) + STAGED_WORD * panels
    lanes = -(-shape.columns // selector.lanes)
    return paired < shape.rows * lanes * (shape.depth / VECTOR_RATE + FINISHED_VECTOR)


def _as_convolution(shape: MatrixShape) -> ConvShape:
    return ConvShape(images=1, size=(shape.rows, 1), channels=shape.depth, filters=shape.columns)


def _paired(
    selector: Selector, shape: MatrixShape, views: tuple[View, View, View], epilogue: Epilogue
) -> PairedMatrixProduct:
    """Return the kernel of operands rounded to bfloat16: threads share products, and rows where these are fewer."""
    left, right, out = views
    parts = min(-(-selector.threads // shape.products), -(-shape.rows // ROWS))
    rows = -(-shape.rows // parts)
    return PairedMatrixProduct(
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


def _spread(view: View) -> View:
    return view.expanded((*(1,) * (RANK - len(view.shape)), *view.shape))


def _strides(view: View) -> tuple[int, int, int, int]:
    return view.strides[0], view.strides[1], view.strides[2], view.strides[3]


def _epilogue(selector: Selector, node: MatrixProduct, out: View) -> tuple[Epilogue, list[View]]:
    operands, views = [], []
    for tensor in node.inputs[node.own :]:
        view = _spread(view_of(tensor))
        if view.size == 1:
            operands.append(EpilogueOperand(Broadcast.SCALAR))
        else:
            view = view if view.strides[3] == 1 else row_by_row(selector, view)
            is_full = view.shape == out.shape
            steps = (view.strides[0], view.strides[1], view.strides[2]) if is_full else (0,)
            operands.append(EpilogueOperand(Broadcast.FULL if is_full else Broadcast.CHANNEL, steps))
        views.append(view)
    return Epilogue(node.epilogue, tuple(operands)), views
