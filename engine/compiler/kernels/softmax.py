"""Softmax and its logarithm along one axis of an array of any strides.

Arguments: input, output. Where the axis' elements lie side by side a vector runs along it, otherwise across it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.compiler.emitter import Emitter, Index, Value
from engine.compiler.kernels.lines import emit_fold
from engine.compiler.vector_math import exp, log

_CHUNK = 8192
"""Elements of a chunk."""


@dataclass(frozen=True, slots=True)
class Softmax:
    """A softmax of one exact shape.

    Attributes:
        length: of the axis.
        x_step: elements between two neighbours on it in the input.
        out_step: the same in the output.
        shape: the other axes.
        x_strides: elements between neighbours on them in the input.
        out_strides: the same in the output.
        is_log: whether the logarithm is wanted.
    """

    length: int
    x_step: int
    out_step: int
    shape: tuple[int, ...]
    x_strides: tuple[int, ...]
    out_strides: tuple[int, ...]
    is_log: bool = False

    @property
    def scratch(self) -> int:
        """None is needed."""
        return 0

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        lines = math.prod(self.shape)
        return max(1, min(lines * self.length // _CHUNK, lines // (1 if self._is_along else 16)))

    @property
    def _is_along(self) -> bool:
        return self.x_step == self.out_step == 1

    @property
    def _is_across(self) -> bool:
        """Whether neighbours on the last of the other axes lie side by side."""
        neighbours = bool(self.shape) and self.x_strides[-1] == self.out_strides[-1] == 1
        return neighbours and not self._is_along

    def emit(self, e: Emitter) -> None:
        """Write the kernel: units of one line, or of one vector of lines."""
        x, out = e.argument(0), e.argument(1)
        extents = list(self.shape) or [1]
        if self._is_across:
            extents[-1] = -(-extents[-1] // e.lanes)
        units = math.prod(extents)
        grain = -(-units // self.chunks)
        first = e.mul(e.chunk, grain)
        with e.loop(first, e.minimum(e.add(first, grain), units)) as loop:
            place = e.unravel(loop.index, extents)
            lane = place[-1]
            if self._is_across:
                place[-1] = e.mul(lane, e.lanes)
            source, target = (
                e.address(base, *map(e.mul, place, strides))
                for base, strides in ((x, self.x_strides), (out, self.out_strides))
            )
            self._emit_unit(e, source, target, lane)

    def _emit_unit(self, e: Emitter, x: Value, out: Value, lane: Index) -> None:
        if self._is_along:
            self._emit_along(e, x, out)
            return
        if not self._is_across:
            self._emit_across(e, x, out, 0)
            return
        whole, rest = divmod(self.shape[-1], e.lanes)
        if whole:
            with e.when(e.compare("<", lane, whole)):
                self._emit_across(e, x, out, e.lanes)
        if rest:
            with e.when(e.compare("==", lane, whole)):
                self._emit_across(e, x, out, rest)

    def _emit_along(self, e: Emitter, x: Value, out: Value) -> None:
        """Write one line, vector by vector; lanes past its end hold -inf, whose exponential is 0."""

        def load(base: Value, index: Index, count: int) -> Value:
            return e.load(base, index, count=count, rest=-math.inf)

        def each(
            totals: Sequence[Value], body: Callable[[Index, int, list[Value]], list[Value]]
        ) -> list[Value]:
            return emit_fold(e, self.length, totals, body)

        (peaks,) = each(
            [e.splat(-math.inf)], lambda index, count, totals: [e.fmax(load(x, index, count), totals[0])]
        )
        peak = e.broadcast(e.reduce("max", peaks))

        def add(index: Index, count: int, totals: list[Value]) -> list[Value]:
            power = exp(e, e.fsub(load(x, index, count), peak))
            if not self.is_log:
                e.store(power, out, index, count=count)
            return [e.fadd(totals[0], power)]

        (sums,) = each([e.splat(0.0)], add)
        finish = self._finish(e, peak, e.broadcast(e.reduce("add", sums)))

        def write(index: Index, count: int, totals: list[Value]) -> list[Value]:
            e.store(finish(load(x if self.is_log else out, index, count)), out, index, count=count)
            return totals

        each([], write)

    def _emit_across(self, e: Emitter, x: Value, out: Value, count: int) -> None:
        """Write `count` lines that lie side by side, or without a count one line, element by element."""

        def load(base: Value, index: Index, step: int) -> Value:
            offset = e.mul(index, step)
            return e.load(base, offset, count=count) if count else e.load_scalar(base, offset)

        def store(value: Value, index: Index) -> None:
            offset = e.mul(index, self.out_step)
            if count:
                e.store(value, out, offset, count=count)
            else:
                e.store_scalar(value, out, offset)

        form = e.splat(0.0) if count else e.scalar(0.0)
        with e.loop(0, self.length, carry=[e.like(form, -math.inf)]) as loop:
            loop.following = [e.fmax(load(x, loop.index, self.x_step), loop.carried[0])]
        peak = loop.results[0]
        with e.loop(0, self.length, carry=[form]) as loop:
            power = exp(e, e.fsub(load(x, loop.index, self.x_step), peak))
            if not self.is_log:
                store(power, loop.index)
            loop.following = [e.fadd(loop.carried[0], power)]
        finish = self._finish(e, peak, loop.results[0])
        source, step = (x, self.x_step) if self.is_log else (out, self.out_step)
        with e.loop(0, self.length) as loop:
            store(finish(load(source, loop.index, step)), loop.index)

    def _finish(self, e: Emitter, peak: Value, total: Value) -> Callable[[Value], Value]:
        """Return what makes results of inputs, for the logarithm, or of their powers."""
        if self.is_log:
            logarithm = log(e, total)
            return lambda value: e.fsub(e.fsub(value, peak), logarithm)
        inverse = e.fdiv(e.like(total, 1.0), total)
        return lambda value: e.fmul(value, inverse)
