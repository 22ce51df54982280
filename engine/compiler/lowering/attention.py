"""Products of computed tensors."""

from engine.compiler.graph import MatrixProduct, Node
from engine.compiler.lowering.site import Site, lowers


@lowers("torch.matmul", "torch.bmm", "torch.mm")
def matrix_product(site: Site) -> Node | None:
    """Lower a product of two tensors of two or more axes."""
    if len(site.inputs) != 2 or not (site.is_float(0) and site.is_float(1)):
        return None
    left, right = site.operand(0), site.operand(1)
    if min(left.rank, right.rank) < 2 or max(left.rank, right.rank) > 4:
        return None
    return MatrixProduct([site.index], [left, right])
