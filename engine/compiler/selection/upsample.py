"""Kernels for resizing."""

from engine.compiler.graph.nodes import Upsample
from engine.compiler.kernels.upsample import Upsample as Kernel
from engine.compiler.selection.call import Selector, channels_last, image_of, image_strides, selects


@selects(Upsample)
def select_upsample(selector: Selector, node: Upsample) -> None:
    """Choose the kernel of a resizing."""
    x, out = channels_last(selector, image_of(node.inputs[0])), image_of(node.output)
    kernel = Kernel(
        node.how,
        x.shape[0],
        x.shape[1],
        (x.shape[2], x.shape[3]),
        (out.shape[2], out.shape[3]),
        image_strides(x),
        image_strides(out),
        node.scales,
        node.align_corners,
        node.output.rank - 2,
    )
    selector.call(kernel, x, out)
