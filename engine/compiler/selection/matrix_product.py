"""Kernels for products of tensors that runs differ in."""

from engine.compiler.graph import MatrixProduct
from engine.compiler.kernels.epilogue import Broadcast, Epilogue, EpilogueOperand
from engine.compiler.kernels.matmul import MatrixProductKernel
from engine.compiler.kernels.shapes import MatrixShape
from engine.compiler.memory.view import View
from engine.compiler.selection.call import Selector, row_by_row, selects, view_of

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
    kernel = MatrixProductKernel.tuned(
        selector.target,
        shape=shape,
        a_strides=_strides(left),
        b_strides=_strides(right),
        out_strides=(out.strides[0], out.strides[1], out.strides[2]),
        epilogue=epilogue,
    )
    selector.call(kernel, left, right, out, *operands)


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
