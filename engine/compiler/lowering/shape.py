"""Operators that only look at their input in another way, and concatenation."""

import numpy as np

from engine.compiler.lowering.site import Site, lowers
from engine.compiler.nodes import Concatenation, Node, Reshape
from engine.compiler.view import View
from engine.spec import Spec, TensorSpec


@lowers(
    "nn.Dropout", "nn.Dropout2d", "nn.Dropout3d", "nn.AlphaDropout", "F.dropout", "F.dropoutnd", "F.dropout1d"
)
@lowers(
    "F.dropout2d", "F.dropout3d", "F.alpha_dropout", "F.feature_alpha_dropout", "torch.clone", "Tensor.clone"
)
@lowers("Tensor.contiguous", "Tensor.detach", "Tensor.alias")
def same(site: Site) -> Node | None:
    """Lower an operator that gives its input as it is."""
    return Reshape([site.index], [site.operand(0)], look=lambda view: [view]) if site.is_float(0) else None


@lowers("Tensor.reshape", "Tensor.view", "torch.flatten", "torch.unflatten", "Tensor.unflatten")
@lowers("torch.squeeze", "torch.unsqueeze", "Tensor.permute", "torch.permute", "torch.transpose", "torch.t")
@lowers("Tensor.slice", "Tensor.select", "torch.narrow", "Tensor.expand")
@lowers("torch.split", "torch.chunk", "torch.tensor_split", "torch.unbind")
def look(site: Site) -> Node | None:
    """Lower an operator whose numpy forward gives views of its input: the layer itself shows where they lie."""
    if not site.is_float(0) or any(isinstance(spec, TensorSpec) for spec in site.inputs[1:]):
        return None

    def look_through(view: View) -> list[View] | None:
        return _views(site, view)

    return Reshape([site.index], [site.operand(0)], look=look_through)


def _views(site: Site, view: View) -> list[View] | None:
    """Run the layer on memory laid out as a view is; returns where in it the outputs lie."""
    if view.size == 0:
        return None
    last = sum((extent - 1) * stride for extent, stride in zip(view.shape, view.strides, strict=True))
    memory = np.empty(last + 1, np.float32)
    steps = tuple(stride * memory.itemsize for stride in view.strides)
    given: list[Spec | np.ndarray] = list(site.inputs)
    given[0] = np.lib.stride_tricks.as_strided(memory, view.shape, steps)
    results = site.step.layer.forward(given)  # type: ignore[arg-type]  # scalars' specs are the scalars
    views = []
    for result in results:
        if not isinstance(result, np.ndarray) or not np.may_share_memory(result, memory):
            return None
        offset = (
            result.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
        ) // memory.itemsize
        strides = tuple(step // memory.itemsize for step in result.strides)
        views.append(View(view.buffer, view.offset + offset, result.shape, strides))
    return views


@lowers("torch.cat")
def concatenate(site: Site) -> Node | None:
    """Lower a concatenation of float32 tensors."""
    output = site.outputs[0]
    places = range(len(site.inputs))
    if not isinstance(output, TensorSpec) or not all(map(site.is_float, places)):
        return None
    tensors = [site.operand(place) for place in places]
    if any(tensor.rank != output.rank or 0 in tensor.shape for tensor in tensors):
        return None
    return Concatenation([site.index], tensors, axis=site.value("dim") % output.rank)
