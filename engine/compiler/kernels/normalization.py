"""Layer, RMS, group and instance normalization.

Arguments: input, weight and bias where there are such, output.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.jit import Kernel
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.emit.vector_math import rsqrt
from engine.compiler.kernels.strided_loops import emit_fold, emit_fold_blocks
from engine.compiler.memory.region import Region, line

_CHUNK = 16384
"""Elements of a chunk."""
_TOGETHER = 4
"""Lines that are computed together: the processor works on one while it waits for another."""


@dataclass(frozen=True, slots=True)
class LayerNormKernel(Kernel):
    """A normalization of rows that are contiguous in memory, each separately.

    Attributes:
        rows: number of rows.
        length: elements of a row.
        x_step: elements between the starts of two rows of the input.
        out_step: the same of the output.
        eps: added to the variance.
        has_weight: whether results are multiplied by a weight for each place on a row.
        has_bias: whether a bias is added likewise.
        is_centred: whether the mean is taken off first; RMS normalization does not.
        is_dynamic: whether the number of rows is a runtime dimension.
    """

    rows: int
    length: int
    x_step: int
    out_step: int
    eps: float
    has_weight: bool = True
    has_bias: bool = True
    is_centred: bool = True
    is_dynamic: bool = False

    @property
    def general(self) -> "LayerNormKernel":
        """The kernel whose code this one runs."""
        return replace(self, rows=0) if self.is_dynamic else self

    @property
    def sizes(self) -> tuple[int, ...]:
        """The runtime dimensions of the code."""
        return (self.rows,) if self.is_dynamic else ()

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        x = Region((self.rows, self.length), (self.x_step, 1))
        out = Region((self.rows, self.length), (self.out_step, 1), is_written=True)
        return x, *[line(self.length)] * (self.has_weight + self.has_bias), out

    @property
    def _grain(self) -> int:
        return max(1, _CHUNK // self.length)

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return -(-self.rows // self._grain)

    def emit(self, e: Emitter) -> None:
        """Write the kernel, some rows at a time."""
        x, *parameters, out = [e.argument(place) for place in range(2 + self.has_weight + self.has_bias)]
        rows = e.size(2 + len(parameters)) if self.is_dynamic else self.rows
        first = e.mul(e.chunk, self._grain)
        end = e.minimum(e.add(first, self._grain), rows)
        last = e.sub(end, 1)
        with e.loop(first, end, _TOGETHER) as loop:
            # those beyond the last one repeat it
            places = [e.minimum(e.add(loop.index, row), last) for row in range(_TOGETHER)]
            sources, targets = (
                [e.address(base, e.mul(place, step)) for place in places]
                for base, step in ((x, self.x_step), (out, self.out_step))
            )
            self._emit_lines(e, sources, parameters, targets)

    def _emit_lines(
        self, e: Emitter, sources: list[IRValue], parameters: list[IRValue], targets: list[IRValue]
    ) -> None:
        def load(index: IRIndex, count: IRIndex) -> list[IRValue]:
            return [e.load(source, index, count=count) for source in sources]

        means = self._means(e, load) if self.is_centred else [e.splat(0.0)] * len(sources)

        def distances(index: IRIndex, count: IRIndex) -> list[IRValue]:
            return [e.fsub(*pair) for pair in zip(load(index, count), means, strict=True)]

        def squares(index: IRIndex, count: IRIndex) -> list[IRValue]:
            kept = [e.keep(distance, count) for distance in distances(index, count)]
            return [e.fmul(distance, distance) for distance in kept]

        scales = [rsqrt(e, e.fadd(mean, e.splat(self.eps))) for mean in self._means(e, squares)]

        for index, count in e.each_vector(self.length):
            values = [e.fmul(*pair) for pair in zip(distances(index, count), scales, strict=True)]
            extra = [e.load(parameter, index, count=count) for parameter in parameters]
            if self.has_weight:
                weight = extra.pop(0)
                values = [e.fmul(value, weight) for value in values]
            if self.has_bias:
                values = [e.fadd(value, extra[0]) for value in values]
            for value, target in zip(values, targets, strict=True):
                e.store(value, target, index, count=count)

    def _means(self, e: Emitter, terms: Callable[[IRIndex, IRIndex], list[IRValue]]) -> list[IRValue]:
        """Return the means of terms along rows, each in all lanes of a vector."""

        def add(index: IRIndex, count: IRIndex, totals: list[IRValue]) -> list[IRValue]:
            return [e.fadd(*pair) for pair in zip(totals, terms(index, count), strict=True)]

        sums = emit_fold(e, self.length, [e.splat(0.0)] * _TOGETHER, add)
        return [e.fmul(e.broadcast(e.reduce("add", total)), e.splat(1 / self.length)) for total in sums]


@dataclass(frozen=True, slots=True)
class GroupNormKernel:
    """A normalization of groups of channels over all pixels of an image, channels last.

    With one channel a group this is instance normalization.

    Attributes:
        images: batch.
        pixels: pixels of an image; they lie at equal distances.
        channels: channels.
        groups: groups of channels.
        x_strides: elements between images and pixels of the input.
        out_strides: the same of the output.
        eps: added to the variance.
        has_weight: whether results are multiplied by a weight for each channel.
        has_bias: whether a bias is added likewise.
    """

    images: int
    pixels: int
    channels: int
    groups: int
    x_strides: tuple[int, int]
    out_strides: tuple[int, int]
    eps: float
    has_weight: bool = True
    has_bias: bool = True

    @property
    def _size(self) -> int:
        """Channels of a group."""
        return self.channels // self.groups

    @property
    def _span(self) -> int:
        """Groups that are done together: 16 channels at least, a whole cache line."""
        wanted = min(self.groups, -(-16 // self._size))
        return next(span for span in range(wanted, self.groups + 1) if self.groups % span == 0)

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        shape = self.images, self.pixels, self.channels
        x = Region(shape, (*self.x_strides, 1))
        out = Region(shape, (*self.out_strides, 1), is_written=True)
        return x, *[line(self.channels)] * (self.has_weight + self.has_bias), out

    @property
    def scratch(self) -> int:
        """A sum and a factor for each channel of a unit."""
        return 2 * self._span * self._size

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return self.images * (self.groups // self._span)

    def emit(self, e: Emitter) -> None:
        """Write the kernel: one image and some groups a chunk."""
        x, *parameters, out, scratch = [
            e.argument(place) for place in range(3 + self.has_weight + self.has_bias)
        ]
        image, block = e.divmod(e.chunk, self.groups // self._span)
        width = self._span * self._size
        channel = e.mul(block, width)
        source = e.address(x, e.mul(image, self.x_strides[0]), channel)
        target = e.address(out, e.mul(image, self.out_strides[0]), channel)
        means = e.address(scratch, e.mul(e.thread, self.scratch))
        scales = e.address(means, width)
        self._emit_sums(e, source, None, means)
        self._emit_means(e, means, lambda mean: mean)
        self._emit_sums(e, source, means, scales)
        self._emit_means(e, scales, lambda variance: rsqrt(e, e.fadd(variance, e.like(variance, self.eps))))
        extra = [e.address(parameter, channel) for parameter in parameters]
        self._emit_results(e, source, target, (means, scales), extra)

    def _emit_sums(self, e: Emitter, x: IRValue, means: IRValue | None, sums: IRValue) -> None:
        """Write each channel's sum, or its sum of squared distances from a mean."""
        for channel, count in e.each_vector(self._span * self._size):
            mean = e.load(means, channel, count=count) if means is not None else None

            total = self._sum(e, x, (channel, count), mean)
            e.store(total, sums, channel, count=count)

    def _sum(self, e: Emitter, x: IRValue, vector: tuple[IRIndex, IRIndex], mean: IRValue | None) -> IRValue:
        """Return the sums of a vector of channels over all pixels, or those of squared distances from a mean."""
        channel, count = vector

        def add(pixel: IRIndex, sums: list[IRValue]) -> list[IRValue]:
            value = e.load(x, e.mul(pixel, self.x_strides[1]), channel, count=count)
            if mean is None:
                return [e.fadd(sums[0], value)]
            distance = e.fsub(value, mean)
            return [e.fma(distance, distance, sums[0])]

        return emit_fold_blocks(e, self.pixels, [e.splat(0.0)], add, e.fadd)[0]

    def _emit_means(self, e: Emitter, sums: IRValue, function: Callable[[IRValue], IRValue]) -> None:
        """Replace the sums of a group's channels by a function of the group's mean."""
        with e.loop(0, self._span) as groups:
            group = e.address(sums, e.mul(groups.index, self._size))
            with e.loop(0, self._size, carry=[e.scalar(0.0)]) as loop:
                loop.following = [e.fadd(loop.carried[0], e.load_scalar(group, loop.index))]
            mean = e.fmul(loop.results[0], e.scalar(1 / (self._size * self.pixels)))
            result = function(mean)
            with e.loop(0, self._size) as loop:
                e.store_scalar(result, group, loop.index)

    def _emit_results(
        self,
        e: Emitter,
        x: IRValue,
        out: IRValue,
        statistics: tuple[IRValue, IRValue],
        parameters: list[IRValue],
    ) -> None:
        means, scales = statistics
        for channel, count in e.each_vector(self._span * self._size):
            mean, scale = (e.load(base, channel, count=count) for base in (means, scales))
            extra = [e.load(parameter, channel, count=count) for parameter in parameters]
            scale = e.fmul(scale, extra.pop(0)) if self.has_weight else scale
            shift = extra.pop(0) if self.has_bias else e.splat(0.0)
            with e.loop(0, self.pixels) as loop:
                value = e.load(x, e.mul(loop.index, self.x_strides[1]), channel, count=count)
                result = e.fma(e.fsub(value, mean), scale, shift)
                e.store(result, out, e.mul(loop.index, self.out_strides[1]), channel, count=count)
