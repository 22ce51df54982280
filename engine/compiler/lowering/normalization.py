"""Softmax and normalisation by statistics of the input."""

import numpy as np

from engine.compiler.emit.pointwise import Expression, Leaf, apply
from engine.compiler.graph import GroupNorm, LayerNorm, Node, Pad, Reshape, Softmax
from engine.compiler.lowering.pointwise import batch_norm, pointwise, pointwise_tensor
from engine.compiler.lowering.reduction import reduce
from engine.compiler.lowering.site import Site, lowers
from engine.compiler.memory.view import View
from engine.dtypes import Array
from engine.spec import TensorSpec

_WIDEST = 16
"""Channels of a local response normalisation at most: each is an operand."""


@lowers("nn.Softmax", "F.softmax", "nn.LogSoftmax", "F.log_softmax", "nn.Softmax2d")
def softmax(site: Site) -> Node | None:
    """Lower a softmax along a given axis, or its logarithm."""
    shape, axis = site.shape("input"), -3 if site.type == "nn.Softmax2d" else site.value("dim")
    if not shape or not isinstance(axis, int):
        return None
    is_log = "log" in site.type.lower()
    return Softmax([site.index], [site.tensor("input")], axis=axis % len(shape), is_log=is_log)


@lowers("nn.LayerNorm", "F.layer_norm", "nn.RMSNorm", "F.rms_norm")
def layer_norm(site: Site) -> Node | None:
    """Lower layer or RMS normalisation with constant scale and shift."""
    shape, eps = site.shape("input"), site.value("eps")
    if not shape or not site.has_operand("input") or not _are_constants(site):
        return None
    return LayerNorm(
        [site.index],
        [site.tensor("input")],
        axes=len(site.value("normalized_shape")),
        weight=_flat(site.value("weight")),
        bias=_flat(site.value("bias")),
        eps=float(np.finfo(np.float32).eps) if eps is None else eps,
        is_centred="layer" in site.type.lower(),
    )


@lowers("nn.GroupNorm", "F.group_norm")
def group_norm(site: Site) -> Node | None:
    """Lower group normalisation of a batch of images or sequences with constant scale and shift."""
    return _group_norm(site, site.value("num_groups"))


@lowers("nn.InstanceNorm1d", "nn.InstanceNorm2d", "F.instance_norm")
def instance_norm(site: Site) -> Node | None:
    """Lower instance normalisation: groups of one channel, or given statistics."""
    shape = site.shape("input")
    if shape is None or (site.type != "F.instance_norm" and len(shape) != 2 + int(site.type[-2])):
        return None
    statistics = [site.value(name) for name in ("running_mean", "running_var")]
    if site.type != "F.instance_norm" and all(vector is not None for vector in statistics):
        return batch_norm(site)
    return _group_norm(site, shape[1])


def _group_norm(site: Site, groups: int) -> Node | None:
    shape = site.shape("input")
    if shape is None or len(shape) not in (3, 4) or not _are_constants(site):
        return None
    return GroupNorm(
        [site.index],
        [site.tensor("input")],
        groups=groups,
        weight=_flat(site.value("weight")),
        bias=_flat(site.value("bias")),
        eps=site.value("eps"),
    )


@lowers("F.normalize")
def normalize(site: Site) -> Node | None:
    """Lower the division of vectors by their length."""
    shape = site.shape("input")
    if shape is None or site.value("p") != 2:
        return None
    x, axes = site.tensor("input"), tuple(axis % len(shape) for axis in site.value("dim"))
    squares = reduce(site, "sum", pointwise_tensor(site, x, apply("square", Leaf(1))), axes)
    length = apply("maximum", apply("sqrt", Leaf(2)), site.value("eps"))
    return pointwise(site, [x, squares], apply("div", Leaf(1), length))


@lowers("nn.LocalResponseNorm", "F.local_response_norm")
def local_response_norm(site: Site) -> Node | None:
    """Lower normalisation by the squares of neighbouring channels: sums of as many looks at them."""
    shape, size, least = site.shape("input"), site.value("size"), site.value("k")
    # the power is one of positive numbers only
    if shape is None or size > _WIDEST or not least > 0 or not site.value("alpha") >= 0:
        return None
    x, margins = site.tensor("input"), [(0, 0)] * len(shape)
    margins[1] = (size // 2, size - 1 - size // 2)
    squares = pointwise_tensor(site, x, apply("square", Leaf(1)))
    padded_shape = (shape[0], shape[1] + size - 1, *shape[2:])
    (padded,) = site.add(Pad([site.index], [squares], margins=tuple(margins)), padded_shape)

    def look(view: View) -> list[View]:
        return [view.sliced(1, first, shape[1]) for first in range(size)]

    neighbours = site.add(Reshape([site.index], [padded], look=look), *[shape] * size)
    total: Expression = Leaf(2)
    for place in range(1, size):
        total = apply("add", total, Leaf(2 + place))
    total = apply("add", apply("mul", total, site.value("alpha") / size), least)
    factor = apply("exp", apply("mul", apply("log", total), -site.value("beta")))
    return pointwise(site, [x, *neighbours], apply("mul", Leaf(1), factor))


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
