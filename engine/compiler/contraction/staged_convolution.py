"""Convolution of a staged input, in bfloat16 or 8-bit integers; with one pixel a row it is a linear layer.

Arguments: input, weights, numbers of filters, output, the epilogue's operands, scratch. Channels of input and output
lie side by side. Each chunk stages its input in scratch memory (`staging.py`), multiplies groups of its pixels by
blocks of filters (`block_product.py`), and takes the sums through the epilogue. `staged_layout.py` defines the memory
layout, and `packing` that of the weights.
"""

from dataclasses import dataclass, replace
from math import prod

from engine.compiler.contraction.arithmetic import BF16, Arithmetic, FilterPacking
from engine.compiler.contraction.epilogue import NOTHING, Epilogue, Output
from engine.compiler.contraction.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.contraction.staged_layout import StagedLayout
from engine.compiler.contraction.staged_loops import StagedChunk, StagedLoops, whole_lines
from engine.compiler.contraction.staging import Staging
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.int8 import words
from engine.compiler.memory.region import Region, line, pixels
from engine.quantization.tensor_scale import TensorScale


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedConvolution:
    """A convolution of one exact shape, without groups.

    Attributes:
        shape: shape of the convolution.
        strides: elements between images, rows and pixels of input and output.
        padding: what lies around the input.
        rows: rows of output of a chunk, all of one image.
        blocks: blocks of filters of a chunk.
        has_tiles: whether products are made in matrix registers; else in vectors.
        group: numbers of pixels, and of vectors of filters: registers of a product.
        lanes: float32 lanes of a vector.
        arithmetic: arithmetic of the products.
        epilogue: operations on the results.
        prefetches_weights: whether the next block's weights are prefetched while one block is multiplied.
        channel_step: elements between channels of the input; where these are not contiguous, pixels do.
        spread: rows and columns that each pixel becomes, each by filters of its own, as in a transposed convolution
            whose windows do not meet; `strides` are those of the whole output.
        rounds: whether the input is float32, and rounded to bfloat16; else it is of words.
        stores_bf16: whether results are stored in bfloat16, two channels to an element.
        out_scale: scale of the output, where that is stored as 8-bit integers; None where it is not.
    """

    shape: ConvShape
    strides: ImageStrides
    padding: ImplicitPadding
    rows: int
    blocks: int
    has_tiles: bool
    group: tuple[int, int]
    lanes: int
    arithmetic: Arithmetic = BF16
    epilogue: Epilogue = NOTHING
    prefetches_weights: bool = False
    channel_step: int = 1
    spread: tuple[int, int] = (1, 1)
    rounds: bool = False
    stores_bf16: bool = False
    out_scale: TensorScale | None = None

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments."""
        shape, (rows, columns) = self.shape, self.shape.size
        size = rows * self.spread[0], columns * self.spread[1]
        x = pixels(shape.images, self.padding.x_size, self._channels, self.strides.x)
        x = replace(x, strides=(*self.strides.x, self.channel_step))
        filters = shape.filters // 2 if self.stores_bf16 else shape.filters
        filters = filters if self.out_scale is None else words(filters)
        out = pixels(shape.images, size, filters, self.strides.out, is_written=True)
        operands = self.epilogue.regions(shape.images, size, shape.filters)
        return x, *map(line, self.packing.packed_sizes), out, *operands

    @property
    def _channels(self) -> int:
        """Elements of a pixel of the input."""
        return self.shape.channels if self.rounds else self.shape.in_words(self.arithmetic.per_word).channels

    @property
    def loops(self) -> StagedLoops:
        """The loops of a chunk."""
        return StagedLoops(
            shape=self.shape.in_words(self.arithmetic.per_word),
            rows=self.rows,
            has_tiles=self.has_tiles,
            group=self.group,
            lanes=self.lanes,
            arithmetic=self.arithmetic,
            prefetches_weights=self.prefetches_weights,
            spread=self.spread,
        )

    @property
    def staged(self) -> StagedLayout:
        """How staged input and packed weights lie."""
        return self.loops.staged

    @property
    def packing(self) -> FilterPacking:
        """How weights are packed: where pixels spread, each place in a window has a group of filters of its own."""
        return FilterPacking(
            arithmetic=self.arithmetic,
            groups=prod(self.spread),
            filters=self.shape.filters,
            words=self.staged.runs.pixel_words,
            kernel=self.shape.kernel,
            width=self.staged.width,
        )

    @property
    def _parts(self) -> tuple[int, int, int]:
        """Parts that blocks, images and rows are split into."""
        return (
            -(-self.loops.blocks // self.blocks),
            self.shape.images,
            -(-self.shape.size[0] // self.rows),
        )

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        blocks, images, rows = self._parts
        return blocks * images * rows

    @property
    def scratch(self) -> int:
        """Words of the sums of a group of tiles and of the staged input, whole cache lines of each."""
        return self.loops.sum_words + whole_lines(self.loops.staged_words)

    def emit(self, e: Emitter) -> None:
        """Write the kernel: the staging, and the loops over a chunk's blocks of filters and pixels."""
        count, loops = len(self.epilogue.operands), self.loops
        x, weights, numbers, out, *operands, scratch = (e.argument(place) for place in range(5 + count))
        blocks, image, row_part = e.unravel(e.chunk, self._parts)
        sums = e.address(scratch, e.mul(e.thread, self.scratch))
        target = e.address(sums, loops.sum_words)
        first_row = e.mul(row_part, self.rows)
        rows = e.minimum(e.sub(self.shape.size[0], first_row), self.rows)
        source = e.address(x, e.mul(image, self.strides.x[0]))
        top = e.sub(e.mul(first_row, self.shape.stride[0]), self.padding.before[0])
        self._staging.emit(e, source, top, target, loops.staged_words)
        chunk = StagedChunk(
            weights=weights,
            numbers=numbers,
            output=Output(
                out, self.strides.out, self.epilogue, operands, self.out_scale, is_bf16=self.stores_bf16
            ),
            sums=sums,
            staged=target,
            image=image,
            first_row=first_row,
            rows=rows,
        )
        first = e.mul(blocks, self.blocks)
        loops.emit(e, chunk, first, e.minimum(e.add(first, self.blocks), loops.blocks))

    @property
    def _staging(self) -> Staging:
        """How the input is staged."""
        return Staging(
            arithmetic=self.arithmetic,
            padding=self.padding,
            strides=self.strides.x,
            channels=self._channels,
            rows=self.staged.plane_rows,
            columns=self.staged.columns,
            words=self.staged.runs.pixel_words,
            row_stride=self.shape.stride[0],
            rounds=self.rounds,
            channel_step=self.channel_step,
        )
