"""Copies the input of a convolution's chunk into scratch memory, with its padding around it."""

from dataclasses import dataclass

from engine.compiler.contraction.arithmetic import Arithmetic
from engine.compiler.contraction.shapes import ImplicitPadding
from engine.compiler.emit.bfloat16 import pair_lanes, pair_up
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRIndex, IRValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """The staging of a chunk's input.

    Attributes:
        arithmetic: arithmetic of the convolution.
        padding: what lies around the input.
        strides: elements between images, rows and pixels of the input.
        channels: elements of a pixel of the input: words, or float32 where it is rounded.
        rows: staged rows of each remainder modulo `row_stride`.
        columns: pixels of a staged row.
        words: words of a staged pixel.
        row_stride: rows of one remainder modulo this lie together, those of the next behind them.
        rounds: whether float32 is rounded to bfloat16 on the way.
        channel_step: elements between channels; where these are not contiguous, pixels are, and the input is rounded.
    """

    arithmetic: Arithmetic
    padding: ImplicitPadding
    strides: tuple[int, int, int]
    channels: int
    rows: int
    columns: int
    words: int
    row_stride: int = 1
    rounds: bool = False
    channel_step: int = 1

    @property
    def row_words(self) -> int:
        """Words of a staged row."""
        return self.columns * self.words

    def emit(self, e: Emitter, image: IRValue, top: IRIndex, target: IRValue, words: int) -> None:
        """Write the copy.

        Args:
            e: the kernel.
            image: address of the image.
            top: its first row to be staged, counted without padding.
            target: address of the scratch memory.
            words: words of it that are read, those behind the rows among them.
        """
        with e.loop(0, self.row_stride * self.rows) as loop:
            row = e.add(top, loop.index)
            index, plane = e.divmod(loop.index, self.row_stride)
            there = e.address(target, e.mul(e.add(e.mul(plane, self.rows), index), self.row_words))
            inside = e.both(e.compare(">=", row, 0), e.compare("<", row, self.padding.x_size[0]))
            with e.when(inside):
                self._stage_row(e, e.address(image, e.mul(row, self.strides[1])), there)
            with e.when(e.negated(inside)):
                self.arithmetic.fill(e, there, 0, self.row_words)
        self.arithmetic.fill(e, target, self.row_stride * self.rows * self.row_words, words)

    def _stage_row(self, e: Emitter, source: IRValue, target: IRValue) -> None:
        """Write the copy of one row of input."""
        # where the stride leaves pixels out, a row may end before its padding does
        left = min(self.padding.before[1], self.columns)
        there = min(self.padding.x_size[1], self.columns - left)
        inner = e.address(target, left * self.words)
        self.arithmetic.fill(e, target, 0, left * self.words)
        if self.channel_step != 1:
            self._stage_planes(e, source, inner, there)
        elif self.rounds:
            self._round_pixels(e, source, inner, there)
        else:
            self._copy_pixels(e, source, inner, there)
        self.arithmetic.fill(e, target, (left + there) * self.words, self.row_words)

    def _round_pixels(self, e: Emitter, source: IRValue, target: IRValue, pixels: int) -> None:
        """Write the copy of some pixels of float32."""
        if self.strides[2] == self.channels == 2 * self.words:
            _round(e, source, target, pixels * self.channels, pixels * self.words)
            return
        with e.loop(0, pixels) as pixel:
            to = e.address(target, e.mul(pixel.index, self.words))
            _round(e, e.address(source, e.mul(pixel.index, self.strides[2])), to, self.channels, self.words)

    def _copy_pixels(self, e: Emitter, source: IRValue, target: IRValue, pixels: int) -> None:
        """Write the copy of some pixels of words."""
        if self.strides[2] == self.channels == self.words:
            e.copy(source, target, pixels * self.words)
            return
        with e.loop(0, pixels) as pixel:
            to = e.address(target, e.mul(pixel.index, self.words))
            e.copy(e.address(source, e.mul(pixel.index, self.strides[2])), to, self.channels)
            self.arithmetic.fill(e, to, self.channels, self.words)

    def _stage_planes(self, e: Emitter, source: IRValue, target: IRValue, pixels: int) -> None:
        """Write the copy of a row whose channels lie apart: as many pixels at once as a vector has lanes."""
        for pixel, count in e.each_vector(pixels):
            to = e.address(target, e.mul(pixel, self.words))
            self._stage_pixels(e, e.address(source, pixel), to, count)

    def _stage_pixels(self, e: Emitter, source: IRValue, target: IRValue, count: int) -> None:
        """Write the copy of some pixels: the vectors of pairs of each channel, transposed to channels last."""
        channels, words = self.channels, self.words
        planes = [e.load(source, channel * self.channel_step, count=count) for channel in range(channels)]
        planes += [e.splat(0.0)] * (2 * words - channels)
        pairs = [pair_lanes(e, planes[2 * word], planes[2 * word + 1]) for word in range(words)]
        for place, vector in enumerate(e.transpose(pairs)):
            valid = min(e.lanes, count * words - place * e.lanes)
            if valid > 0:
                e.store(vector, target, place * e.lanes, count=valid)


def can_stage_planes(words: int) -> bool:
    """Whether planar inputs can be staged as pixels of so many words: a transposition has as many vectors."""
    return words in (1, 2, 4)


def _round(e: Emitter, source: IRValue, target: IRValue, count: int, words: int) -> None:
    """Write the copy of `count` numbers side by side as pairs, and zeros up to so many words."""
    double = 2 * e.lanes
    whole = count // double
    with e.loop(0, whole) as loop:
        start = e.mul(loop.index, double)
        pairs = pair_up(e, e.load(source, start), e.load(source, start, e.lanes))
        e.store(pairs, target, e.mul(loop.index, e.lanes))
    rest, done = count - whole * double, whole * e.lanes
    if rest:
        first = e.load(source, whole * double, count=min(rest, e.lanes))
        second = (
            e.load(source, whole * double, e.lanes, count=rest - e.lanes) if rest > e.lanes else e.splat(0.0)
        )
        valid = min(e.lanes, words - done)
        e.store(pair_up(e, first, second), target, done, count=valid)
        done += valid
    e.fill(target, done, words)
