"""Epilogues: operations on a kernel's results before the store, such as activations and residual additions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from itertools import zip_longest

from engine.compiler.emit.bfloat16 import pair_up
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.int8 import WORD_CHANNELS, integers_of, load_steps, real, store_bytes, words
from engine.compiler.emit.pointwise import Leaf, PointwiseExpression, emit, is_long
from engine.compiler.emit.runtime_sizes import Sizes
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.memory.region import IMAGE, Region, pixels
from engine.quantization.tensor_scale import TensorScale


class Broadcast(Enum):
    """How an operand is broadcast over a kernel's results."""

    FULL = "full"
    """One element per result."""
    CHANNEL = "channel"
    """One element per channel, the same for all pixels."""
    PIXEL = "pixel"
    """One element per pixel, the same for all channels."""
    SCALAR = "scalar"
    """One element."""


@dataclass(frozen=True, slots=True)
class EpilogueOperand:
    """Another tensor that an epilogue reads; its channels are contiguous.

    Attributes:
        broadcast: how it is broadcast.
        strides: strides of a FULL or PIXEL operand, elements between images, rows and pixels; of a CHANNEL one, between
            images.
        scale: scale of a FULL operand that holds 8-bit integers, four channels to an element; None for float32.
    """

    broadcast: Broadcast
    strides: tuple[int, ...] = ()
    scale: TensorScale | None = None

    def sized(self, sizes: Sizes) -> "EpilogueOperand":
        """Return the operand with its strides between images and rows as runtime dimensions."""
        return replace(self, strides=(*map(sizes.extent, self.strides[:2]), *self.strides[2:]))


RESULT = Leaf(0)
"""The kernel's own result."""


@dataclass(frozen=True, slots=True)
class Epilogue:
    """An expression over a kernel's result (`Leaf(0)`) and the operands (`Leaf(1)` …)."""

    expression: PointwiseExpression = RESULT
    operands: tuple[EpilogueOperand, ...] = ()

    def sized(self, sizes: Sizes) -> "Epilogue":
        """Return the epilogue with the strides of its operands as runtime dimensions."""
        return replace(self, operands=tuple([operand.sized(sizes) for operand in self.operands]))

    def regions(
        self, images: int, size: tuple[int, int], channels: int, order: tuple[int, ...] = IMAGE
    ) -> tuple[Region, ...]:
        """Return what is read of each operand for results of so many images, rows and pixels, and channels.

        Args:
            images: batch.
            size: rows and pixels of a row.
            channels: channels.
            order: which of a view's axes these are.
        """
        return tuple(_region(operand, images, size, channels, order) for operand in self.operands)


NOTHING = Epilogue()
"""The epilogue that leaves results as they are."""


@dataclass(frozen=True, slots=True)
class Place:
    """Position of a result: image, row, pixel (column) and first channel."""

    image: IRIndex
    row: IRIndex
    pixel: IRIndex
    channel: IRIndex


def _region(
    operand: EpilogueOperand, images: int, size: tuple[int, int], channels: int, order: tuple[int, ...]
) -> Region:
    if operand.broadcast is Broadcast.SCALAR:
        return Region((1,), (1,))
    if operand.broadcast is Broadcast.CHANNEL:
        return Region((images, channels), (operand.strides[0], 1))
    image, row, pixel = operand.strides
    if operand.broadcast is Broadcast.PIXEL:
        return Region((images, *size), (image, row, pixel))
    channels = channels if operand.scale is None else words(channels)
    return pixels(images, size, channels, (image, row, pixel), order=order)


def finish(
    e: Emitter,
    epilogue: Epilogue,
    result: IRValue,
    bases: Sequence[IRValue],
    place: Place,
    count: IRIndex | None = None,
) -> IRValue:
    """Write an epilogue for the result at a place, a vector of `count` channels (all lanes by default)."""
    leaves = [result]
    for operand, base in zip(epilogue.operands, bases, strict=True):
        if operand.broadcast is Broadcast.SCALAR:
            leaves.append(e.load_broadcast(base))
            continue
        offset = [e.mul(place.image, operand.strides[0])]
        if operand.broadcast in (Broadcast.FULL, Broadcast.PIXEL):
            offset += [e.mul(place.row, operand.strides[1]), e.mul(place.pixel, operand.strides[2])]
        if operand.broadcast is Broadcast.PIXEL:
            leaves.append(e.load_broadcast(base, *offset))
        elif operand.scale is None:
            leaves.append(e.load(base, *offset, place.channel, count=count))
        else:
            channel = e.divmod(place.channel, WORD_CHANNELS)[0]
            leaves.append(real(e, load_steps(e, base, *offset, channel, count=count), operand.scale))
    return emit(e, epilogue.expression, leaves)


@contextmanager
def each_kept(e: Emitter, values: Sequence[IRValue], group: int) -> Iterator[tuple[IRValue, list[IRValue]]]:
    """Write a loop over groups of vectors, which are on the stack meanwhile; yields the place of a group, and it."""
    kept = e.local(len(values))
    for place, value in enumerate(values):
        e.store(value, kept, place * e.lanes)
    with e.loop(0, len(values) // group) as loop:
        first = e.mul(loop.index, group * e.lanes)
        yield loop.index, [e.load(kept, first, vector * e.lanes) for vector in range(group)]


@dataclass(frozen=True, slots=True)
class Output:
    """Where a kernel stores the results of an image, and what becomes of them before.

    Attributes:
        base: address of the output.
        strides: elements between images, rows and pixels.
        epilogue: operations on the results.
        operands: addresses of its operands.
        scale: scale of 8-bit integers, four channels to an element; None for others.
        is_bf16: whether results are stored in bfloat16, two channels to an element.
    """

    base: IRValue
    strides: tuple[int, int, int]
    epilogue: Epilogue
    operands: list[IRValue]
    scale: TensorScale | None = None
    is_bf16: bool = False

    def store(self, e: Emitter, results: Sequence[IRValue], place: Place, channels: int) -> None:
        """Write the epilogue of a pixel's results, vectors of `channels` channels from a place on, and their stores."""
        counts = [min(e.lanes, channels - start) for start in range(0, channels, e.lanes)]
        places = [replace(place, channel=e.add(place.channel, v * e.lanes)) for v in range(len(counts))]
        steps = zip((place.image, place.row, place.pixel), self.strides, strict=True)
        offset = [e.mul(index, step) for index, step in steps]
        finished = (
            finish(e, self.epilogue, result, self.operands, here, count)
            for result, here, count in zip(results, places, counts, strict=True)
        )
        if self.is_bf16:
            target = e.address(self.base, *offset, e.divmod(place.channel, 2)[0])
            self._store_pairs(e, list(finished), target, channels // 2)
            return
        for result, here, count in zip(finished, places, counts, strict=True):
            if self.scale is None:
                e.store(result, self.base, *offset, here.channel, count=count)
            else:
                word = e.divmod(here.channel, WORD_CHANNELS)[0]
                store_bytes(e, integers_of(e, result, self.scale), self.base, *offset, word, count=count)

    def store_pixels(self, e: Emitter, results: Sequence[IRValue], place: Place, channels: int) -> None:
        """Write the same for neighbouring pixels from a place on, the vectors of each together.

        Where the epilogue is long, it is written once, in a loop: the kernel compiles in less time.
        """
        vectors = -(-channels // e.lanes)
        if not is_long(self.epilogue.expression):
            for number in range(len(results) // vectors):
                here = replace(place, pixel=e.add(place.pixel, number))
                self.store(e, results[number * vectors : (number + 1) * vectors], here, channels)
            return
        with each_kept(e, results, vectors) as (number, own):
            self.store(e, own, replace(place, pixel=e.add(place.pixel, number)), channels)

    def _store_pairs(self, e: Emitter, results: list[IRValue], target: IRValue, words: int) -> None:
        """Write the stores of so many words of two results."""
        pairs = zip_longest(results[::2], results[1::2], fillvalue=e.splat(0.0))
        for start, both in zip(range(0, words, e.lanes), pairs, strict=True):
            e.store(pair_up(e, *both), target, start, count=min(e.lanes, words - start))
