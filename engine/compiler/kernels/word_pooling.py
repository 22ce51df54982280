"""Maximum pooling of 8-bit integers, four channels to an element, or of bfloat16, two.

Arguments: input, output; elements of both are contiguous along channels. Rows and pixels outside the input are taken
to be the nearest inside, which their window has as well: so they change no maximum.
"""

from dataclasses import dataclass

from engine.compiler.contraction.shapes import ImageStrides
from engine.compiler.emit.bfloat16 import largest_pairs
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.int8 import largest_bytes
from engine.compiler.emit.jit import Kernel
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.memory.region import Region, pixels

_CHUNK = 1 << 14
"""Elements of a chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordPooling(Kernel):
    """A maximum over windows of one exact shape; NaN of bfloat16 goes on.

    Attributes:
        images: batch.
        words: elements of a pixel.
        x_size: rows and pixels of a row of the input.
        size: the same of the output.
        window: rows and pixels.
        stride: rows and pixels.
        padding: rows above and pixels on the left, less than the window has.
        strides: elements between images, rows and pixels of input and output.
        lanes: float32 lanes of a vector.
        is_bf16: whether elements are pairs of bfloat16; else four integers.
    """

    images: int
    words: int
    x_size: tuple[int, int]
    size: tuple[int, int]
    window: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    strides: ImageStrides
    lanes: int
    is_bf16: bool = False

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        return (
            pixels(self.images, self.x_size, self.words, self.strides.x),
            pixels(self.images, self.size, self.words, self.strides.out, is_written=True),
        )

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return -(-self.images * self.size[0] // self._rows)

    @property
    def _rows(self) -> int:
        """Rows of a chunk, counted over all images."""
        return max(1, _CHUNK // (self.size[1] * self.words * self.window[0] * self.window[1]))

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""
        with e.chunk_loop(self._rows, self.images * self.size[0]) as loop:
            image, row = e.divmod(loop.index, self.size[0])
            x = e.address(e.argument(0), e.mul(image, self.strides.x[0]))
            out = e.address(e.argument(1), e.mul(image, self.strides.out[0]), e.mul(row, self.strides.out[1]))
            rows = [e.mul(place, self.strides.x[1]) for place in self._window(e, row, 0)]
            with e.loop(0, self.size[1]) as pixel:
                columns = [e.mul(place, self.strides.x[2]) for place in self._window(e, pixel.index, 1)]
                target = e.address(out, e.mul(pixel.index, self.strides.out[2]))
                self._emit_pixel(e, x, target, [e.add(r, c) for r in rows for c in columns])

    def _window(self, e: Emitter, place: IRIndex, axis: int) -> list[IRIndex]:
        """Return the places of the input under a window, those outside as the nearest inside."""
        first = e.sub(e.mul(place, self.stride[axis]), self.padding[axis])
        last = self.x_size[axis] - 1
        return [
            e.maximum(0, e.minimum(e.add(first, step), last))
            if self._reaches_out(axis)
            else e.add(first, step)
            for step in range(self.window[axis])
        ]

    def _reaches_out(self, axis: int) -> bool:
        end = (self.size[axis] - 1) * self.stride[axis] - self.padding[axis] + self.window[axis]
        return self.padding[axis] > 0 or end > self.x_size[axis]

    def _emit_pixel(self, e: Emitter, x: IRValue, out: IRValue, places: list[IRIndex]) -> None:
        for word, count in e.each_vector(self.words):
            values = [e.load(x, place, word, count=count) for place in places]
            largest = largest_pairs(e, values) if self.is_bf16 else largest_bytes(e, values)
            e.store(largest, out, word, count=count)
