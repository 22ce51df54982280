"""Products of computed tensors."""

from engine.compiler.graph import MatrixProduct, Node
from engine.compiler.lowering.context import LoweringContext, lowers


@lowers("torch.matmul", "torch.bmm", "torch.mm")
def matrix_product(context: LoweringContext) -> Node | None:
    """Lower a product of two tensors of two or more axes."""
    if len(context.inputs) != 2 or not (context.is_float(0) and context.is_float(1)):
        return None
    left, right = context.operand(0), context.operand(1)
    if min(left.rank, right.rank) < 2 or max(left.rank, right.rank) > 4:
        return None
    return MatrixProduct([context.index], [left, right])
