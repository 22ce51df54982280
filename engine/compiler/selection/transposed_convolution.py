"""Kernels for transposed convolutions."""

from engine.compiler.graph import TransposedConvolution
from engine.compiler.kernels.shapes import ImageStrides
from engine.compiler.kernels.transposed_convolution import TransposedConvolutionKernel
from engine.compiler.kernels.transposed_geometry import TransposedAxis, TransposedShape
from engine.compiler.memory.view import View
from engine.compiler.selection.call import (
    Selector,
    has_channels_last,
    image_epilogue,
    image_of,
    image_strides,
    selects,
)
from engine.compiler.selection.movement import pad


@selects(TransposedConvolution)
def select_transposed_convolution(selector: Selector, node: TransposedConvolution) -> None:
    """Choose the kernel of a transposed convolution."""
    epilogue, operands = image_epilogue(selector, node)
    out = image_of(node.output)
    channels, filters, *kernel = node.weight.shape
    rows, columns = (
        TransposedAxis(*sizes) for sizes in zip(kernel, node.stride, node.padding, node.dilation, strict=True)
    )
    x, halo = _padded(selector, image_of(node.inputs[0]), out, (rows, columns))
    shape = TransposedShape(
        images=out.shape[0],
        size=(out.shape[2], out.shape[3]),
        channels=channels // node.groups,
        filters=filters,
        groups=node.groups,
        axes=(rows, columns),
    )
    choice = TransposedConvolutionKernel.tuned(
        selector.target,
        shape=shape,
        halo=halo,
        strides=ImageStrides(image_strides(x), image_strides(out)),
        epilogue=epilogue,
    )
    weights, bias = selector.weights(node, choice, node.weight, node.bias)
    selector.call(choice, x, weights, bias, out, *operands)


def _padded(
    selector: Selector, x: View, out: View, axes: tuple[TransposedAxis, TransposedAxis]
) -> tuple[View, tuple[int, int]]:
    """Return the input with the zeros around it that its kernel reads, and how many come first."""
    images, channels, rows, columns = x.shape
    (top, bottom), (left, right) = (
        axis.halo(have, want) for axis, have, want in zip(axes, (rows, columns), out.shape[2:], strict=True)
    )
    if not any((top, bottom, left, right)) and has_channels_last(x):
        return x, (0, 0)
    padded = selector.temporary((images, channels, rows + top + bottom, columns + left + right), (0, 2, 3, 1))
    pad(selector, x, padded, (top, left))
    return padded, (top, left)
