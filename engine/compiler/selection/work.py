"""A convolution, or a linear layer as one, in the terms of the kernels that may do it."""

from dataclasses import dataclass, replace
from math import prod
from typing import Generic, TypeVar

from engine.compiler.contraction.epilogue import Epilogue
from engine.compiler.contraction.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.graph import Convolution, Int8Convolution
from engine.compiler.memory.view import View
from engine.compiler.selection.call import Weighted, image_strides
from engine.dtypes import Array

N = TypeVar("N", bound=Weighted)
C = TypeVar("C", Convolution, Int8Convolution)


@dataclass(frozen=True, slots=True)
class Work(Generic[N]):
    """A convolution as its kernels see it.

    Attributes:
        node: the node.
        weight: (filters, channels of a group, rows, columns).
        x: input.
        out: output.
        epilogue: operations on the results.
        operands: operands of the epilogue.
        shape: shape of the convolution.
        padding: what lies around an input that has no padding in memory.
        spread: rows and columns that each pixel becomes.
        is_bf16: whether input and output are of bfloat16, two channels to an element.
    """

    node: N
    weight: Array
    x: View
    out: View
    epilogue: Epilogue
    operands: list[View]
    shape: ConvShape
    padding: ImplicitPadding
    spread: tuple[int, int] = (1, 1)
    is_bf16: tuple[bool, bool] = (False, False)

    @property
    def strides(self) -> ImageStrides:
        """The strides of input and output."""
        return ImageStrides(image_strides(self.x), image_strides(self.out))

    @property
    def is_flat(self) -> bool:
        """Whether all rows of an image can be treated as one, in all that the convolution reads and writes."""
        if (self.shape.kernel, self.shape.stride) != ((1, 1), (1, 1)):
            return False
        operands = (view for view in self.operands if view.shape[2:] == self.out.shape[2:])
        return all(
            view.strides[2] == view.shape[3] * view.strides[3] or view.shape[2] == 1
            for view in (self.x, self.out, *operands)
        )

    @property
    def flat_shape(self) -> ConvShape:
        """Its shape with all rows of an image as one."""
        return replace(self.shape, size=(1, prod(self.shape.size)))


def convolution_work(
    node: C, weight: Array, images: tuple[View, View], epilogue: Epilogue, operands: list[View]
) -> Work[C]:
    """Return a node's convolution of an image into another.

    Args:
        node: the node.
        weight: (filters, channels of a group, rows, columns).
        images: input and output.
        epilogue: operations on the results.
        operands: operands of the epilogue.
    """
    x, out = images
    filters, channels, rows, columns = weight.shape
    shape = ConvShape(
        images=out.shape[0],
        size=(out.shape[2], out.shape[3]),
        channels=channels,
        filters=filters // node.groups,
        kernel=(rows, columns),
        stride=node.stride,
        dilation=node.dilation,
        groups=node.groups,
    )
    padding = ImplicitPadding((x.shape[2], x.shape[3]), (node.padding[0], node.padding[1]))
    return Work(node, weight, x, out, epilogue, operands, shape, padding)
