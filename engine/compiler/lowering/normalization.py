"""Softmax and normalisation by statistics of the input."""

import numpy as np

from engine.compiler.emit.pointwise import Leaf, PointwiseExpression, apply
from engine.compiler.graph import GroupNorm, LayerNorm, Node, Pad, Reshape, Softmax
from engine.compiler.lowering.context import LoweringContext, lowers
from engine.compiler.lowering.pointwise import batch_norm, pointwise, pointwise_tensor
from engine.compiler.lowering.reduction import reduce
from engine.compiler.memory.view import View
from engine.dtypes import Array
from engine.spec import TensorSpec

_WIDEST = 16
"""Channels of a local response normalisation at most: each is an operand."""


@lowers(
    "nn.Softmax", "F.softmax", "nn.LogSoftmax", "F.log_softmax", "nn.Softmax2d", "nn.Softmin", "F.softmin"
)
def softmax(context: LoweringContext) -> Node | None:
    """Lower a softmax along a given axis, its logarithm, or that of the negative."""
    shape, axis = context.shape("input"), -3 if context.type == "nn.Softmax2d" else context.value("dim")
    if not shape or not isinstance(axis, int):
        return None
    x, kind = context.tensor("input"), context.type.lower()
    if "softmin" in kind:
        x = pointwise_tensor(context, x, apply("neg", Leaf(1)))
    return Softmax([context.index], [x], axis=axis % len(shape), is_log="log" in kind)


@lowers("nn.LayerNorm", "F.layer_norm", "nn.RMSNorm", "F.rms_norm")
def layer_norm(context: LoweringContext) -> Node | None:
    """Lower layer or RMS normalisation with constant scale and shift."""
    shape, eps = context.shape("input"), context.value("eps")
    if not shape or not context.has_operand("input") or not _are_constants(context):
        return None
    return LayerNorm(
        [context.index],
        [context.tensor("input")],
        axes=len(context.value("normalized_shape")),
        weight=_flat(context.value("weight")),
        bias=_flat(context.value("bias")),
        eps=float(np.finfo(np.float32).eps) if eps is None else eps,
        is_centred="layer" in context.type.lower(),
    )


@lowers("nn.GroupNorm", "F.group_norm")
def group_norm(context: LoweringContext) -> Node | None:
    """Lower group normalisation of a batch of images or sequences with constant scale and shift."""
    return _group_norm(context, context.value("num_groups"))


@lowers("nn.InstanceNorm1d", "nn.InstanceNorm2d", "F.instance_norm")
def instance_norm(context: LoweringContext) -> Node | None:
    """Lower instance normalisation: groups of one channel, or given statistics."""
    shape = context.shape("input")
    if shape is None or (context.type != "F.instance_norm" and len(shape) != 2 + int(context.type[-2])):
        return None
    statistics = [context.value(name) for name in ("running_mean", "running_var")]
    if context.type != "F.instance_norm" and all(vector is not None for vector in statistics):
        return batch_norm(context)
    return _group_norm(context, shape[1])


def _group_norm(context: LoweringContext, groups: int) -> Node | None:
    shape = context.shape("input")
    if shape is None or len(shape) not in (3, 4) or not _are_constants(context):
        return None
    return GroupNorm(
        [context.index],
        [context.tensor("input")],
        groups=groups,
        weight=_flat(context.value("weight")),
        bias=_flat(context.value("bias")),
        eps=context.value("eps"),
    )


@lowers("F.normalize")
def normalize(context: LoweringContext) -> Node | None:
    """Lower the division of vectors by their length."""
    shape = context.shape("input")
    if not shape or context.value("p") != 2:
        return None
    x, axes = context.tensor("input"), tuple(axis % len(shape) for axis in context.value("dim"))
    squares = reduce(context, "sum", pointwise_tensor(context, x, apply("square", Leaf(1))), axes)
    length = apply("maximum", apply("sqrt", Leaf(2)), context.value("eps"))
    return pointwise(context, [x, squares], apply("div", Leaf(1), length))


@lowers("nn.LocalResponseNorm", "F.local_response_norm")
def local_response_norm(context: LoweringContext) -> Node | None:
    """Lower normalisation by the squares of neighbouring channels: sums of as many looks at them."""
    shape, size, least = context.shape("input"), context.value("size"), context.value("k")
    # the power is one of positive numbers only
    if shape is None or size > _WIDEST or not least > 0 or not context.value("alpha") >= 0:
        return None
    x, margins = context.tensor("input"), [(0, 0)] * len(shape)
    margins[1] = (size // 2, size - 1 - size // 2)
    squares = pointwise_tensor(context, x, apply("square", Leaf(1)))
    padded_shape = (shape[0], shape[1] + size - 1, *shape[2:])
    (padded,) = context.add(Pad([context.index], [squares], margins=tuple(margins)), padded_shape)

    def look(view: View) -> list[View]:
        return [view.sliced(1, first, shape[1]) for first in range(size)]

    neighbours = context.add(Reshape([context.index], [padded], look=look), *[shape] * size)
    total: PointwiseExpression = Leaf(2)
    for place in range(1, size):
        total = apply("add", total, Leaf(2 + place))
    total = apply("add", apply("mul", total, context.value("alpha") / size), least)
    factor = apply("exp", apply("mul", apply("log", total), -context.value("beta")))
    return pointwise(context, [x, *neighbours], apply("mul", Leaf(1), factor))


def _are_constants(context: LoweringContext) -> bool:
    output = context.outputs[0]
    return (
        context.is_constant("weight")
        and context.is_constant("bias")
        and isinstance(output, TensorSpec)
        and output.dtype == np.float32
    )


def _flat(array: Array | None) -> Array | None:
    return None if array is None else np.ascontiguousarray(array, np.float32).reshape(-1)
