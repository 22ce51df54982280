"""Kernels for resizing."""

from engine.compiler.graph import Upsample
from engine.compiler.kernels.upsample import UpsampleKernel
from engine.compiler.memory.view import View
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
        kept=(_stays(node, x, out, 2), _stays(node, x, out, 3)),
        is_dynamic=selector.has_dynamic_images,
    )
    selector.call(kernel, x, out, selector.constant(kernel.tables))


def _stays(node: Upsample, x: View, out: View, axis: int) -> bool:
    """Whether an axis stays as it is, for no need of interpolation or as the only row of a sequence."""
    is_row_of_sequence = node.output.rank == 3 and axis == 2
    return is_row_of_sequence or (node.how == "bilinear" and x.shape[axis] == out.shape[axis])
