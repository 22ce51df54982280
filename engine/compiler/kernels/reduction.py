"""Sums, means, maxima and minima over any axes of an array of any strides.

Arguments: input, output. A vector runs across results that are contiguous, or along what is reduced, if that does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.jit import Kernel
from engine.compiler.emit.runtime_sizes import RuntimeSizes, only_ones
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.emit.vector_math import maximum, minimum
from engine.compiler.kernels.strided_loops import emit_fold, emit_fold_blocks
from engine.compiler.memory.region import Region

_CHUNK = 1 << 16
"""Elements that one chunk reads, at least."""


@dataclass(frozen=True, slots=True)
class ReductionKernel(Kernel):
    """A reduction of one exact shape; make it by `reduction`.

    Attributes:
        how: "sum", "mean", "max" or "min".
        shape: shape of the result.
        x_strides: elements between neighbours on the result's axes in the input.
        out_strides: the same in the output.
        reduced: extents of the reduced axes, in order of their strides, largest first.
        steps: elements between neighbours on them in the input.
        is_dynamic: whether extents and strides are runtime dimensions: all but strides of 1, and the vectorized extent.
    """

    how: str
    shape: tuple[int, ...]
    x_strides: tuple[int, ...]
    out_strides: tuple[int, ...]
    reduced: tuple[int, ...]
    steps: tuple[int, ...]
    is_dynamic: bool = False

    @property
    def general(self) -> "ReductionKernel":
        """The kernel whose code this one runs."""
        if not self.is_dynamic:
            return self
        last = self.shape[-1] if self._is_across else 0
        return replace(
            self,
            shape=(*(0,) * (len(self.shape) - 1), last),
            x_strides=only_ones(self.x_strides),
            out_strides=only_ones(self.out_strides),
            reduced=(0,) * len(self.reduced),
            steps=only_ones(self.steps),
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The runtime dimensions of the code."""
        if not self.is_dynamic:
            return ()
        return *self.shape, *self.x_strides, *self.out_strides, *self.reduced, *self.steps, self.chunks

    def _with_runtime_sizes(self, e: Emitter) -> "ReductionKernel":
        """Return the kernel with the extents and strides read at run time."""
        sizes = RuntimeSizes(e, 2)
        return replace(
            self,
            shape=sizes.some(self.shape),
            x_strides=sizes.some(self.x_strides),
            out_strides=sizes.some(self.out_strides),
            reduced=sizes.some(self.reduced),
            steps=sizes.some(self.steps),
        )

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        x = Region((*self.shape, *self.reduced), (*self.x_strides, *self.steps))
        return x, Region(self.shape, self.out_strides, is_written=True)

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        results = math.prod(self.shape)
        return max(
            1, min(results * math.prod(self.reduced) // _CHUNK, results // 16 if self._is_across else results)
        )

    @property
    def _is_across(self) -> bool:
        return self.x_strides[-1] == self.out_strides[-1] == 1

    def emit(self, e: Emitter) -> None:
        """Write the kernel: units of one result, or of one vector of results."""
        if not self.is_dynamic:
            units = math.prod(self._extents(e))
            self._emit_units(e, units, -(-units // self.chunks))
            return
        sizes = sum(map(len, (self.shape, self.x_strides, self.out_strides, self.reduced, self.steps)))
        kernel = self._with_runtime_sizes(e)
        units, chunks = e.product(kernel._extents(e)), e.size(2 + sizes)
        kernel._emit_units(e, units, e.divmod(e.sub(e.add(units, chunks), 1), chunks)[0])

    def _extents(self, e: Emitter) -> list[IRIndex]:
        """Return how many units of work there are along each axis of the result."""
        extents: list[IRIndex] = list(self.shape)
        if self._is_across:
            extents[-1] = -(-extents[-1] // e.lanes)
        return extents

    def _emit_units(self, e: Emitter, units: IRIndex, grain: IRIndex) -> None:
        x, out = e.argument(0), e.argument(1)
        extents = self._extents(e)
        with e.chunk_loop(grain, units) as loop:
            place = e.unravel(loop.index, extents)
            lane = place[-1]
            if self._is_across:
                place[-1] = e.mul(lane, e.lanes)
            source, target = (
                e.address(base, *map(e.mul, place, strides))
                for base, strides in ((x, self.x_strides), (out, self.out_strides))
            )
            if self._is_across:
                self._emit_across(e, source, target, lane)
            else:
                e.store_scalar(self._scaled(e, self._along(e, source)), target)

    def _emit_across(self, e: Emitter, x: IRValue, out: IRValue, lane: IRIndex) -> None:
        """Write one vector of results."""
        whole, rest = divmod(self.shape[-1], e.lanes)
        for count, how in ((e.lanes if whole else 0, "<"), (rest, "==")):
            if count:
                with e.when(e.compare(how, lane, whole)):
                    e.store(self._scaled(e, self._nest(e, x, 0, count)), out, count=count)

    def _along(self, e: Emitter, x: IRValue) -> IRValue:
        """Return one result, a scalar."""
        if self.steps[-1] != 1:
            return self._nest(e, x, 0, 0)
        neutral = self._neutral
        outer = self.reduced[:-1]

        def add(index: IRIndex, totals: list[IRValue]) -> list[IRValue]:
            line = e.address(x, *map(e.mul, e.unravel(index, outer or (1,)), self.steps))
            (total,) = emit_fold(
                e,
                self.reduced[-1],
                [e.splat(neutral)],
                lambda i, n, t: [self._combine(e, t[0], e.load(line, i, count=n, rest=neutral))],
            )
            return [self._combine(e, totals[0], total)]

        with e.loop(0, e.product(outer), carry=[e.splat(neutral)]) as loop:
            loop.following = add(loop.index, loop.carried)
        return e.reduce("add" if self.how in ("sum", "mean") else self.how, loop.results[0])

    def _nest(self, e: Emitter, x: IRValue, axis: int, count: int) -> IRValue:
        """Return the reduction over the axes from one on, of a vector of `count` results or of a scalar."""
        neutral = e.splat(self._neutral) if count else e.scalar(self._neutral)
        if axis == len(self.reduced):
            return e.load(x, count=count) if count else e.load_scalar(x)

        def add(index: IRIndex, totals: list[IRValue]) -> list[IRValue]:
            part = self._nest(e, e.address(x, e.mul(index, self.steps[axis])), axis + 1, count)
            return [self._combine(e, totals[0], part)]

        return emit_fold_blocks(e, self.reduced[axis], [neutral], add, lambda a, b: self._combine(e, a, b))[0]

    @property
    def _neutral(self) -> float:
        return {"max": -math.inf, "min": math.inf}.get(self.how, 0.0)

    def _combine(self, e: Emitter, left: IRValue, right: IRValue) -> IRValue:
        combine = {"max": maximum, "min": minimum}.get(self.how, Emitter.fadd)
        return combine(e, left, right)

    def _scaled(self, e: Emitter, total: IRValue) -> IRValue:
        if self.how != "mean":
            return total
        count = e.product(self.reduced)
        if isinstance(count, int):
            return e.fmul(total, e.like(total, 1 / count))
        inverse = e.fdiv(e.scalar(1.0), e.to_float(count))
        return e.fmul(total, e.broadcast(inverse) if self._is_across else inverse)


def reduction(
    how: str, shape: Sequence[int], strides: Sequence[int], axes: Sequence[int], out_strides: Sequence[int]
) -> ReductionKernel:
    """Return the kernel of a reduction.

    Args:
        how: "sum", "mean", "max" or "min".
        shape: shape of the input, without an empty axis.
        strides: strides of the input, in elements.
        axes: what is reduced, counted from the front.
        out_strides: strides of the output, for each axis of the input that is not reduced.
    """
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    step_of = dict(zip(kept, out_strides, strict=True))
    kept = sorted((axis for axis in kept if shape[axis] > 1), key=lambda axis: -step_of[axis])
    reduced = sorted((axis for axis in axes if shape[axis] > 1), key=lambda axis: -strides[axis])
    sizes, steps = _merged([(shape[axis], strides[axis]) for axis in reduced])
    return ReductionKernel(
        how=how,
        shape=tuple(shape[axis] for axis in kept) or (1,),
        x_strides=tuple(strides[axis] for axis in kept) or (0,),
        out_strides=tuple(step_of[axis] for axis in kept) or (0,),
        reduced=sizes,
        steps=steps,
    )


def _merged(axes: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Make one axis of neighbours that lie end to end; there is one axis at least."""
    merged: list[tuple[int, int]] = []
    for size, step in axes:
        if merged and merged[-1][1] == size * step:
            merged[-1] = (merged[-1][0] * size, step)
        else:
            merged.append((size, step))
    merged = merged or [(1, 1)]
    return tuple(size for size, _ in merged), tuple(step for _, step in merged)
