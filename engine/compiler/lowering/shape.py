"""Operators that only look at their input in another way or put its elements in another order, and concatenation."""

import numpy as np

from engine.compiler.graph import EXACT, Concatenation, Node, Ramp, Rearrangement, Reshape, Tensor
from engine.compiler.lowering.context import LoweringContext, is_readable, lowers, reads_all
from engine.compiler.lowering.looks import look as look_at
from engine.compiler.lowering.looks import look_node
from engine.compiler.memory.view import View
from engine.spec import Spec, TensorSpec, arrays_in

TAKES_APART = (
    "torch.split",
    "torch.chunk",
    "torch.tensor_split",
    "torch.unbind",
    "aten::unsafe_chunk",
    "aten::unsafe_split",
    "aten::unsafe_split_with_sizes",
)
"""Operators that give parts of their input, each as an output of its own or all in one list."""

_AS_ANOTHER = ("Tensor.reshape_as", "Tensor.view_as", "aten::view_as", "Tensor.expand_as")
"""Operators that read nothing of their second operand but its shape."""


@lowers(
    "nn.Dropout", "nn.Dropout2d", "nn.Dropout3d", "nn.AlphaDropout", "F.dropout", "F.dropoutnd", "F.dropout1d"
)
@lowers(
    "F.dropout2d", "F.dropout3d", "F.alpha_dropout", "F.feature_alpha_dropout", "torch.clone", "Tensor.clone"
)
@lowers("Tensor.contiguous", "Tensor.detach", "Tensor.alias")
@reads_all
def same(context: LoweringContext) -> Node | None:
    """Lower an operator that gives its input as it is."""
    if not context.is_readable(0):
        return None
    context.bounds = context.operand(0).bounds
    return Reshape([context.index], [context.operand(0)], look=lambda view: [view])


@lowers("Tensor.reshape", "Tensor.view", "torch.flatten", "torch.unflatten", "Tensor.unflatten")
@lowers("torch.squeeze", "torch.unsqueeze", "Tensor.permute", "torch.permute", "torch.transpose", "torch.t")
@lowers("Tensor.slice", "Tensor.select", "torch.narrow", "Tensor.expand")
@lowers("aten::mT", "aten::numpy_T", "aten::movedim", "aten::ravel", "aten::unfold", "aten::broadcast_to")
@lowers("aten::atleast_1d", "aten::atleast_2d", "aten::atleast_3d", "aten::diagonal")
@lowers(*_AS_ANOTHER)
@lowers(*TAKES_APART)
@reads_all
def look(context: LoweringContext) -> Node | None:
    """Lower an operator whose numpy forward gives views of its input: the layer itself shows where they lie."""
    reads_others = any(isinstance(spec, TensorSpec) for spec in context.inputs[1:])
    if not context.is_readable(0) or (reads_others and context.type not in _AS_ANOTHER):
        return None
    if context.step.operator.type == "Tensor.select" and isinstance(context.value("index"), tuple):
        return None  # several indices: a copy

    def look_through(view: View) -> list[View] | None:
        return _views(context, view)

    context.bounds = context.operand(0).bounds
    return Reshape([context.index], [context.operand(0)], look=look_through)


def _views(context: LoweringContext, view: View) -> list[View] | None:
    """Run the layer on memory laid out as a view is; returns where in it the outputs lie."""
    if view.size == 0:
        return None
    last = sum((extent - 1) * stride for extent, stride in zip(view.shape, view.strides, strict=True))
    memory = np.empty(last + 1, np.float32)
    steps = tuple(stride * memory.itemsize for stride in view.strides)
    given: list[Spec | np.ndarray] = list(context.inputs)
    given[0] = np.lib.stride_tricks.as_strided(memory, view.shape, steps)
    results = context.step.layer.unrounded(given)  # type: ignore[arg-type]  # scalars' specs are the scalars
    views = []
    for result in arrays_in(results):
        if not np.may_share_memory(result, memory):
            return None
        offset = (
            result.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
        ) // memory.itemsize
        strides = tuple(step // memory.itemsize for step in result.strides)
        views.append(View(view.buffer, view.offset + offset, result.shape, strides))
    return views


@lowers("nn.PixelShuffle", "F.pixel_shuffle", "nn.PixelUnshuffle", "F.pixel_unshuffle")
def pixel_shuffle(context: LoweringContext) -> Node | None:
    """Lower channels that become pixels, or pixels that become channels."""
    shape, up = context.shape("input"), context.value("upscale_factor")
    if shape is None or len(shape) != 4:
        return None
    images, channels, rows, columns = shape
    if up is not None:
        parts, axes = (images, channels // up**2, up, up, rows, columns), (0, 1, 4, 2, 5, 3)
    else:
        down = context.value("downscale_factor")
        parts, axes = (images, channels, rows // down, down, columns // down, down), (0, 1, 3, 5, 2, 4)
    return Rearrangement([context.index], [context.tensor("input")], parts=parts, axes=axes)


@lowers("nn.ChannelShuffle")
def channel_shuffle(context: LoweringContext) -> Node | None:
    """Lower a channel shuffle: first of each group, second of each group, …."""
    shape, groups = context.shape("input"), context.value("groups")
    if shape is None:
        return None
    parts = (shape[0], groups, shape[1] // groups, *shape[2:])
    axes = (0, 2, 1, *range(3, len(parts)))
    return Rearrangement([context.index], [context.tensor("input")], parts=parts, axes=axes)


@lowers("torch.stack")
@reads_all
def stack(context: LoweringContext) -> Node | None:
    """Lower tensors side by side along a new axis."""
    output = context.outputs[0]
    places = range(len(context.inputs))
    if not isinstance(output, TensorSpec) or not _are_alike(context, output):
        return None
    axis = context.value("dim") % output.rank
    shape = (*output.shape[:axis], 1, *output.shape[axis + 1 :])
    parts = [look_at(context, context.operand(p), shape, lambda view: view.reshaped(shape)) for p in places]
    return Concatenation([context.index], parts, axis=axis)


@lowers("torch.roll")
def roll(context: LoweringContext) -> Node | None:
    """Lower a shift along some axes: along each, the last places come before the first ones."""
    shape, axes = context.shape("input"), context.value("dims")
    if shape is None or not axes:
        return None
    shifts: dict[int, int] = {}
    for axis, shift in zip(axes, context.value("shifts"), strict=True):
        shifts[axis % len(shape)] = (shifts.get(axis % len(shape), 0) + shift) % shape[axis]
    moved = [(axis, shift) for axis, shift in shifts.items() if shift]
    if not moved:
        return same(context)
    x = context.tensor("input")
    for axis, shift in moved[:-1]:
        (x,) = context.add(_rolled(context, x, axis, shift), shape)
    return _rolled(context, x, *moved[-1])


def _rolled(context: LoweringContext, x: Tensor, axis: int, shift: int) -> Concatenation:
    """Return the node of a shift along one axis, by more than nothing and less than all."""
    first = x.shape[axis] - shift

    def look(view: View) -> list[View]:
        return [view.sliced(axis, first, shift), view.sliced(axis, 0, first)]

    shapes = [(*x.shape[:axis], extent, *x.shape[axis + 1 :]) for extent in (shift, first)]
    return Concatenation(
        [context.index], context.add(Reshape([context.index], [x], look=look), *shapes), axis=axis
    )


@lowers("Tensor.repeat", "torch.tile")
@reads_all
def repeat(context: LoweringContext) -> Node | None:
    """Lower copies of a tensor side by side: a look that goes over it several times, and a copy of that."""
    factors = context.value("sizes" if context.type == "Tensor.repeat" else "dims")
    output = context.outputs[0]
    if not context.is_readable(0) or not isinstance(output, TensorSpec):
        return None
    x = context.operand(0)
    missing = output.rank - x.rank
    factors = (1,) * (output.rank - len(factors)) + tuple(factors)
    sizes = (1,) * missing + x.shape
    parts = tuple(extent for pair in zip(factors, sizes, strict=True) for extent in pair)

    def again(view: View) -> View:
        steps = (0,) * missing + view.strides
        return View(view.buffer, view.offset, parts, tuple(s for step in steps for s in (0, step)))

    context.bounds = x.bounds
    seen = look_at(context, x, parts, again)
    return look_node(context.index, seen, lambda view: view.reshaped(output.shape))


@lowers("torch.repeat_interleave")
@reads_all
def repeat_interleave(context: LoweringContext) -> Node | None:
    """Lower copies of each index along an axis, all of one number."""
    count, dim, output = context.value("repeats"), context.value("dim"), context.outputs[0]
    if not context.is_readable(0) or not isinstance(count, int) or not isinstance(output, TensorSpec):
        return None
    x = context.operand(0)
    if dim is None or not x.rank:
        return None
    axis = dim % x.rank
    parts = (*x.shape[: axis + 1], count, *x.shape[axis + 1 :])

    def again(view: View) -> View:
        steps = (*view.strides[: axis + 1], 0, *view.strides[axis + 1 :])
        return View(view.buffer, view.offset, parts, steps)

    context.bounds = x.bounds
    seen = look_at(context, x, parts, again)
    return look_node(context.index, seen, lambda view: view.reshaped(output.shape))


def _are_alike(context: LoweringContext, output: TensorSpec) -> bool:
    """Whether all inputs are tensors that kernels read, of the output's dtype; notes the bounds of all together."""
    if not is_readable(output):
        return False
    if not all(
        isinstance(spec, TensorSpec) and spec.dtype == output.dtype and is_readable(spec)
        for spec in context.inputs
    ):
        return False
    bounds = [context.operand(place).bounds for place in range(len(context.inputs))]
    known = [pair for pair in bounds if pair is not None]
    if len(known) == len(bounds):
        context.bounds = min(low for low, _ in known), max(high for _, high in known)
    return True


@lowers("torch.cat")
@reads_all
def concatenate(context: LoweringContext) -> Node | None:
    """Lower a concatenation of tensors of one dtype."""
    output = context.outputs[0]
    places = range(len(context.inputs))
    if not isinstance(output, TensorSpec) or not _are_alike(context, output):
        return None
    tensors = [context.operand(place) for place in places]
    if any(tensor.rank != output.rank or 0 in tensor.shape for tensor in tensors):
        return None
    return Concatenation([context.index], tensors, axis=context.value("dim") % output.rank)


@lowers("torch.arange")
@reads_all
def count(context: LoweringContext) -> Node | None:
    """Lower numbers that count up to a length of the inputs; where that is none, they are folded."""
    output = context.outputs[0]
    ends = [context.value(name) for name in ("start", "end", "step")]
    if not isinstance(output, TensorSpec) or not is_readable(output):
        return None
    start, step = 0 if ends[1] is None else ends[0], ends[2]
    if not (isinstance(start, int) and isinstance(step, int) and step > 0):
        return None
    last = start + (output.size - 1) * step
    if max(last, -start) >= EXACT:
        return None
    context.bounds = start, last
    return Ramp([context.index], [], start=float(start), step=float(step))
