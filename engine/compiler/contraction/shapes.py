"""Shapes that several kernels have in common: of convolutions, and of products of matrices."""

from dataclasses import dataclass, replace
from math import prod

from engine.compiler.contraction.epilogue import Epilogue
from engine.compiler.emit.int8 import words
from engine.compiler.emit.runtime_sizes import Sizes
from engine.compiler.memory.region import MATRIX, Region, pixels, windows


@dataclass(frozen=True, slots=True)
class ImageStrides:
    """Strides of channels-last images: elements between images, rows and pixels.

    Attributes:
        x: strides of the input.
        out: strides of the output.
    """

    x: tuple[int, int, int]
    out: tuple[int, int, int]

    def sized(self, sizes: Sizes) -> "ImageStrides":
        """Return the strides with those between images and rows as runtime dimensions."""
        x, out = ((sizes.extent(image), sizes.extent(row), pixel) for image, row, pixel in (self.x, self.out))
        return ImageStrides(x, out)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvShape:
    """Shape of a convolution of images, or of a product of matrices: an image of one row and a window of one pixel.

    Attributes:
        images: batch.
        size: rows and columns of the output.
        channels: input channels of one group.
        filters: output channels of one group.
        kernel: rows and columns of a window.
        stride: rows and columns between two windows.
        dilation: rows and columns between two elements of a window.
        groups: groups of channels, each with filters of its own.
    """

    images: int
    size: tuple[int, int]
    channels: int
    filters: int
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    def sized(self, sizes: Sizes) -> "ConvShape":
        """Return the shape with the number of images and their size as runtime dimensions."""
        size = (sizes.extent(self.size[0]), sizes.extent(self.size[1]))
        return replace(self, images=sizes.extent(self.images), size=size)

    @property
    def in_channels(self) -> int:
        """Channels of the input, of all groups."""
        return self.channels * self.groups

    @property
    def out_channels(self) -> int:
        """Channels of the output, of all groups."""
        return self.filters * self.groups

    def in_words(self, per_word: int) -> "ConvShape":
        """Return the same with its channels counted in words of so many."""
        return replace(self, channels=-(-self.channels // per_word))

    @property
    def pixels(self) -> int:
        """Pixels of the output, of all images."""
        return self.images * self.size[0] * self.size[1]

    @property
    def taps(self) -> int:
        """Elements of a window in one channel."""
        return prod(self.kernel)

    @property
    def padded_size(self) -> tuple[int, int]:
        """Rows and columns of the input that windows reach over, padding included."""
        return self.rows_under(self.size[0]), windows(
            self.size[1], self.kernel[1], self.stride[1], self.dilation[1]
        )

    def rows_under(self, rows: int) -> int:
        """Return how many rows of the input the windows of so many rows of the output reach over."""
        return windows(rows, self.kernel[0], self.stride[0], self.dilation[0])

    def regions(
        self,
        x_size: tuple[int, int],
        strides: ImageStrides,
        *,
        has_int8_input: bool = False,
        has_int8_results: bool = False,
    ) -> tuple[Region, Region]:
        """Return what is touched of input and output.

        Args:
            x_size: rows and columns of the input that are in memory.
            strides: of both.
            has_int8_input: whether the input holds 8-bit integers, four channels to an element, that are counted here.
            has_int8_results: whether the output holds such.
        """
        read = words(self.in_channels) if has_int8_input else self.in_channels
        written = words(self.out_channels) if has_int8_results else self.out_channels
        return (
            pixels(self.images, x_size, read, strides.x),
            pixels(self.images, self.size, written, strides.out, is_written=True),
        )


@dataclass(frozen=True, slots=True)
class ImplicitPadding:
    """Zeros around an input that are not in memory.

    Attributes:
        x_size: rows and columns of the input, as it is in memory.
        before: rows above and columns on the left that count as zeros; those below and on the right follow from the
            size of the output.
    """

    x_size: tuple[int, int]
    before: tuple[int, int]

    def sized(self, sizes: Sizes) -> "ImplicitPadding":
        """Return the padding with the size of the input as runtime dimensions."""
        return replace(self, x_size=(sizes.extent(self.x_size[0]), sizes.extent(self.x_size[1])))


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixShape:
    """Shape of a batch of products of matrices, (rows x depth) by (depth x columns).

    Attributes:
        batch: products, over two axes.
        rows: rows of the left matrix and the result.
        depth: columns of the left matrix, rows of the right one.
        columns: columns of the right matrix and the result.
    """

    batch: tuple[int, int]
    rows: int
    depth: int
    columns: int

    @property
    def products(self) -> int:
        """Products of the batch."""
        return self.batch[0] * self.batch[1]

    def regions(
        self,
        a_strides: tuple[int, int, int, int],
        b_strides: tuple[int, int, int, int],
        out_strides: tuple[int, int, int],
        epilogue: Epilogue,
    ) -> tuple[Region, ...]:
        """Return what a kernel touches of both matrices, the result and the epilogue's operands.

        Args:
            a_strides: elements between the left matrix's batches (two axes), rows and columns.
            b_strides: the same of the right one.
            out_strides: elements between the result's batches (two axes) and rows.
            epilogue: operations on the result.
        """
        a = Region((*self.batch, self.rows, self.depth), a_strides, order=MATRIX)
        b = Region((*self.batch, self.depth, self.columns), b_strides, order=MATRIX)
        size = self.batch[1], self.rows
        out = pixels(self.batch[0], size, self.columns, out_strides, is_written=True, order=MATRIX)
        return a, b, out, *epilogue.regions(self.batch[0], size, self.columns, MATRIX)
