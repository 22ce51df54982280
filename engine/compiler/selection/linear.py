"""Kernels for linear layers: a matrix product is a convolution of one pixel a row."""

from engine.compiler.epilogue import Epilogue, Operand, Spread
from engine.compiler.kernels.convolution import Convolution as Direct
from engine.compiler.kernels.tile import choose_tile
from engine.compiler.nodes import Linear
from engine.compiler.selection.call import Selector, selects, view_of
from engine.compiler.selection.movement import move
from engine.compiler.pointwise import Leaf
from engine.compiler.view import View


@selects(Linear)
def select_linear(selector: Selector, node: Linear) -> None:
    """Choose the kernel of a linear layer."""
    out, x = _rows(view_of(node.output)), _rows(view_of(node.inputs[0]))
    if x is None or x.strides[1] != 1:
        shape = node.inputs[0].shape
        copy = selector.temporary(shape)
        move(selector, Leaf(0), [view_of(node.inputs[0])], copy)
        x = _rows(copy)
    if x is None or out is None:
        raise ValueError(f"a linear layer of shape {node.output.shape} has no rows")
    epilogue, operands = _epilogue(selector, node)
    kernel = _kernel(selector, x, out, epilogue)
    weights, bias = selector.weights(node, kernel, node.weight[:, :, None, None], node.bias)
    selector.call(kernel, x, weights, bias, out, *operands)


def _kernel(selector: Selector, x: View, out: View, epilogue: Epilogue) -> Direct:
    rows, columns = out.shape
    blocks = -(-columns // selector.lanes)
    tile = choose_tile(selector.target, rows, blocks)
    tiles, parts = -(-rows // tile.pixels), -(-blocks // tile.vectors)
    # few rows: split the weights, so that each is read once; many rows: split those
    by_rows = rows * x.shape[1] > columns * x.shape[1] // 4 and tiles >= 4 * selector.threads
    chunk = (tiles // (4 * selector.threads), parts) if by_rows else (tiles, max(1, parts // (4 * selector.threads)))
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
        if tensor.shape == shape:
            rows = _rows(view)
            if rows is None or rows.strides[1] != 1:
                copy = selector.temporary(shape)
                move(selector, Leaf(0), [view], copy)
                rows = _rows(copy)
            if rows is None:
                raise ValueError(f"a tensor of shape {shape} has no rows")
            operands.append(Operand(Spread.FULL, (0, 0, rows.strides[0])))
            view = rows
        elif view.size == 1:
            operands.append(Operand(Spread.SCALAR))
        else:
            if view.strides[-1] != 1:
                copy = selector.temporary(tensor.shape)
                move(selector, Leaf(0), [view], copy)
                view = copy
            operands.append(Operand(Spread.CHANNEL, (0,)))
        views.append(view)
    return Epilogue(node.epilogue, tuple(operands)), views


def _rows(view: View) -> View | None:
    """Return a tensor as a matrix of its last axis, None where its rows do not lie evenly."""
    columns = view.shape[-1]
    return view.reshaped((view.size // columns, columns))
