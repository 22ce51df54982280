"""Geometry of transposed convolutions: input and kernel elements of each output position."""

import math
from dataclasses import dataclass

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRIndex


@dataclass(frozen=True, slots=True)
class TransposedAxis:
    """One spatial axis: output o and input i meet at tap t where o + padding = i * stride + t * dilation.

    Attributes:
        kernel: taps.
        stride: distance in the output between neighbours of the input.
        padding: elements cut off the start of the output.
        dilation: distance between taps.
    """

    kernel: int
    stride: int
    padding: int
    dilation: int

    @property
    def divisor(self) -> int:
        """Greatest common divisor of stride and dilation: other positions than its multiples meet no tap."""
        return math.gcd(self.stride, self.dilation)

    @property
    def tap_step(self) -> int:
        """Taps between one that a position meets and the next."""
        return self.stride // self.divisor

    @property
    def input_step(self) -> int:
        """Elements of input that one goes back from a tap to the next that a position meets."""
        return self.dilation // self.divisor

    def reach(self, size: int) -> tuple[int, int]:
        """Return the first and the last place of the input that an output of `size` elements meets, 0 among them."""
        met = [
            (position + self.padding - tap * self.dilation) // self.stride
            for position in range(size)
            for tap in range(self.kernel)
            if (position + self.padding - tap * self.dilation) % self.stride == 0
        ]
        return min([0, *met]), max([0, *met])

    def halo(self, x_size: int, size: int) -> tuple[int, int]:
        """Return the zeros needed before and after an input of `x_size` for an output of `size` elements."""
        first, last = self.reach(size)
        return -first, max(0, last - (x_size - 1))


@dataclass(frozen=True, slots=True)
class Taps:
    """The taps that an output position meets.

    Attributes:
        first: the first one.
        count: the number of them.
        source: input position that meets the first one; may be negative.
    """

    first: IRIndex
    count: IRIndex
    source: IRIndex


def taps_of(e: Emitter, axis: TransposedAxis, position: IRIndex) -> Taps:
    """Write which taps a position meets: those where tap * dilation = position + padding, modulo the stride."""
    step, back = axis.tap_step, axis.input_step
    place, rest = e.divmod(e.add(position, axis.padding), axis.divisor)
    inverse = pow(back, -1, step) if step > 1 else 0
    _, first = e.divmod(e.mul(place, inverse), step)
    # one period more, so that the dividend isn't negative
    periods, _ = e.divmod(e.sub(e.add(place, step * back), e.mul(first, back)), step)
    count, _ = e.divmod(e.sub(axis.kernel + step - 1, first), step)
    if axis.divisor > 1:
        meets = e.compare("==", rest, 0)
        count = e.select(meets, e.index(count), e.index(0))
    return Taps(first, count, e.sub(periods, back))


@dataclass(frozen=True, slots=True, kw_only=True)
class TransposedShape:
    """Shape of a transposed convolution of images.

    Attributes:
        images: batch.
        size: rows and columns of the output.
        channels: input channels of one group.
        filters: output channels of one group.
        groups: groups.
        axes: geometry of rows and columns.
    """

    images: int
    size: tuple[int, int]
    channels: int
    filters: int
    groups: int
    axes: tuple[TransposedAxis, TransposedAxis]

    @property
    def taps(self) -> int:
        """Elements of a window in one channel."""
        return math.prod(axis.kernel for axis in self.axes)

    @property
    def out_channels(self) -> int:
        """Channels of the output, of all groups."""
        return self.filters * self.groups
