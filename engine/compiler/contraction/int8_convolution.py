"""Direct convolution of 8-bit integers, and with one pixel a row products of matrices.

Arguments as of `DirectConvolution`: input, weights, bias, output, the epilogue's operands, scratch memory. The input
holds four channels to an element, so that the loops are those of float32 over a quarter of the channels. "Bias" holds
three numbers for each filter: what its sum starts with (an integer, that takes the zero point off), the scale of the
sum, and the bias itself. What lies around the input is its zero point.
"""

from dataclasses import dataclass

import numpy as np

from engine.compiler.contraction.convolution import DirectConvolution
from engine.compiler.contraction.epilogue import Place
from engine.compiler.contraction.tile import Products
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.int8 import (
    WORD_CHANNELS,
    Int8Products,
    integers_of,
    store_bytes,
    word_of,
    words,
)
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.memory.alignment import aligned_zeros
from engine.compiler.memory.region import Region, line, pixels
from engine.dtypes import Array
from engine.quantization.tensor_scale import TensorScale


@dataclass(frozen=True, slots=True, kw_only=True)
class Int8Convolution(DirectConvolution):
    """A convolution of 8-bit integers of one exact shape, whose channels are words of four.

    Attributes:
        x_scale: scale of the input.
        out_scale: scale of the output, where that is stored as integers; None where it is float32.
    """

    x_scale: TensorScale
    out_scale: TensorScale | None = None

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in 32-bit words."""
        shape = self.shape
        x_size = shape.padded_size if self.padding is None else self.padding.x_size
        x, _ = shape.regions(x_size, self.strides)
        channels = shape.out_channels if self.out_scale is None else words(shape.out_channels)
        out = pixels(shape.images, shape.size, channels, self.strides.out, is_written=True)
        operands = self.epilogue.regions(shape.images, shape.size, shape.out_channels)
        return x, *map(line, self.packed_sizes), out, *operands

    @property
    def packed_sizes(self) -> tuple[int, int]:
        """Elements of packed weights, and of what belongs to filters."""
        starts = self._starts_count
        return starts * self.shape.taps * self.shape.channels, 3 * starts

    @property
    def layout(self) -> tuple[object, ...]:
        """The layout of packed weights."""
        return (self.shape.groups, self.width, self.x_scale)

    @property
    def _starts_count(self) -> int:
        return self.shape.groups * self.group_blocks * self.width

    def _fill(self, e: Emitter, target: IRValue, start: int, stop: int) -> None:
        e.fill_words(target, start, stop, word_of(self.x_scale.zero_point))

    def _products(self, e: Emitter) -> Products:
        return Int8Products(e)

    def _starts(self, e: Emitter, bias: IRValue, vectors: int) -> list[IRValue]:
        return [e.load_words(bias, v * e.lanes, count=e.lanes) for v in range(vectors)]

    def _results(self, e: Emitter, bias: IRValue, sums: list[IRValue], vectors: int) -> list[IRValue]:
        """Return float32(sum) * factor + bias, each operation rounded, as `Int8Layer` does."""
        count = self._starts_count
        factors = [e.load(bias, count + v * e.lanes) for v in range(vectors)]
        biases = [e.load(bias, 2 * count + v * e.lanes) for v in range(vectors)]
        results = []
        for index, total in enumerate(sums):
            scaled = e.fmul(e.builder.sitofp(total, e.vector_type), factors[index % vectors])
            results.append(e.fadd(scaled, biases[index % vectors]))
        return results

    def _store(self, e: Emitter, result: IRValue, out: IRValue, to: Place, count: int) -> None:
        if self.out_scale is None:
            DirectConvolution._store(self, e, result, out, to, count)
            return
        store_integers(e, result, out, to, self.strides.out, self.out_scale, count)

    def pack(self, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        """Pack integers (filters of all groups, channels of one, rows, columns), and scales and bias of filters.

        Args:
            weight: int8.
            bias: float32 (2, filters): the scale of the sum, and the bias.
        """
        shape, width = self.shape, self.width
        filters = weight.reshape(shape.groups, shape.filters, -1, *shape.kernel)
        packed = np.zeros(
            (shape.groups, self.group_blocks, width, *shape.kernel, shape.channels * WORD_CHANNELS), np.int8
        )
        for block in range(self.group_blocks):
            part = filters[:, block * width : (block + 1) * width]
            packed[:, block, : part.shape[1], ..., : part.shape[2]] = part.transpose(0, 1, 3, 4, 2)
        words_last = packed.reshape(*packed.shape[:-1], shape.channels, WORD_CHANNELS)
        ordered = words_last.transpose(0, 1, 3, 4, 5, 2, 6)
        weights = aligned_zeros((self.packed_sizes[0],))
        weights.view(np.int8)[...] = ordered.reshape(-1)
        starts = filter_numbers(filters, bias, self.x_scale, self.group_blocks * width)
        return weights, starts


def filter_numbers(filters: Array, scales: Array | None, x_scale: TensorScale, count: int) -> Array:
    """Return the constants of filters: initial sums, scales of the sums, and biases.

    Args:
        filters: int8 (groups, filters, channels, rows, columns).
        scales: float32 (2, filters of all groups): the scale of the sum, and the bias.
        x_scale: scale of the input.
        count: filters of a group, with those that fill up its last block.

    Raises:
        ValueError: there are no scales.
    """
    if scales is None:
        raise ValueError("integers without scales; expected the scale of each filter's sum")
    groups, used = filters.shape[:2]
    numbers = aligned_zeros((3, groups, count))
    sums = filters.sum(axis=(2, 3, 4), dtype=np.int64)
    numbers[0].view(np.int32)[:, :used] = -x_scale.zero_point * sums
    numbers[1:, :, :used] = scales.reshape(2, groups, used)
    return numbers.reshape(-1)


def store_integers(
    e: Emitter,
    result: IRValue,
    out: IRValue,
    to: Place,
    strides: tuple[int, int, int],
    scale: TensorScale,
    count: int,
) -> None:
    """Write the quantized store of `count` results at a place."""
    steps = zip((to.image, to.row, to.pixel), strides, strict=True)
    offset: list[IRIndex] = [e.mul(index, step) for index, step in steps]
    channel = e.divmod(to.channel, WORD_CHANNELS)[0]
    store_bytes(e, integers_of(e, result, scale), out, *offset, channel, count=count)
