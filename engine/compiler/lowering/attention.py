"""Matrix products, softmax and normalisation."""

import numpy as np

from engine.compiler.lowering.site import Site, lowers
from engine.compiler.nodes import GroupNorm, LayerNorm, MatrixProduct, Node, Softmax
from engine.dtypes import Array
from engine.spec import TensorSpec


@lowers("torch.matmul", "torch.bmm", "torch.mm")
def matrix_product(site: Site) -> Node | None:
    """Lower a product of two tensors of two or more axes."""
    if len(site.inputs) != 2 or not (site.is_float(0) and site.is_float(1)):
        return None
    left, right = site.operand(0), site.operand(1)
    if min(left.rank, right.rank) < 2 or max(left.rank, right.rank) > 4:
        return None
    return MatrixProduct([site.index], [left, right])


@lowers("nn.Softmax", "F.softmax")
def softmax(site: Site) -> Node | None:
    """Lower a softmax along a given axis."""
    shape, axis = site.shape("input"), site.value("dim")
    if not shape or not isinstance(axis, int):
        return None
    return Softmax([site.index], [site.tensor("input")], axis=axis % len(shape))


@lowers("nn.LayerNorm", "F.layer_norm")
def layer_norm(site: Site) -> Node | None:
    """Lower layer normalisation with constant scale and shift."""
    shape = site.shape("input")
    if not shape or not site.has_operand("input") or not _are_constants(site):
        return None
    axes = len(site.value("normalized_shape"))
    return LayerNorm(
        [site.index],
        [site.tensor("input")],
        axes=axes,
        weight=_flat(site.value("weight")),
        bias=_flat(site.value("bias")),
        eps=site.value("eps"),
    )


@lowers("nn.GroupNorm", "F.group_norm")
def group_norm(site: Site) -> Node | None:
    """Lower group normalisation of (batch, channels, height, width) with constant scale and shift."""
    shape = site.shape("input")
    if shape is None or len(shape) != 4 or not _are_constants(site):
        return None
    return GroupNorm(
        [site.index],
        [site.tensor("input")],
        groups=site.value("num_groups"),
        weight=_flat(site.value("weight")),
        bias=_flat(site.value("bias")),
        eps=site.value("eps"),
    )


def _are_constants(site: Site) -> bool:
    output = site.outputs[0]
    return (
        site.is_constant("weight")
        and site.is_constant("bias")
        and isinstance(output, TensorSpec)
        and output.dtype == np.float32
    )


def _flat(array: Array | None) -> Array | None:
    return None if array is None else np.ascontiguousarray(array, np.float32).reshape(-1)
