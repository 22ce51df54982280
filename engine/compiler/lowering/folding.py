"""Windows of an image as columns, and back."""

from math import prod

import numpy as np

from engine.binding.spatial_arguments import spread
from engine.compiler.graph import Node, Pad, Tensor, TransposedConvolution
from engine.compiler.lowering.context import LoweringContext, lowers
from engine.compiler.lowering.looks import look, look_node
from engine.compiler.memory.view import View

_NAMES = ("kernel_size", "dilation", "padding", "stride")


def _windows(context: LoweringContext) -> tuple[tuple[int, int], ...]:
    """Return rows and columns of a window, between its elements, of the margins, and between windows."""
    pairs = (spread(name, context.value(name), 2) for name in _NAMES)
    return tuple((rows, columns) for rows, columns in pairs)


@lowers("F.unfold", "nn.Unfold")
def unfold(context: LoweringContext) -> Node | None:
    """Lower windows as columns: a look at the image in which they overlap, and a copy of it."""
    shape = context.shape("input")
    if shape is None or len(shape) != 4:
        return None
    kernel, dilation, padding, stride = _windows(context)
    x = _with_margins(context, context.tensor("input"), padding)
    reach = [(size - 1) * step for size, step in zip(kernel, dilation, strict=True)]
    counts = [
        (size - far - 1) // step + 1 for size, far, step in zip(x.shape[2:], reach, stride, strict=True)
    ]
    windows = (*shape[:2], *kernel, *counts)

    def overlapping(view: View) -> View:
        images, channels, rows, columns = view.strides
        steps = (rows * dilation[0], columns * dilation[1], rows * stride[0], columns * stride[1])
        return View(view.buffer, view.offset, windows, (images, channels, *steps))

    seen = look(context, x, windows, overlapping)
    columns = (shape[0], shape[1] * prod(kernel), prod(counts))
    return look_node(context.index, seen, lambda view: view.reshaped(columns))


def _with_margins(context: LoweringContext, x: Tensor, padding: tuple[int, int]) -> Tensor:
    """Return an image with zeros around it, if there are to be any."""
    if not any(padding):
        return x
    margins = ((0, 0), (0, 0), *((size, size) for size in padding))
    padded = tuple(size + sum(pair) for size, pair in zip(x.shape, margins, strict=True))
    return context.add(Pad([context.index], [x], margins=margins), padded)[0]


@lowers("F.fold", "nn.Fold")
def fold(context: LoweringContext) -> Node | None:
    """Lower columns that are added up to an image: each is one tap of a transposed convolution of its channel."""
    shape = context.shape("input")
    if shape is None or len(shape) != 3:
        return None
    kernel, dilation, padding, stride = _windows(context)
    size = spread("output_size", context.value("output_size"), 2)
    taps = prod(kernel)
    channels = shape[1] // taps
    reach = [(count - 1) * step + 1 for count, step in zip(kernel, dilation, strict=True)]
    counts = [
        (extent + 2 * margin - far) // step + 1
        for extent, margin, far, step in zip(size, padding, reach, stride, strict=True)
    ]
    left = [
        extent - ((count - 1) * step + far - 2 * margin)
        for extent, count, step, far, margin in zip(size, counts, stride, reach, padding, strict=True)
    ]
    image = (shape[0], shape[1], counts[0], counts[1])
    x = look(context, context.tensor("input"), image, lambda view: view.reshaped(image))
    return TransposedConvolution(
        [context.index],
        [x],
        weight=np.tile(np.eye(taps, dtype=np.float32).reshape(taps, 1, *kernel), (channels, 1, 1, 1)),
        bias=None,
        stride=stride,
        padding=padding,
        output_padding=(left[0], left[1]),
        dilation=dilation,
        groups=channels,
        is_computed=True,
    )
