"""Convolution of operands rounded to bfloat16, with float32 sums; with one pixel a row it is a linear layer.

Arguments: input, weights, bias, output, the epilogue's operands, scratch. Channels of input and output lie side by
side. Each chunk stages its input in scratch memory (`bf16_staging.py`), multiplies groups of its pixels by blocks of
filters (`bf16_product.py`), and takes the sums through the epilogue. `bf16_layout.py` defines the memory layout.
"""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from engine.compiler.contraction.bf16_layout import Bf16Layout
from engine.compiler.contraction.bf16_loops import Bf16Chunk, Bf16Loops, whole_lines
from engine.compiler.contraction.bf16_staging import Bf16Staging
from engine.compiler.contraction.epilogue import NOTHING, Epilogue
from engine.compiler.contraction.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.emit.emitter import Emitter
from engine.compiler.memory.alignment import aligned
from engine.compiler.memory.region import Region, line, pixels
from engine.dtypes import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Bf16Convolution:
    """A convolution of one exact shape, without groups.

    Attributes:
        shape: shape of the convolution.
        strides: elements between images, rows and pixels of input and output.
        padding: zeros around the input.
        rows: rows of output of a chunk, all of one image.
        blocks: blocks of filters of a chunk.
        has_tiles: whether products are made in matrix registers; else in vectors.
        group: numbers of pixels, and of vectors of filters: registers of a product.
        lanes: float32 lanes of a vector.
        epilogue: operations on the results.
        prefetches_weights: whether the next block's weights are prefetched while one block is multiplied.
        channel_step: elements between channels of the input; where these are not contiguous, pixels do.
        spread: rows and columns that each pixel becomes, each by filters of its own, as in a transposed convolution
            whose windows do not meet; `strides` are those of the whole output.
        is_bf16: whether input and output are of bfloat16, two channels to an element.
    """

    shape: ConvShape
    strides: ImageStrides
    padding: ImplicitPadding
    rows: int
    blocks: int
    has_tiles: bool
    group: tuple[int, int]
    lanes: int
    epilogue: Epilogue = NOTHING
    prefetches_weights: bool = False
    channel_step: int = 1
    spread: tuple[int, int] = (1, 1)
    is_bf16: tuple[bool, bool] = (False, False)

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments."""
        shape, (rows, columns) = self.shape, self.shape.size
        size = rows * self.spread[0], columns * self.spread[1]
        channels, filters = (
            count // 2 if in_pairs else count
            for count, in_pairs in zip((shape.channels, shape.filters), self.is_bf16, strict=True)
        )
        x = pixels(shape.images, self.padding.x_size, channels, self.strides.x)
        x = replace(x, strides=(*self.strides.x, self.channel_step))
        out = pixels(shape.images, size, filters, self.strides.out, is_written=True)
        operands = self.epilogue.regions(shape.images, size, shape.filters)
        return x, *map(line, self.packed_sizes), out, *operands

    @property
    def loops(self) -> Bf16Loops:
        """The loops of a chunk."""
        return Bf16Loops(
            shape=self.shape,
            rows=self.rows,
            has_tiles=self.has_tiles,
            group=self.group,
            lanes=self.lanes,
            out_strides=self.strides.out,
            epilogue=self.epilogue,
            prefetches_weights=self.prefetches_weights,
            spread=self.spread,
            stores_bf16=self.is_bf16[1],
        )

    @property
    def staged(self) -> Bf16Layout:
        """How staged input and packed weights lie."""
        return self.loops.staged

    @property
    def packed_sizes(self) -> tuple[int, int]:
        """Words of packed weights, and of the bias."""
        weights, starts = self.staged.packed_sizes
        return weights * prod(self.spread), starts * prod(self.spread)

    @property
    def layout(self) -> tuple[object, ...]:
        """The layout of packed weights."""
        return (self.staged.runs, self.staged.width, self.spread)

    def pack(self, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        """Pack weights (filters, channels, rows, columns) and bias; absent filters are 0.

        Where pixels spread, the filters of the first place in a window come first, those of the next after them.
        """
        parts = [self.staged.pack(part, bias) for part in np.split(weight, prod(self.spread))]
        if len(parts) == 1:
            return parts[0]
        return aligned(np.concatenate([w for w, _ in parts])), aligned(np.concatenate([b for _, b in parts]))

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
        count = len(self.epilogue.operands)
        x, weights, bias, out, *operands, scratch = (e.argument(place) for place in range(5 + count))
        blocks, image, row_part = e.unravel(e.chunk, self._parts)
        sums = e.address(scratch, e.mul(e.thread, self.scratch))
        target = e.address(sums, self.loops.sum_words)
        first_row = e.mul(row_part, self.rows)
        rows = e.minimum(e.sub(self.shape.size[0], first_row), self.rows)
        staging = Bf16Staging(self.staged, self.padding, self.strides.x, self.channel_step, self.is_bf16[0])
        source = e.address(x, e.mul(image, self.strides.x[0]))
        staging.emit(e, source, first_row, target, self.loops.staged_words)
        chunk = Bf16Chunk(
            weights=weights,
            bias=bias,
            out=out,
            operands=operands,
            sums=sums,
            staged=target,
            image=image,
            first_row=first_row,
            rows=rows,
        )
        first = e.mul(blocks, self.blocks)
        self.loops.emit(e, chunk, first, e.minimum(e.add(first, self.blocks), self.loops.blocks))
