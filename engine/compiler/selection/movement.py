"""Kernels that move elements: copies, and what pointwise nodes compute."""

from collections.abc import Sequence

import numpy as np

from engine.compiler.emit.pointwise import ZERO, Leaf, Literal, PointwiseExpression, substitute
from engine.compiler.graph import Gather, Pointwise, Ramp, Rearrangement
from engine.compiler.graph import Pad as PadNode
from engine.compiler.kernels.elementwise import dynamic_kernel, elementwise
from engine.compiler.kernels.gather import GatherKernel
from engine.compiler.kernels.padding import PadKernel
from engine.compiler.kernels.ramp import RampKernel
from engine.compiler.memory.view import View
from engine.compiler.passes.storage import Copy
from engine.compiler.selection.call import Selector, image_of, selects, view_of


@selects(Copy)
def select_copy(selector: Selector, node: Copy) -> None:
    """Copy a view to another of the same shape."""
    move(selector, Leaf(0), [node.source], node.target)


@selects(Pointwise)
def select_pointwise(selector: Selector, node: Pointwise) -> None:
    """Compute an expression, element by element."""
    output = view_of(node.output)
    views = [view_of(tensor).expanded(output.shape) for tensor in node.inputs]
    # a pointwise node has no result of its own: its inputs are Leaf(1) and on
    leaves: list[PointwiseExpression] = [Leaf(0), *(Leaf(place) for place in range(len(views)))]
    move(selector, substitute(node.epilogue, leaves), views, output)


@selects(Gather)
def select_gather(selector: Selector, node: Gather) -> None:
    """Choose the kernel that picks elements by indices."""
    source, *indices = map(view_of, node.inputs)
    out = view_of(node.output)
    rank = len(out.shape)
    x_strides = [0] * rank
    picked = []
    for place, extent, stride in zip(node.kept, source.shape, source.strides, strict=True):
        if place is None:
            picked.append((extent, stride))
        else:
            x_strides[place] = stride
    after = rank - node.start - node.spread
    views = [_along(view, after).expanded(out.shape) for view in indices]
    kernel = GatherKernel(
        shape=out.shape or (1,),
        x_strides=tuple(x_strides) or (0,),
        limits=tuple(extent for extent, _ in picked),
        steps=tuple(stride for _, stride in picked),
        index_strides=tuple(view.strides or (0,) for view in views),
        out_strides=out.strides or (0,),
    )
    selector.call(kernel, source, *views, out)


def _along(view: View, after: int) -> View:
    """Return the view of an index, broadcast along trailing axes."""
    return View(view.buffer, view.offset, (*view.shape, *(1,) * after), (*view.strides, *(0,) * after))


@selects(Ramp)
def select_ramp(selector: Selector, node: Ramp) -> None:
    """Count up."""
    out = view_of(node.output)
    kernel = RampKernel(start=node.start, step=node.step, length=out.shape[0], out_step=out.strides[0])
    selector.call(kernel, out)


@selects(Rearrangement)
def select_rearrangement(selector: Selector, node: Rearrangement) -> None:
    """Copy elements to other places; axes can be taken apart wherever a tensor lies."""
    source = view_of(node.inputs[0]).in_shape(node.parts).permuted(node.axes)
    target = view_of(node.output).in_shape(source.shape)
    move(selector, Leaf(0), [source], target)


def move(selector: Selector, expression: PointwiseExpression, views: list[View], output: View) -> None:
    """Compute an expression over views of one shape into another."""
    kernel = elementwise(output.shape, [view.strides for view in views], output.strides, expression)
    selector.call(dynamic_kernel(kernel) if selector.is_dynamic else kernel, *views, output)


@selects(PadNode)
def select_pad(selector: Selector, node: PadNode) -> None:
    """Choose the kernel of margins around an image, or the copies that make margins around any other tensor."""
    if not node.is_spatial:
        _pad_axes(selector, view_of(node.inputs[0]), view_of(node.output), node.margins, node.value)
        return
    x, out = image_of(node.inputs[0]), image_of(node.output)
    before = tuple(first for first, _ in node.margins[2:])
    before = (0, before[0]) if len(before) == 1 else before
    pad(selector, x, out, (before[0], before[1]), node.value, node.mode)  # images are placed channels-last


def _pad_axes(
    selector: Selector, x: View, out: View, margins: Sequence[tuple[int, int]], filling: Literal
) -> None:
    """Copy a tensor and fill the margins around it, one axis after the other."""
    value = selector.constant(np.full(1, filling.value, np.float32))
    for axis, (before, after) in enumerate(margins):
        start, stop = max(0, before), out.shape[axis] - max(0, after)
        for first, last in ((0, start), (stop, out.shape[axis])):
            if first < last:
                margin = out.sliced(axis, first, last - first)
                fill = View(value.buffer, 0, margin.shape, (0,) * len(margin.shape))
                move(selector, Leaf(0), [fill], margin)
        if start >= stop:
            return  # nothing is left of the tensor
        out = out.sliced(axis, start, stop - start)
        x = x.sliced(axis, max(0, -before), stop - start)
    move(selector, Leaf(0), [x], out)


def pad(
    selector: Selector,
    x: View,
    padded: View,
    before: tuple[int, int],
    value: Literal = ZERO,
    mode: str = "constant",
) -> None:
    """Copy an image into a larger one whose channels are contiguous, with margins around it.

    Args:
        selector: receives the calls.
        x: the image.
        padded: where it goes.
        before: rows above and columns on the left.
        value: what constant margins hold.
        mode: how margins are filled.
    """
    images, channels, rows, columns = x.shape
    if selector.has_dynamic_images and mode == "constant":
        ends = (padded.shape[axis] - x.shape[axis] - before[axis - 2] for axis in (2, 3))
        _pad_axes(selector, x, padded, ((0, 0), (0, 0), *zip(before, ends, strict=True)), value)
        return
    kernel = PadKernel(
        shape=(images, channels, rows, columns),
        x_strides=(x.strides[0], x.strides[1], x.strides[2], x.strides[3]),
        size=(padded.shape[2], padded.shape[3]),
        before=before,
        out_strides=(padded.strides[0], padded.strides[2], padded.strides[3]),
        value=value,
        mode=mode,
    )
    selector.call(kernel, x, padded)
