"""Copies the input of a convolution's chunk into scratch memory, rounded to bfloat16 in pairs, with zeros around it."""

from dataclasses import dataclass

from engine.compiler.contraction.bf16_layout import Bf16Layout
from engine.compiler.contraction.shapes import ImplicitPadding
from engine.compiler.emit.bfloat16 import pair_lanes, pair_up
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRIndex, IRValue


@dataclass(frozen=True, slots=True)
class Bf16Staging:
    """The staging of a chunk's input.

    Attributes:
        layout: target layout.
        padding: zeros around the input.
        strides: elements between images, rows and pixels of the input.
        channel_step: elements between channels; where these are not contiguous, pixels do.
        is_rounded: whether the input is of pairs already.
    """

    layout: Bf16Layout
    padding: ImplicitPadding
    strides: tuple[int, int, int]
    channel_step: int = 1
    is_rounded: bool = False

    def emit(self, e: Emitter, image: IRValue, first_row: IRIndex, target: IRValue, words: int) -> None:
        """Write the copy.

        Args:
            e: the kernel.
            image: address of the image.
            first_row: the chunk's first row of output.
            target: address of the scratch memory.
            words: words of it that are read; what rows do not fill becomes zero.
        """
        layout, stride = self.layout, self.layout.shape.stride[0]
        top = e.sub(e.mul(first_row, stride), self.padding.before[0])
        with e.loop(0, stride * layout.plane_rows) as loop:
            row = e.add(top, loop.index)
            index, plane = e.divmod(loop.index, stride)
            place = e.add(e.mul(plane, layout.plane_rows), index)
            there = e.address(target, e.mul(place, layout.row_words))
            inside = e.both(e.compare(">=", row, 0), e.compare("<", row, self.padding.x_size[0]))
            with e.when(inside):
                self._stage_row(e, e.address(image, e.mul(row, self.strides[1])), there)
            with e.when(e.negated(inside)):
                e.fill(there, 0, layout.row_words)
        e.fill(target, layout.plane_words, words)

    def _stage_row(self, e: Emitter, source: IRValue, target: IRValue) -> None:
        """Write the copy of one row of input."""
        layout, words = self.layout, self.layout.runs.pixel_words
        channels = layout.shape.channels
        # where the stride leaves pixels out, a row may end before its padding does
        left = min(self.padding.before[1], layout.columns)
        there = min(self.padding.x_size[1], layout.columns - left)
        e.fill(target, 0, left * words)
        if self.channel_step != 1:
            self._stage_planes(e, source, e.address(target, left * words), there)
        elif self.is_rounded:
            self._copy_pairs(e, source, e.address(target, left * words), there)
        elif self.strides[2] == channels == 2 * words:
            _round(e, source, e.address(target, left * words), there * channels, there * words)
        else:
            with e.loop(0, there) as pixel:
                to = e.address(target, e.mul(e.add(pixel.index, left), words))
                _round(e, e.address(source, e.mul(pixel.index, self.strides[2])), to, channels, words)
        e.fill(target, (left + there) * words, layout.row_words)

    def _copy_pairs(self, e: Emitter, source: IRValue, target: IRValue, pixels: int) -> None:
        """Write the copy of some pixels of pairs."""
        words, there = self.layout.runs.pixel_words, self.layout.shape.channels // 2
        if self.strides[2] == there == words:
            e.copy(source, target, pixels * words)
            return
        with e.loop(0, pixels) as pixel:
            to = e.address(target, e.mul(pixel.index, words))
            e.copy(e.address(source, e.mul(pixel.index, self.strides[2])), to, there)
            e.fill(to, there, words)

    def _stage_planes(self, e: Emitter, source: IRValue, target: IRValue, pixels: int) -> None:
        """Write the copy of a row whose channels lie apart: as many pixels at once as a vector has lanes."""
        rest = pixels % e.lanes
        with e.loop(0, pixels - rest, e.lanes) as loop:
            to = e.address(target, e.mul(loop.index, self.layout.runs.pixel_words))
            self._stage_pixels(e, e.address(source, loop.index), to, e.lanes)
        if rest:
            to = e.address(target, (pixels - rest) * self.layout.runs.pixel_words)
            self._stage_pixels(e, e.address(source, pixels - rest), to, rest)

    def _stage_pixels(self, e: Emitter, source: IRValue, target: IRValue, count: int) -> None:
        """Write the copy of some pixels: the vectors of pairs of each channel, transposed to channels last."""
        channels, words = self.layout.shape.channels, self.layout.runs.pixel_words
        planes = [e.load(source, channel * self.channel_step, count=count) for channel in range(channels)]
        planes += [e.splat(0.0)] * (2 * words - channels)
        pairs = [pair_lanes(e, planes[2 * word], planes[2 * word + 1]) for word in range(words)]
        for place, vector in enumerate(e.transpose(pairs)):
            valid = min(e.lanes, count * words - place * e.lanes)
            if valid > 0:
                e.store(vector, target, place * e.lanes, count=valid)


def can_stage_planes(layout: Bf16Layout) -> bool:
    """Whether planar inputs can be staged: a pixel has as many pairs as a transposition has vectors."""
    return layout.runs.pixel_words in (1, 2, 4)


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
