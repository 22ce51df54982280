"""Products of computed tensors."""

from engine.compiler.graph import MatrixProduct, Node
from engine.compiler.lowering.context import LoweringContext, lowers


@lowers("torch.matmul", "torch.bmm", "torch.mm")
def matrix_product(context: LoweringContext) -> Node | None:
    """Lower a product of two tensors of two or more axes."""
    names = [argument.name for argument in context.step.layer.layer.arguments[:2]]
    if len(context.inputs) != 2 or not all(map(context.has_operand, names)):
        return None
    left, right = map(context.tensor, names)  # a file may name its operands in any order
    if min(left.rank, right.rank) < 2 or max(left.rank, right.rank) > 4:
        return None
    return MatrixProduct([context.index], [left, right])
