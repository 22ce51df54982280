"""float32 to 8-bit integers and back, and integers by one scale to those by another, of images.

Arguments: input, output. Integers lie four channels to an element; channels that the last element has besides are 0
steps above the lowest. Of float32 either channels or pixels of a row are contiguous.
"""

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
class ConversionKernel(Kernel):
    """A conversion of one exact shape. Channels of integers, and of the output, are contiguous.

    Attributes:
        images: batch.
        size: rows and pixels of a row.
        channels: channels.
        x_strides: elements between images, channels, rows and pixels of the input.
        out_strides: the same of the output.
        x_scale: scale of the input's integers; None where it is float32.
        out_scale: the same of the output.
        lanes: float32 lanes of a vector.
    """

    images: int
    size: tuple[int, int]
    channels: int
    x_strides: tuple[int, int, int, int]
    out_strides: tuple[int, int, int, int]
    x_scale: TensorScale | None
    out_scale: TensorScale | None
    lanes: int

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order.

        Raises:
            ValueError: integers of a pixel, or channels of the output, are not contiguous.
        """
        return (
            self._region(self.x_strides, self.x_scale, is_written=False),
            self._region(self.out_strides, self.out_scale, is_written=True),
        )

    def _region(
        self, strides: tuple[int, int, int, int], scale: TensorScale | None, *, is_written: bool
    ) -> Region:
        image, channel, row, pixel = strides
        count = self.channels if scale is None else words(self.channels)
        if count > 1 and channel != 1 and (is_written or scale is not None):
            what = "channels" if scale is None else "integers"
            raise ValueError(f"{what} of a pixel lie {channel} elements apart; expected 1")
        return Region((self.images, *self.size, count), (image, row, pixel, channel), is_written, order=IMAGE)

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return -(-self.images * self.size[0] // self._rows)

    @property
    def _rows(self) -> int:
        """Rows of a chunk, counted over all images."""
        return max(1, _CHUNK // (self.size[1] * self.channels))

    def emit(self, e: Emitter) -> None:
        """Write the kernel: a chunk's rows."""
        has_planes = self.x_scale is None and self.x_strides[1] != 1
        with e.chunk_loop(self._rows, self.images * self.size[0]) as loop:
            image, row = e.divmod(loop.index, self.size[0])
            x = e.address(e.argument(0), e.mul(image, self.x_strides[0]), e.mul(row, self.x_strides[2]))
            out = e.address(e.argument(1), e.mul(image, self.out_strides[0]), e.mul(row, self.out_strides[2]))
            if has_planes and (self.channels > 1 or self.x_strides[3] == 1):
                self._emit_planes(e, x, out)
            else:
                self._emit_pixels(e, x, out)

    @property
    def _span(self) -> tuple[int, int]:
        """Pixels of a row and their channels; where words of pixels are contiguous, a row is as good as one pixel."""
        if self.x_scale is None or self.out_scale is None:
            return self.size[1], self.channels
        count = words(self.channels)
        if self.x_strides[3] == self.out_strides[3] == count:
            return 1, WORD_CHANNELS * count * self.size[1]
        return self.size[1], WORD_CHANNELS * count

    def _emit_pixels(self, e: Emitter, x: IRValue, out: IRValue) -> None:
        """Write a row whose channels are contiguous: vectors of the channels of each pixel."""
        pixels, channels = self._span
        with e.loop(0, pixels) as pixel:
            source = e.address(x, e.mul(pixel.index, self.x_strides[3]))
            target = e.address(out, e.mul(pixel.index, self.out_strides[3]))
            for channel, count in e.each_vector(channels):
                self._emit_vector(e, source, target, channel, count)

    def _emit_vector(self, e: Emitter, x: IRValue, out: IRValue, channel: IRIndex, count: int) -> None:
        word = e.divmod(channel, WORD_CHANNELS)[0]
        if self.x_scale is None:
            number = e.load(x, channel, count=count)
        else:
            number = real(e, load_steps(e, x, word, count=count), self.x_scale)
        if self.out_scale is None:
            e.store(number, out, channel, count=count)
        else:
            store_bytes(e, integers_of(e, number, self.out_scale), out, word, count=count)

    def _emit_planes(self, e: Emitter, x: IRValue, out: IRValue) -> None:
        """Write a row of float32 whose pixels are contiguous, vectors of pixels for each four channels."""
        for pixel, count in e.each_vector(self.size[1]):
            self._emit_words(e, x, out, pixel, count)

    def _emit_words(self, e: Emitter, x: IRValue, out: IRValue, pixel: IRIndex, count: int) -> None:
        if self.out_scale is None:
            raise ValueError("float32 is converted to integers only")
        for word in range(words(self.channels)):
            first = word * WORD_CHANNELS
            planes = range(first, min(first + WORD_CHANNELS, self.channels))
            numbers = [
                e.load(x, plane * self.x_strides[1], e.mul(pixel, self.x_strides[3]), count=count)
                for plane in planes
            ]
            joined = joined_bytes(e, [integers_of(e, number, self.out_scale) for number in numbers])
            if self.out_strides[3] == 1:
                e.store(joined, out, pixel, count=count)
            else:
                for lane in range(count):
                    place = e.mul(e.add(pixel, lane), self.out_strides[3])
                    e.store_scalar(e.extract(joined, lane), out, place, word)
