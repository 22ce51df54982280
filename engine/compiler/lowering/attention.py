"""Products of computed tensors: of matrices, and sums of products that are such."""

from collections.abc import Sequence
from math import prod

import numpy as np

from engine.compiler.emit.pointwise import Leaf, PointwiseExpression, apply
from engine.compiler.graph import Linear, MatrixProduct, Node, Tensor
from engine.compiler.lowering.context import LoweringContext, lowers
from engine.compiler.lowering.looks import look, look_node
from engine.compiler.lowering.pointwise import number, pointwise
from engine.compiler.memory.view import View
from engine.kernels.einsum import parse
from engine.spec import TensorSpec


@lowers("torch.matmul", "torch.bmm", "torch.mm")
def matrix_product(context: LoweringContext) -> Node | None:
    """Lower a product of two tensors of two or more axes."""
    names = [argument.name for argument in context.step.layer.layer.arguments[:2]]
    if len(context.inputs) != 2 or not all(map(context.has_operand, names)):
        return None
    left, right = map(context.tensor, names)  # a file may name its operands in any order
    if min(left.rank, right.rank) < 2:
        return None
    return MatrixProduct([context.index], [left, right])


@lowers("torch.addmm", "torch.baddbmm")
def product_with_addend(context: LoweringContext) -> Node | None:
    """Lower beta · input + alpha · a b: a linear layer where all but a is constant, as in GPT-2."""
    names = [argument.name for argument in context.step.layer.layer.arguments[1:3]]
    beta, alpha = (number(context.value(name)) for name in ("beta", "alpha"))
    operands = names if beta is not None and beta.value == 0 else ["input", *names]
    if beta is None or alpha is None or any(context.shape(name) is None for name in operands):
        return None
    if context.has_operand(names[0]) and (layer := _as_linear(context, names, beta.value, alpha.value)):
        return layer
    if not all(map(context.has_operand, operands)):
        return None
    output = context.outputs[0]
    if not isinstance(output, TensorSpec):
        return None
    (product,) = context.add(MatrixProduct([context.index], list(map(context.tensor, names))), output.shape)
    scaled: PointwiseExpression = apply("mul", Leaf(1), alpha)
    if beta.value == 0:
        return pointwise(context, [product], scaled)
    addend = apply("mul", Leaf(2), beta)
    return pointwise(context, [product, context.tensor("input")], apply("add", scaled, addend))


def _as_linear(context: LoweringContext, names: list[str], beta: float, alpha: float) -> Linear | None:
    """Return the linear layer that a product with a constant matrix is, plus a constant vector."""
    if not all(map(context.is_constant, ("input", names[1]))):
        return None
    addend, matrix = context.value("input"), context.value(names[1])
    columns = matrix.shape[-1]
    if matrix.ndim != 2 or (beta and addend.shape not in ((columns,), (1, columns))):
        return None
    weight = matrix.T if alpha == 1 else (matrix * np.float32(alpha)).T
    bias = None if not beta else (addend.reshape(-1) * np.float32(beta))
    return Linear([context.index], [context.tensor(names[0])], weight=weight, bias=bias, is_computed=True)


@lowers("torch.einsum")
def einsum(context: LoweringContext) -> Node | None:
    """Lower a sum of products of two tensors that is a product of matrices, once their axes are in order."""
    output = context.outputs[0]
    if (
        len(context.inputs) != 2
        or not all(map(context.is_float, (0, 1)))
        or not isinstance(output, TensorSpec)
    ):
        return None
    left, right = context.operand(0), context.operand(1)
    (a, b), to = parse(context.value("equation"), [left.rank, right.rank])
    if any(len(set(labels)) < len(labels) for labels in (a, b, to)):
        return None  # a diagonal
    sizes = dict(zip((*a, *b), (*left.shape, *right.shape), strict=True))
    batch = [label for label in a if label in b and label in to]
    summed = [label for label in a if label in b and label not in to]
    rows, columns = ([label for label in labels if label not in (*batch, *summed)] for labels in (a, b))
    is_sum_of_one = not set(to).issuperset((*rows, *columns))  # over an axis that only one of the two has
    are_spread = any(sizes[label] != size for label, size in zip(a, left.shape, strict=True))
    if is_sum_of_one or are_spread or not summed:
        return None
    x = _in_order(context, left, a, (batch, rows, summed))
    y = _in_order(context, right, b, (batch, summed, columns))
    shape = (*(sizes[label] for label in batch), x.shape[-2], y.shape[-1])
    (product,) = context.add(MatrixProduct([context.index], [x, y]), shape)
    labels = (*batch, *rows, *columns)
    full = tuple(sizes[label] for label in labels)
    order = [labels.index(label) for label in to]

    def seen(view: View) -> View | None:
        apart = view.reshaped(full)
        return None if apart is None else apart.permuted(order)

    return look_node(context.index, product, seen)


def _in_order(
    context: LoweringContext, x: Tensor, labels: Sequence[int], groups: tuple[list[int], list[int], list[int]]
) -> Tensor:
    """Return a tensor as matrices: axes of batches first, then all rows as one axis, and all columns as another."""
    order = [labels.index(label) for group in groups for label in group]
    transposed = [x.shape[axis] for axis in order]
    x = look(context, x, transposed, lambda view: view.permuted(order))
    batches, rows = len(groups[0]), len(groups[0]) + len(groups[1])
    shape = (*transposed[:batches], prod(transposed[batches:rows]), prod(transposed[rows:]))
    return look(context, x, shape, lambda view: view.reshaped(shape))
