"""Kernels for pooling, resizing and reductions."""

from dataclasses import replace

from engine.compiler.contraction.shapes import ImageStrides
from engine.compiler.graph import AdaptivePool, Pool, Reduction, Scan, Upsample
from engine.compiler.kernels.pooling import Cells, Pooling, Window, cells
from engine.compiler.kernels.reduction import reduction
from engine.compiler.kernels.scan import scan
from engine.compiler.kernels.upsample import UpsampleKernel
from engine.compiler.kernels.word_pooling import WordPooling
from engine.compiler.memory.view import View
from engine.compiler.selection.call import Selector, channels_last, image_of, image_strides, selects, view_of

_HOW = {"max": "max", "mean": "average"}


@selects(Scan)
def select_scan(selector: Selector, node: Scan) -> None:
    """Choose the kernel of a pass along an axis."""
    x, out = view_of(node.inputs[0]), view_of(node.output)
    strides = list(out.strides)
    if node.how != "cumsum":
        strides[node.axis : node.axis + len(strides) + 1 - len(x.shape)] = [0]  # the axis may be gone
    selector.call(scan(node.how, node.axis, x.shape, x.strides, tuple(strides)), x, out)


@selects(Pool)
def select_pool(selector: Selector, node: Pool) -> None:
    """Choose the kernel of a pooling over windows of one size."""
    if node.output.is_bf16 or node.output.scale is not None:
        _pool_words(selector, node, image_of(node.inputs[0]), image_of(node.output))
        return
    x, out = channels_last(selector, image_of(node.inputs[0])), image_of(node.output)
    rows, columns = (
        Window(
            size=x.shape[axis],
            count=out.shape[axis],
            kernel=node.window[axis - 2],
            stride=node.stride[axis - 2],
            padding=node.padding[axis - 2],
            dilation=node.dilation[axis - 2],
            counts_padding=node.counts_padding,
        )
        for axis in (2, 3)
    )
    _pool(selector, node.how, x, out, (rows, columns), node.divisor or 0)


def _pool_words(selector: Selector, node: Pool, x: View, out: View) -> None:
    """Add the call of a maximum over windows of elements that hold several channels each."""
    kernel = WordPooling(
        images=x.shape[0],
        words=x.shape[1],
        x_size=(x.shape[2], x.shape[3]),
        size=(out.shape[2], out.shape[3]),
        window=node.window,
        stride=node.stride,
        padding=node.padding,
        strides=ImageStrides(image_strides(x), image_strides(out)),
        lanes=selector.lanes,
        is_bf16=node.output.is_bf16,
    )
    selector.call(kernel, x, out)


@selects(AdaptivePool)
def select_adaptive_pool(selector: Selector, node: AdaptivePool) -> None:
    """Choose the kernel of a pooling over as many windows as the output has pixels."""
    x, out = image_of(node.inputs[0]), image_of(node.output)
    if node.how == "mean" and out.shape[2:] == (1, 1):
        _reduce(selector, "mean", x, out, (2, 3))
        return
    x = channels_last(selector, x)
    rows, columns = (cells(x.shape[axis], out.shape[axis]) for axis in (2, 3))
    _pool(selector, node.how, x, out, (rows, columns), 0)


@selects(Reduction)
def select_reduction(selector: Selector, node: Reduction) -> None:
    """Choose the kernel of a reduction; its output may lack the axes that are reduced."""
    x, out = view_of(node.inputs[0]), view_of(node.output)
    if len(out.shape) < len(x.shape):
        kept = iter(zip(out.shape, out.strides, strict=True))
        axes = [(1, 0) if axis in node.axes else next(kept) for axis in range(len(x.shape))]
        out = View(out.buffer, out.offset, tuple(size for size, _ in axes), tuple(step for _, step in axes))
    _reduce(selector, node.how, x, out, node.axes)


def _pool(
    selector: Selector,
    how: str,
    x: View,
    out: View,
    axes: tuple[Window | Cells, Window | Cells],
    divisor: int,
) -> None:
    kernel = Pooling(
        how=_HOW[how],
        images=x.shape[0],
        channels=x.shape[1],
        rows=axes[0],
        columns=axes[1],
        x_strides=image_strides(x),
        out_strides=image_strides(out),
        divisor=divisor,
        is_dynamic=selector.has_dynamic_images,
    )
    selector.call(kernel, x, out)


def _reduce(selector: Selector, how: str, x: View, out: View, axes: tuple[int, ...]) -> None:
    steps = [step for axis, step in enumerate(out.strides) if axis not in axes]
    kernel = reduction(how, x.shape, x.strides, axes, steps)
    selector.call(replace(kernel, is_dynamic=selector.is_dynamic), x, out)


@selects(Upsample)
def select_upsample(selector: Selector, node: Upsample) -> None:
    """Choose the kernel of a resizing."""
    x, out = channels_last(selector, image_of(node.inputs[0])), image_of(node.output)
    kernel = UpsampleKernel(
        mode=node.how,
        images=x.shape[0],
        channels=x.shape[1],
        size=(x.shape[2], x.shape[3]),
        out_size=(out.shape[2], out.shape[3]),
        x_strides=image_strides(x),
        out_strides=image_strides(out),
        scale_factor=node.scales,
        align_corners=node.align_corners,
        axes=node.output.rank - 2,
        kept=(_stays(node, x, out, 2), _stays(node, x, out, 3)),
        is_dynamic=selector.has_dynamic_images,
    )
    selector.call(kernel, x, out, selector.constant(kernel.tables))


def _stays(node: Upsample, x: View, out: View, axis: int) -> bool:
    """Whether an axis stays as it is, for no need of interpolation or as the only row of a sequence."""
    is_row_of_sequence = node.output.rank == 3 and axis == 2
    return is_row_of_sequence or (node.how == "bilinear" and x.shape[axis] == out.shape[axis])
