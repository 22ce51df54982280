"""Kernels for transposed convolutions."""

from dataclasses import replace
from math import prod

from engine.compiler.contraction.epilogue import NOTHING, Epilogue
from engine.compiler.contraction.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.graph import TransposedConvolution
from engine.compiler.kernels.transposed_convolution import TransposedConvolutionKernel
from engine.compiler.kernels.transposed_geometry import TransposedAxis, TransposedShape
from engine.compiler.memory.view import View
from engine.compiler.selection import cost
from engine.compiler.selection.bf16 import convolve_bf16, may_round
from engine.compiler.selection.call import (
    BF16,
    Selector,
    has_channels_last,
    image_epilogue,
    image_of,
    image_of_shape,
    image_strides,
    selects,
)
from engine.compiler.selection.machine import Effort
from engine.compiler.selection.movement import pad
from engine.compiler.selection.work import Work


@selects(TransposedConvolution)
def select_transposed_convolution(selector: Selector, node: TransposedConvolution) -> None:
    """Choose the kernel of a transposed convolution."""
    epilogue, operands = image_epilogue(selector, node)
    out = image_of(node.output)
    channels, filters, *kernel = node.weight.shape
    x = image_of(node.inputs[0])
    bf16 = _bf16(node, x, out, epilogue, operands) if may_round(selector) else None
    is_bf16 = node.inputs[0].is_bf16, node.output.is_bf16
    efforts, of_one = (_efforts(selector, node, images, out, bf16) for images in (out.shape[0], 1))
    chosen = selector.choose(efforts, of_one)
    if bf16 is not None and (any(is_bf16) or chosen == BF16):
        convolve_bf16(selector, replace(bf16, is_bf16=is_bf16))
        return
    rows, columns = (
        TransposedAxis(*sizes) for sizes in zip(kernel, node.stride, node.padding, node.dilation, strict=True)
    )
    x, halo = _padded(selector, x, out, (rows, columns))
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
        is_dynamic=selector.has_dynamic_images,
    )
    weights, bias = selector.weights(node, choice, node.weight, node.bias)
    selector.call(choice, x, weights, bias, out, *operands)


def _bf16(
    node: TransposedConvolution, x: View, out: View, epilogue: Epilogue, operands: list[View]
) -> Work[TransposedConvolution] | None:
    """Return a convolution of operands rounded to bfloat16; None where windows of results meet.

    Where they do not meet, each place in a window has filters of its own, one pixel large.
    """
    channels, filters, *kernel = node.weight.shape
    meets = (tuple(kernel), node.padding, node.output_padding) != (node.stride, (0, 0), (0, 0))
    if meets or node.groups > 1 or node.dilation != (1, 1):
        return None
    size = x.shape[2], x.shape[3]
    return Work(
        node=node,
        weight=node.weight.transpose(2, 3, 1, 0).reshape(-1, channels, 1, 1),
        x=x,
        out=out,
        epilogue=epilogue,
        operands=operands,
        shape=ConvShape(images=x.shape[0], size=size, channels=channels, filters=filters),
        padding=ImplicitPadding(size, (0, 0)),
        spread=node.stride,
    )


def rounds_transposed(selector: Selector, node: TransposedConvolution) -> bool:
    """Whether the operands of products will be rounded to bfloat16, wherever tensors lie."""
    x, out = (image_of_shape(tensor.shape) for tensor in (node.inputs[0], node.output))
    bf16 = _bf16(node, x, out, NOTHING, []) if may_round(selector) else None
    return selector.rounds(_efforts(selector, node, 1, out, bf16))


def _efforts(
    selector: Selector,
    node: TransposedConvolution,
    images: int,
    out: View,
    bf16: Work[TransposedConvolution] | None,
) -> dict[str, Effort]:
    """Return what so many images take in each precision."""
    channels, filters, *kernel = node.weight.shape
    rows, columns = (-(-extent // stride) for extent, stride in zip(kernel, node.stride, strict=True))
    shape = ConvShape(
        images=images,
        size=(out.shape[2], out.shape[3]),
        channels=channels // node.groups,
        filters=filters,
        kernel=(rows, columns),
        groups=node.groups,
    )
    efforts = {"f32": replace(cost.plain(selector.machine, shape), weights=4 * node.weight.size)}
    if bf16 is not None:
        every = replace(bf16.shape, images=images, filters=prod(bf16.spread) * bf16.shape.filters)
        efforts[BF16] = cost.bf16(selector.machine, every)
    return efforts


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
