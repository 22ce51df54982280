"""Softmax and its logarithm along one axis of an array of any strides.

Arguments: input, output. Where the axis' elements are contiguous a vector runs along it, otherwise across it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.jit import Kernel
from engine.compiler.emit.runtime_sizes import RuntimeSizes
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.emit.vector_math import exp_below_zero, log
from engine.compiler.kernels.strided_loops import emit_fold
from engine.compiler.memory.region import Region

_CHUNK = 8192
"""Elements of a chunk."""
_TOGETHER = 4
"""Lines at most that are computed together: the processor works on one while it waits for another."""


@dataclass(frozen=True, slots=True)
class SoftmaxKernel(Kernel):
    """A softmax of one exact shape.

    Attributes:
        length: length of the axis.
        x_step: elements between two neighbours on it in the input.
        out_step: the same in the output.
        shape: the other axes.
        x_strides: elements between neighbours on them in the input.
        out_strides: the same in the output.
        is_log: whether to return the logarithm.
        skip_masked: whether results are 0 where all of a row is -inf, instead of NaN.
        is_dynamic: whether extents and strides are runtime dimensions; the axis has to be contiguous.
    """

    length: int
    x_step: int
    out_step: int
    shape: tuple[int, ...]
    x_strides: tuple[int, ...]
    out_strides: tuple[int, ...]
    is_log: bool = False
    skip_masked: bool = False
    is_dynamic: bool = False

    @property
    def general(self) -> "SoftmaxKernel":
        """The kernel whose code this one runs."""
        if not self.is_dynamic:
            return self
        none = (0,) * len(self.shape)
        return replace(self, length=0, shape=none, x_strides=none, out_strides=none)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The runtime dimensions of the code."""
        if not self.is_dynamic:
            return ()
        units = -(-math.prod(self.shape) // _TOGETHER)
        return self.length, *self.shape, *self.x_strides, *self.out_strides, units, -(-units // self.chunks)

    def _with_runtime_sizes(self, e: Emitter) -> "SoftmaxKernel":
        """Return the kernel with the extents and strides read at run time."""
        sizes = RuntimeSizes(e, 2)
        length = sizes.one()
        shape, x_strides, out_strides = map(sizes.some, (self.shape, self.x_strides, self.out_strides))
        return replace(self, length=length, shape=shape, x_strides=x_strides, out_strides=out_strides)

    def _emit_open(self, e: Emitter) -> None:
        """Write units of rows; those beyond the last one repeat it."""
        x, out = e.argument(0), e.argument(1)
        units, grain = (e.size(3 + 3 * len(self.shape) + place) for place in range(2))
        kernel = self._with_runtime_sizes(e)
        last = e.sub(e.product(kernel.shape), 1)
        with e.chunk_loop(grain, units) as loop:
            kernel._emit_lines(e, x, out, loop.index, last)

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        shape = *self.shape, self.length
        x = Region(shape, (*self.x_strides, self.x_step))
        return x, Region(shape, (*self.out_strides, self.out_step), is_written=True)

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        rows = math.prod(self.shape)
        return max(1, min(rows * self.length // _CHUNK, rows // (1 if self._is_along else 16)))

    @property
    def _is_along(self) -> bool:
        return self.x_step == self.out_step == 1

    @property
    def _is_across(self) -> bool:
        """Whether neighbours on the last of the other axes are contiguous."""
        neighbours = bool(self.shape) and self.x_strides[-1] == self.out_strides[-1] == 1
        return neighbours and not self._is_along

    @property
    def _together(self) -> int:
        """Lines that are computed together; the last ones repeat the very last where there are not as many."""
        return min(_TOGETHER, math.prod(self.shape))

    def emit(self, e: Emitter) -> None:
        """Write the kernel: units of some rows along vectors, or of one vector of rows, or of one row."""
        if self.is_dynamic:
            self._emit_open(e)
            return
        x, out = e.argument(0), e.argument(1)
        extents = list(self.shape) or [1]
        units = math.prod(extents)
        if self._is_along:
            units = -(-units // self._together)
        if self._is_across:
            extents[-1] = -(-extents[-1] // e.lanes)
            units = math.prod(extents)
        grain = -(-units // self.chunks)
        with e.chunk_loop(grain, units) as loop:
            if self._is_along:
                self._emit_lines(e, x, out, loop.index, math.prod(extents) - 1)
            else:
                self._emit_unit(e, x, out, e.unravel(loop.index, extents))

    def _emit_lines(self, e: Emitter, x: IRValue, out: IRValue, unit: IRIndex, last: IRIndex) -> None:
        """Write a unit of rows; those beyond the last one repeat it."""
        count = _TOGETHER if self.is_dynamic else self._together
        rows = [e.minimum(e.add(e.mul(unit, count), row), last) for row in range(count)]
        places = [self._addresses(e, x, out, e.unravel(row, self.shape or (1,))) for row in rows]
        self._emit_along(e, [source for source, _ in places], [target for _, target in places])

    def _addresses(
        self, e: Emitter, x: IRValue, out: IRValue, place: Sequence[IRIndex]
    ) -> tuple[IRValue, IRValue]:
        """Return where a row starts in input and output."""
        offsets = [list(map(e.mul, place, strides)) for strides in (self.x_strides, self.out_strides)]
        return e.address(x, *offsets[0]), e.address(out, *offsets[1])

    def _emit_unit(self, e: Emitter, x: IRValue, out: IRValue, place: list[IRIndex]) -> None:
        """Write a vector of rows, or one row."""
        lane = place[-1]
        if not self._is_across:
            self._emit_across(e, *self._addresses(e, x, out, place), 0)
            return
        source, target = self._addresses(e, x, out, [*place[:-1], e.mul(lane, e.lanes)])
        whole, rest = divmod(self.shape[-1], e.lanes)
        for count, how in ((e.lanes if whole else 0, "<"), (rest, "==")):
            if count:
                with e.when(e.compare(how, lane, whole)):
                    self._emit_across(e, source, target, count)

    def _emit_along(self, e: Emitter, sources: list[IRValue], targets: list[IRValue]) -> None:
        """Write some rows, vector by vector; lanes past the end hold -inf, whose exponential is 0."""
        rows = range(len(sources))

        def load(bases: list[IRValue], index: IRIndex, count: IRIndex) -> list[IRValue]:
            return [e.load(base, index, count=count, rest=-math.inf) for base in bases]

        def store(values: list[IRValue], index: IRIndex, count: IRIndex) -> None:
            for value, target in zip(values, targets, strict=True):
                e.store(value, target, index, count=count)

        def largest(index: IRIndex, count: IRIndex, totals: list[IRValue]) -> list[IRValue]:
            return [e.fmax(*pair) for pair in zip(load(sources, index, count), totals, strict=True)]

        peaks = emit_fold(e, self.length, [e.splat(-math.inf) for _ in rows], largest)
        peaks = [self._peak(e, e.broadcast(e.reduce("max", peak))) for peak in peaks]

        def add(index: IRIndex, count: IRIndex, totals: list[IRValue]) -> list[IRValue]:
            values = zip(load(sources, index, count), peaks, strict=True)
            powers = [exp_below_zero(e, e.fsub(value, peak)) for value, peak in values]
            if not self.is_log:
                store(powers, index, count)
            return [e.fadd(*pair) for pair in zip(totals, powers, strict=True)]

        sums = emit_fold(e, self.length, [e.splat(0.0) for _ in rows], add)
        sums = [e.broadcast(e.reduce("add", total)) for total in sums]
        finish = [self._finish(e, *pair) for pair in zip(peaks, sums, strict=True)]

        for index, count in e.each_vector(self.length):
            values = load(sources if self.is_log else targets, index, count)
            store([function(value) for function, value in zip(finish, values, strict=True)], index, count)

    def _emit_across(self, e: Emitter, x: IRValue, out: IRValue, count: int) -> None:
        """Write `count` rows that are contiguous, or without a count one row, element by element."""

        def load(base: IRValue, index: IRIndex, step: int) -> IRValue:
            offset = e.mul(index, step)
            return e.load(base, offset, count=count) if count else e.load_scalar(base, offset)

        def store(value: IRValue, index: IRIndex) -> None:
            offset = e.mul(index, self.out_step)
            if count:
                e.store(value, out, offset, count=count)
            else:
                e.store_scalar(value, out, offset)

        form = e.splat(0.0) if count else e.scalar(0.0)
        with e.loop(0, self.length, carry=[e.like(form, -math.inf)]) as loop:
            loop.following = [e.fmax(load(x, loop.index, self.x_step), loop.carried[0])]
        peak = self._peak(e, loop.results[0])
        with e.loop(0, self.length, carry=[form]) as loop:
            power = exp_below_zero(e, e.fsub(load(x, loop.index, self.x_step), peak))
            if not self.is_log:
                store(power, loop.index)
            loop.following = [e.fadd(loop.carried[0], power)]
        finish = self._finish(e, peak, loop.results[0])
        source, step = (x, self.x_step) if self.is_log else (out, self.out_step)
        with e.loop(0, self.length) as loop:
            store(finish(load(source, loop.index, step)), loop.index)

    def _peak(self, e: Emitter, peak: IRValue) -> IRValue:
        """Return what is taken from each element before its power: the largest, or 0 where that is -inf."""
        if not self.skip_masked:
            return peak
        is_masked = e.builder.fcmp_ordered("==", peak, e.like(peak, -math.inf))
        return e.select(is_masked, e.like(peak, 0.0), peak)

    def _finish(self, e: Emitter, peak: IRValue, total: IRValue) -> Callable[[IRValue], IRValue]:
        """Return what makes results of inputs, for the logarithm, or of their powers."""
        if self.is_log:
            logarithm = log(e, total)
            return lambda value: e.fsub(e.fsub(value, peak), logarithm)
        if self.skip_masked:
            is_nothing = e.builder.fcmp_ordered("==", total, e.like(total, 0.0))
            total = e.select(is_nothing, e.like(total, 1.0), total)
        inverse = e.fdiv(e.like(total, 1.0), total)
        return lambda value: e.fmul(value, inverse)
