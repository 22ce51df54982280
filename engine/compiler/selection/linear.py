"""Kernels for linear layers: a matrix product is a convolution of one pixel a row."""

from math import prod

from engine.compiler.epilogue import Epilogue, Operand, Spread
from engine.compiler.kernels.convolution import Convolution as Direct
from engine.compiler.kernels.tile import choose_tile
from engine.compiler.nodes import Linear
from engine.compiler.selection.call import Selector, selects, view_of
from engine.compiler.view import View


@selects(Linear)
def select_linear(selector: Selector, node: Linear) -> None:
    """Choose the kernel of a linear layer."""
    target = view_of(node.output)
    x, out = copied_rows(selector, view_of(node.inputs[0])), _rows(target)
    if out is None:
        # it is a part of a whole in which its rows do not lie evenly
        target = selector.temporary(node.output.shape)
        out = copied_rows(selector, target)
    epilogue, operands = _epilogue(selector, node)
    kernel = linear_kernel(selector, x, out, epilogue)
    weights, bias = selector.weights(node, kernel, node.weight[:, :, None, None], node.bias)
    selector.call(kernel, x, weights, bias, out, *operands)
    if target is not node.output.view:
        selector.copy(target, view_of(node.output))


def linear_kernel(selector: Selector, x: View, out: View, epilogue: Epilogue) -> Direct:
    """Return the kernel of a matrix times packed weights, for rows of input and output."""
    rows, columns = out.shape
    blocks = -(-columns // selector.lanes)
    tile = choose_tile(selector.target, rows, blocks)
    tiles, parts = -(-rows // tile.pixels), -(-blocks // tile.vectors)
    # few rows: split the weights, so that each is read once; many rows: split those
    by_rows = 4 * rows > columns and tiles >= 4 * selector.threads
    chunk = (
        (tiles // (4 * selector.threads), parts)
        if by_rows
        else (tiles, max(1, parts // (4 * selector.threads)))
    )
    return Direct(
        1,
        (1, rows),
        x.shape[1],
        columns,
        1,
        (1, 1),
        (1, 1),
        (1, 1),
        (0, 0, x.strides[0]),
        (0, 0, out.strides[0]),
        tile,
        1,
        *chunk,
        selector.lanes,
        epilogue,
    )


def _epilogue(selector: Selector, node: Linear) -> tuple[Epilogue, list[View]]:
    shape = node.output.shape
    operands, views = [], []
    for tensor in node.inputs[node.own :]:
        view = view_of(tensor)
        rows = copied_rows(selector, view)
        if view.size == prod(shape):
            operands.append(Operand(Spread.FULL, (0, 0, rows.strides[0])))
        elif view.size == 1:
            operands.append(Operand(Spread.SCALAR))
        else:
            operands.append(Operand(Spread.CHANNEL, (0,)))
        views.append(rows)
    return Epilogue(node.epilogue, tuple(operands)), views


def _rows(view: View) -> View | None:
    """Return a tensor as a matrix of its last axis; None where its rows or what is in them do not lie evenly."""
    columns = view.shape[-1]
    rows = view.reshaped((view.size // columns, columns))
    return rows if rows is not None and (rows.strides[1] == 1 or columns == 1) else None


def copied_rows(selector: Selector, view: View) -> View:
    """Return a tensor as a matrix of its last axis, copied where its rows do not lie evenly."""
    rows = _rows(view)
    if rows is None:
        copy = selector.temporary(view.shape)
        selector.copy(view, copy)
        rows = copy.reshaped((view.size // view.shape[-1], view.shape[-1]))
    if rows is None:
        raise ValueError(f"a tensor of shape {view.shape} has no rows")
    return rows
