"""float32 to 8-bit integers and back, and integers by one scale to those by another, of images.

Arguments: input, output. Integers lie four channels to an element; channels that the last element has besides are 0
steps above the lowest. Of float32 either channels or pixels of a row are contiguous.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.int8 import (
    WORD_CHANNELS,
    integers_of,
    joined_bytes,
    load_steps,
    real,
    store_bytes,
    words,
)
from engine.compiler.emit.jit import Kernel
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.memory.region import IMAGE, Region
from engine.quantization.tensor_scale import TensorScale

_CHUNK = 1 << 15
"""Elements of a chunk: some 10 microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion(Kernel):
    """Base of both directions.

    Attributes:
        images: batch.
        size: rows and pixels of a row.
        channels: channels.
        x_strides: elements between images, channels, rows and pixels of the input.
        out_strides: the same of the output.
        scale: scale of the integers.
        lanes: float32 lanes of a vector.
    """

    images: int
    size: tuple[int, int]
    channels: int
    x_strides: tuple[int, int, int, int]
    out_strides: tuple[int, int, int, int]
    scale: TensorScale
    lanes: int

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return -(-self.images * self.size[0] // self._rows)

    @property
    def _rows(self) -> int:
        """Rows of a chunk, counted over all images."""
        return max(1, _CHUNK // (self.size[1] * self.channels))

    def _region(self, channels: int, strides: tuple[int, int, int, int], is_written: bool) -> Region:
        image, channel, row, pixel = strides
        return Region(
            (self.images, *self.size, channels), (image, row, pixel, channel), is_written, order=IMAGE
        )

    def _int8_region(self, strides: tuple[int, int, int, int], is_written: bool) -> Region:
        """Return what is touched of integers.

        Raises:
            ValueError: those of a pixel are not contiguous.
        """
        count = words(self.channels)
        if count > 1 and strides[1] != 1:
            raise ValueError(f"integers of a pixel lie {strides[1]} elements apart; expected 1")
        return self._region(count, strides, is_written)

    def _each_row(self, e: Emitter) -> Iterator[tuple[IRValue, IRValue]]:
        """Write the loop over a chunk's rows; yields where input and output of one begin."""
        with e.chunk_loop(self._rows, self.images * self.size[0]) as loop:
            image, row = e.divmod(loop.index, self.size[0])
            yield (
                e.address(e.argument(0), e.mul(image, self.x_strides[0]), e.mul(row, self.x_strides[2])),
                e.address(e.argument(1), e.mul(image, self.out_strides[0]), e.mul(row, self.out_strides[2])),
            )

    def _each_vector(self, e: Emitter, pixels: int, channels: int) -> Iterator[tuple[IRIndex, IRIndex, int]]:
        """Write the loops over pixels and vectors of their channels; yields pixel, first channel and count."""
        whole = channels - channels % self.lanes
        with e.loop(0, pixels) as pixel:
            if whole:
                with e.loop(0, whole, self.lanes) as channel:
                    yield pixel.index, channel.index, self.lanes
            if whole < channels:
                yield pixel.index, whole, channels - whole


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeKernel(Conversion):
    """float32 to integers, of one exact shape."""

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        return (
            self._region(self.channels, self.x_strides, False),
            self._int8_region(self.out_strides, True),
        )

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""
        for x, out in self._each_row(e):
            if self.x_strides[1] == 1 or self.channels == 1 != self.x_strides[3]:
                self._emit_pixels(e, x, out)
            else:
                self._emit_planes(e, x, out)

    def _emit_pixels(self, e: Emitter, x: IRValue, out: IRValue) -> None:
        """Write a row whose channels are contiguous."""
        for pixel, channel, count in self._each_vector(e, self.size[1], self.channels):
            number = e.load(x, e.mul(pixel, self.x_strides[3]), channel, count=count)
            place = e.mul(pixel, self.out_strides[3]), e.divmod(channel, WORD_CHANNELS)[0]
            store_bytes(e, integers_of(e, number, self.scale), out, *place, count=count)

    def _emit_planes(self, e: Emitter, x: IRValue, out: IRValue) -> None:
        """Write a row whose pixels are contiguous, vectors of pixels for each four channels."""
        whole = self.size[1] - self.size[1] % self.lanes
        if whole:
            with e.loop(0, whole, self.lanes) as pixel:
                self._emit_words(e, x, out, pixel.index, self.lanes)
        if whole < self.size[1]:
            self._emit_words(e, x, out, whole, self.size[1] - whole)

    def _emit_words(self, e: Emitter, x: IRValue, out: IRValue, pixel: IRIndex, count: int) -> None:
        for word in range(words(self.channels)):
            first = word * WORD_CHANNELS
            planes = range(first, min(first + WORD_CHANNELS, self.channels))
            numbers = [
                e.load(x, plane * self.x_strides[1], e.mul(pixel, self.x_strides[3]), count=count)
                for plane in planes
            ]
            joined = joined_bytes(e, [integers_of(e, number, self.scale) for number in numbers])
            if self.out_strides[3] == 1:
                e.store(joined, out, pixel, count=count)
            else:
                for lane in range(count):
                    place = e.mul(e.add(pixel, lane), self.out_strides[3])
                    e.store_scalar(e.extract(joined, lane), out, place, word)


@dataclass(frozen=True, slots=True, kw_only=True)
class DequantizeKernel(Conversion):
    """Integers to float32, of one exact shape; channels of the output are contiguous."""

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        return (
            self._int8_region(self.x_strides, False),
            self._region(self.channels, self.out_strides, True),
        )

    def emit(self, e: Emitter) -> None:
        """Write the kernel.

        Raises:
            ValueError: channels of the output are not contiguous.
        """
        if self.channels > 1 and self.out_strides[1] != 1:
            raise ValueError(f"channels of the output lie {self.out_strides[1]} elements apart; expected 1")
        for x, out in self._each_row(e):
            for pixel, channel, count in self._each_vector(e, self.size[1], self.channels):
                place = e.mul(pixel, self.x_strides[3]), e.divmod(channel, WORD_CHANNELS)[0]
                number = real(e, load_steps(e, x, *place, count=count), self.scale)
                e.store(number, out, e.mul(pixel, self.out_strides[3]), channel, count=count)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequantizeKernel(Conversion):
    """Integers to those by another scale, of one exact shape; of whole words.

    Attributes:
        x_scale: scale of the input's integers; `scale` is that of the output.
    """

    x_scale: TensorScale

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        return (
            self._int8_region(self.x_strides, False),
            self._int8_region(self.out_strides, True),
        )

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""
        count = words(self.channels)
        # where pixels are contiguous, a row is as good as one pixel of many channels
        is_whole = self.x_strides[3] == self.out_strides[3] == count
        pixels, pixel_words = (1, count * self.size[1]) if is_whole else (self.size[1], count)
        for x, out in self._each_row(e):
            for pixel, channel, used in self._each_vector(e, pixels, WORD_CHANNELS * pixel_words):
                word = e.divmod(channel, WORD_CHANNELS)[0]
                steps = load_steps(e, x, e.mul(pixel, self.x_strides[3]), word, count=used)
                integers = integers_of(e, real(e, steps, self.x_scale), self.scale)
                store_bytes(e, integers, out, e.mul(pixel, self.out_strides[3]), word, count=used)
