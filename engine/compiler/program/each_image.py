"""Kernels for one image, called once for each image of a batch: how batches of any size share kernels.

A node that is independent along its first axis is selected for the first two images alone. The calls for the others
follow: their arguments lie as far apart as those of these two do.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace

from engine.compiler.graph import (
    AdaptivePool,
    Convolution,
    Dequantize,
    GroupNorm,
    Int8Convolution,
    Node,
    Pool,
    Quantize,
    Requantize,
    Tensor,
    TransposedConvolution,
    Upsample,
)
from engine.compiler.memory.region import check_arguments
from engine.compiler.memory.view import View
from engine.compiler.selection import RULES, KernelCall, Selector
from engine.errors import CompileError

BY_IMAGE = (
    *(Convolution, TransposedConvolution, Pool, AdaptivePool, Upsample, GroupNorm),
    *(Quantize, Requantize, Dequantize, Int8Convolution),
)
"""Nodes whose kernels have no runtime dimensions, and whose images are independent of one another."""
MAX_IMAGES = 64
"""Images of a batch at most: a call of a kernel takes some microseconds, and its objects 3 KiB."""


def runs_by_image(node: Node) -> bool:
    """Whether `calls_by_image` gives the calls of a node in a dynamic-shape program."""
    return isinstance(node, BY_IMAGE) and 1 < node.output.shape[0] <= MAX_IMAGES


def calls_by_image(selector: Selector, node: Node) -> list[KernelCall]:
    """Return the calls of a node, image by image.

    Args:
        selector: options of kernel selection.
        node: a node that `runs_by_image`.

    Raises:
        CompileError: two images need different kernels.
        RegionError: a kernel could touch memory that is no part of its arguments.
    """
    images = node.output.shape[0]
    first, second = (_calls_of(selector, _one_image(node, image)) for image in (0, 1))
    if [call.kernel for call in first] != [call.kernel for call in second]:
        raise CompileError(f"{type(node).__name__}: two images of a batch need different kernels")
    steps = [_steps(one, other) for one, other in zip(first, second, strict=True)]
    for call, step in zip(first, steps, strict=True):  # what fits for the first and the last fits in between
        last = _shifted(call, step, images - 1)
        check_arguments(type(call.kernel).__name__, call.kernel.regions, last.arguments)
    return [
        _shifted(call, step, image)
        for image in range(images)
        for call, step in zip(first, steps, strict=True)
    ]


def _calls_of(selector: Selector, node: Node) -> list[KernelCall]:
    own = replace(selector, calls=[])
    RULES[type(node)](own, node)
    return own.calls


def _one_image(node: Node, image: int) -> Node:
    """Return a node that computes a single image."""
    one = copy.copy(node)
    shape = node.output.shape
    one.inputs = [
        _image_of(tensor, image)
        if place < node.own or (tensor.rank == len(shape) and tensor.shape[0] == shape[0])
        else tensor
        for place, tensor in enumerate(node.inputs)
    ]
    one.outputs = [_image_of(tensor, image) for tensor in node.outputs]
    return one


def _image_of(tensor: Tensor, image: int) -> Tensor:
    return replace(tensor, shape=(1, *tensor.shape[1:]), view=tensor.place.sliced(0, image, 1))


def _steps(first: KernelCall, second: KernelCall) -> list[int]:
    """Return how far apart the arguments of two images lie; constants and temporaries are common to all images."""
    return [
        second_view.offset - view.offset if second_view.buffer is view.buffer else 0
        for view, second_view in zip(first.arguments, second.arguments, strict=True)
    ]


def _shifted(call: KernelCall, steps: Sequence[int], image: int) -> KernelCall:
    views = tuple(
        View(view.buffer, view.offset + image * step, view.shape, view.strides) if step else view
        for view, step in zip(call.arguments, steps, strict=True)
    )
    return KernelCall(call.kernel, views, call.precision)
