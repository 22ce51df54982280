"""What differs between precisions: products, what sums start with and become, and how weights are packed.

A *word* has 32 bits: one float32, two bfloat16 or four 8-bit integers, those of neighbouring channels. Kernels count
channels in words, so that the loops of all precisions are the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.compiler.emit.bfloat16 import dot
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.int8 import WORD_CHANNELS, add_products, broadcast_word, load_weights, word_of
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.memory.alignment import aligned_zeros
from engine.dtypes import Array
from engine.kernels.bfloat16 import bfloat16_bits
from engine.pnnx.mapped_pages import release_pages
from engine.quantization.tensor_scale import TensorScale


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Arithmetic of a kernel's products: that of float32, of which others override what differs.

    Beside weights a kernel reads *numbers* of filters: here the bias, which sums start with.
    """

    per_word = 1
    """Elements of a word of weights."""
    input_words = 1
    """Words of the input that a word of weights is multiplied with."""
    tile_product = ""
    """The intrinsic that multiplies matrix registers; empty where there is none."""

    @property
    def per_filter(self) -> int:
        """Numbers of a filter."""
        return 1

    def weight(self, e: Emitter, base: IRValue, offset: int) -> Any:
        """Load a vector of words of weights, in the form that `add` takes it in."""
        return e.load(base, offset)

    def number(self, e: Emitter, base: IRValue, offset: IRIndex) -> Any:
        """Load a word of the input into all lanes, in the form that `add` takes it in."""
        return e.load_broadcast(base, offset)

    def add(self, e: Emitter, number: Any, weight: Any, total: IRValue) -> IRValue:
        """Return a vector of sums with the products of a word of the input and words of weights added."""
        return e.fma(number, weight, total)

    def load_sums(self, e: Emitter, base: IRValue, vectors: int) -> list[IRValue]:
        """Load vectors of sums: where the numbers of filters begin, what their sums start with."""
        return [e.load(base, vector * e.lanes) for vector in range(vectors)]

    def results(
        self, e: Emitter, sums: list[IRValue], numbers: IRValue, size: tuple[int, int]
    ) -> list[IRValue]:
        """Return the float32 results of the sums of vectors of filters.

        Args:
            e: the kernel.
            sums: the sums, a pixel's vectors together.
            numbers: address of the first number of the filters.
            size: vectors of a pixel, and filters of all blocks, the elements between two numbers of a filter.
        """
        del e, numbers, size
        return sums

    def fill(self, e: Emitter, target: IRValue, start: int, stop: int) -> None:
        """Write what lies around an input, zeros here, into the words from `start` up to `stop`."""
        e.fill(target, start, stop)

    def elements(self, weight: Array) -> Array:
        """Return weights in the type that they are multiplied in."""
        return weight

    def numbers(self, filters: Array, bias: Array | None, count: int) -> Array:
        """Return the numbers of filters: the biases, 0 where there are none.

        Args:
            filters: weights (groups, filters, channels, rows, columns).
            bias: what the node has for each filter, of all groups or the same for each; None for nothing.
            count: filters of a group, with those that fill up its last block.
        """
        groups, used = filters.shape[:2]
        starts = aligned_zeros((groups, count))
        if bias is not None:
            starts[:, :used] = bias.reshape(-1, used)
        return starts


FLOAT32 = Arithmetic()


@dataclass(frozen=True, slots=True)
class Bf16(Arithmetic):
    """Arithmetic of operands rounded to bfloat16, with sums in float32."""

    per_word = 2
    tile_product = "llvm.x86.tdpbf16ps"

    def add(self, e: Emitter, number: IRValue, weight: IRValue, total: IRValue) -> IRValue:
        """Return sums with the products of pairs added."""
        return dot(e, number, weight, total)

    def elements(self, weight: Array) -> Array:
        """Return the bits of the weights in bfloat16."""
        return bfloat16_bits(weight)


BF16 = Bf16()


@dataclass(frozen=True, slots=True)
class Int8(Arithmetic):
    """Arithmetic of 8-bit integers, with exact sums in 32 bits.

    The numbers of a filter are what its sum starts with (an integer, that takes the zero point off), the scale of the
    sum, and the bias. What lies around an input is its zero point.

    Attributes:
        x_scale: scale of the input.
    """

    x_scale: TensorScale

    per_word = WORD_CHANNELS
    tile_product = "llvm.x86.tdpbusd"

    @property
    def per_filter(self) -> int:
        """The initial sum, the scale and the bias."""
        return 3

    def weight(self, e: Emitter, base: IRValue, offset: int) -> Sequence[IRValue]:
        """Load a vector of words of weights."""
        return load_weights(e, base, offset)

    def number(self, e: Emitter, base: IRValue, offset: IRIndex) -> Sequence[IRValue]:
        """Load a word of the input into all lanes."""
        return broadcast_word(e, base, offset)

    def add(
        self, e: Emitter, number: Sequence[IRValue], weight: Sequence[IRValue], total: IRValue
    ) -> IRValue:
        """Return sums with the products of words added."""
        return add_products(e, number, weight, total)

    def load_sums(self, e: Emitter, base: IRValue, vectors: int) -> list[IRValue]:
        """Load vectors of 32-bit integers."""
        return [e.load_words(base, vector * e.lanes, count=e.lanes) for vector in range(vectors)]

    def results(
        self, e: Emitter, sums: list[IRValue], numbers: IRValue, size: tuple[int, int]
    ) -> list[IRValue]:
        """Return float32(sum) * factor + bias, each operation rounded, as `Int8Layer` does."""
        vectors, count = size
        factors, biases = (
            [e.load(numbers, part * count + vector * e.lanes) for vector in range(vectors)] for part in (1, 2)
        )
        results = []
        for index, total in enumerate(sums):
            scaled = e.fmul(e.builder.sitofp(total, e.vector_type), factors[index % vectors])
            results.append(e.fadd(scaled, biases[index % vectors]))
        return results

    def fill(self, e: Emitter, target: IRValue, start: int, stop: int) -> None:
        """Write zero points."""
        e.fill_words(target, start, stop, word_of(self.x_scale.zero_point))

    def numbers(self, filters: Array, bias: Array | None, count: int) -> Array:
        """Return initial sums, scales of the sums, and biases.

        Args:
            filters: int8 (groups, filters, channels, rows, columns).
            bias: float32 (2, filters of all groups): the scale of the sum, and the bias.
            count: filters of a group, with those that fill up its last block.

        Raises:
            ValueError: there are no scales.
        """
        if bias is None:
            raise ValueError("integers without scales; expected the scale of each filter's sum")
        groups, used = filters.shape[:2]
        numbers = aligned_zeros((3, groups, count))
        sums = filters.sum(axis=(2, 3, 4), dtype=np.int64)
        numbers[0].view(np.int32)[:, :used] = -self.x_scale.zero_point * sums
        numbers[1:, :, :used] = bias.reshape(2, groups, used)
        return numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterPacking:
    """Weights of a convolution as kernels read them.

    They lie as [group][block of filters][row][column][word of channels][filter of the block].

    Attributes:
        arithmetic: what the weights become.
        groups: groups of channels, each with filters of its own.
        filters: filters of a group.
        words: words of a group's channels, with those that are only filled up.
        kernel: rows and columns of a window.
        width: filters of a block.
    """

    arithmetic: Arithmetic
    groups: int
    filters: int
    words: int
    kernel: tuple[int, int]
    width: int

    @property
    def layout(self) -> tuple[object, ...]:
        """The weight layout: of equal layout, the same weights are packed alike."""
        return self.arithmetic, self.groups, self.words, self.width

    @property
    def blocks(self) -> int:
        """Blocks of filters of a group, the last one perhaps not full."""
        return -(-self.filters // self.width)

    @property
    def count(self) -> int:
        """Filters of all blocks."""
        return self.groups * self.blocks * self.width

    @property
    def block_words(self) -> int:
        """Words of the weights of a block."""
        return self.kernel[0] * self.kernel[1] * self.words * self.width

    @property
    def packed_sizes(self) -> tuple[int, int]:
        """Words of weights, and of the numbers of filters."""
        return self.groups * self.blocks * self.block_words, self.arithmetic.per_filter * self.count

    def pack(self, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        """Pack weights (filters of all groups, channels of one, rows, columns) and what there is for each filter.

        Absent filters and channels are 0.
        """
        filters = weight.reshape(self.groups, self.filters, -1, *self.kernel)
        packed = aligned_zeros((self.groups, self.blocks, *self.kernel, self.words, self.width))
        for group, block in np.ndindex(self.groups, self.blocks):
            part = self.arithmetic.elements(filters[group, block * self.width : (block + 1) * self.width])
            target = packed[group, block, ..., None].view(part.dtype)
            whole, rest = divmod(part.shape[1], self.arithmetic.per_word)
            for place in range(self.arithmetic.per_word):
                last = whole + (place < rest)
                channels = part[:, place :: self.arithmetic.per_word].transpose(2, 3, 1, 0)
                target[:, :, :last, : len(part), place] = channels
            release_pages(weight)
        return packed, self.arithmetic.numbers(filters, bias, self.blocks * self.width).reshape(-1)
