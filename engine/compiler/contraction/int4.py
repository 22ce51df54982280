"""Weights of 4 bits: a block of filters becomes float32 in scratch memory, and is multiplied as float32 from there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.compiler.contraction.arithmetic import Arithmetic
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.int8 import WORD_CHANNELS, splat
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.memory.alignment import aligned_zeros
from engine.dtypes import Array
from engine.quantization.int4 import GROUP, int4_scales, int4_weights

INT4_CHANNELS = 8
"""Channels of a word of weights, the first in its lowest 4 bits."""
_BITS = 4
_GROUP_WORDS = GROUP // INT4_CHANNELS


@dataclass(frozen=True, slots=True)
class Int4(Arithmetic):
    """Arithmetic of float32 with weights of 4 bits. The numbers of a filter are its bias, and the scales of its groups.

    Attributes:
        channels: channels of the input, a multiple of 32.
    """

    channels: int

    per_word = WORD_CHANNELS
    input_words = INT4_CHANNELS

    @property
    def per_filter(self) -> int:
        """Numbers of a filter."""
        return 1 + self.channels // GROUP

    def elements(self, weight: Array) -> Array:
        """Return pairs of channels as bytes, the first one lower; exact where weights are `rounded_to_int4`."""
        integers, _ = int4_weights(weight[:, :, 0, 0])
        nibbles = (integers & 15).astype(np.uint8)
        return (nibbles[:, 0::2] | nibbles[:, 1::2] << _BITS)[:, :, None, None]

    def numbers(self, filters: Array, bias: Array | None, count: int) -> Array:
        """Return biases, 0 where there are none, and scales."""
        weight = filters[0, :, :, 0, 0]
        numbers = aligned_zeros((self.per_filter, count))
        if bias is not None:
            numbers[0, : len(weight)] = bias
        numbers[1:, : len(weight)] = int4_scales(weight).T
        return numbers

    def unpack(
        self, e: Emitter, weights: IRValue, numbers: IRValue, size: tuple[int, int, int], target: IRValue
    ) -> None:
        """Write the weights of a block as float32, a channel's filters together.

        Args:
            e: the kernel.
            weights: address of the block's words.
            numbers: address of the first number of its filters.
            size: vectors of filters to unpack; filters of a block; and of all blocks.
            target: address of (channels, filters of a block).
        """
        vectors, width, count = size
        with e.loop(0, self.channels // GROUP) as group:
            scales = _scales(e, numbers, group.index, vectors, count)
            with e.loop(0, _GROUP_WORDS) as part:
                word = e.add(e.mul(group.index, _GROUP_WORDS), part.index)
                to = e.address(target, e.mul(word, INT4_CHANNELS * width))
                for channel, reals in _reals(e, e.address(weights, e.mul(word, width)), scales):
                    for vector, real in enumerate(reals):
                        e.store(real, to, channel * width + vector * e.lanes)

    def multiply(
        self,
        e: Emitter,
        x: tuple[IRValue, IRIndex],
        weights: IRValue,
        numbers: IRValue,
        size: tuple[int, int, int],
        starts: Sequence[IRValue],
    ) -> list[IRValue]:
        """Write the reduction of the only tile of a block, whose weights are unpacked in registers.

        Args:
            e: the kernel.
            x: address of the first pixel's first element, and elements between two pixels.
            weights: address of the block's words.
            numbers: address of the first number of its filters.
            size: as for `unpack`.
            starts: what the accumulators start with, a pixel's vectors together.
        """
        vectors, width, count = size
        with e.loop(0, self.channels // GROUP, carry=starts) as group:
            scales = _scales(e, numbers, group.index, vectors, count)
            with e.loop(0, _GROUP_WORDS, carry=group.carried) as part:
                word = e.add(e.mul(group.index, _GROUP_WORDS), part.index)
                here, sums = e.address(x[0], e.mul(word, INT4_CHANNELS)), list(part.carried)
                for channel, reals in _reals(e, e.address(weights, e.mul(word, width)), scales):
                    for place, total in enumerate(sums):
                        pixel, vector = divmod(place, vectors)
                        number = e.load_broadcast(here, e.mul(pixel, x[1]), channel)
                        sums[place] = e.fma(number, reals[vector], total)
                part.following = sums
            group.following = part.results
        return list(group.results)


def _scales(e: Emitter, numbers: IRValue, group: IRIndex, vectors: int, count: int) -> list[IRValue]:
    """Load the scales of a group of channels, for vectors of filters."""
    first = e.address(numbers, e.mul(e.add(group, 1), count))
    return [e.load(first, vector * e.lanes) for vector in range(vectors)]


def _reals(e: Emitter, weights: IRValue, scales: list[IRValue]) -> Iterator[tuple[int, list[IRValue]]]:
    """Unpack a word of each filter; yields channels and their weights as float32."""
    words = [e.load_words(weights, vector * e.lanes, count=e.lanes) for vector in range(len(scales))]
    for channel in range(INT4_CHANNELS):
        yield (
            channel,
            [e.fmul(_integers(e, word, channel), scale) for word, scale in zip(words, scales, strict=True)],
        )


def _integers(e: Emitter, words: IRValue, channel: int) -> IRValue:
    """Return the integers of one channel of words, as float32."""
    top = e.builder.shl(words, splat(e, _BITS * (INT4_CHANNELS - 1 - channel)))
    return e.builder.sitofp(e.builder.ashr(top, splat(e, 32 - _BITS)), e.vector_type)
