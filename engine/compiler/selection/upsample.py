"""Kernels for resizing."""

from engine.compiler.graph import Upsample
from engine.compiler.kernels.upsample import UpsampleKernel
from engine.compiler.selection.call import Selector, channels_last, image_of, image_strides, selects


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
    )
    selector.call(kernel, x, out)
