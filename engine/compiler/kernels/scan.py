"""Sequential scans along rows of an array: cumulative sums, argmax and argmin.

Arguments: input, output, then `sizes`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.jit import Kernel
from engine.compiler.emit.runtime_sizes import RuntimeSizes
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.kernels.strided_loops import Strides
from engine.compiler.memory.region import Region

_CHUNK = 1 << 13
"""Elements of a chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanKernel(Kernel):
    """A scan along one axis with runtime extents and strides: one code for tensors of all shapes.

    Attributes:
        how: "cumsum" for sums of all elements up to each; "argmax" or "argmin" for the place of the first largest or
            smallest, where NaN counts as that.
        shape: all other axes.
        x_strides: strides of the input along them.
        out_strides: strides of the output along them.
        length: elements of a row.
        steps: elements of input and output between neighbours on a row; the latter 0 where a row gives one number.
    """

    how: str
    shape: tuple[int, ...]
    x_strides: Strides
    out_strides: Strides
    length: int
    steps: tuple[int, int]

    @property
    def general(self) -> "ScanKernel":
        """The kernel whose code this one runs."""
        none = (0,) * len(self.shape)
        return replace(self, shape=none, x_strides=none, out_strides=none, length=0, steps=(0, 0))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Runtime dimensions: rows of a chunk, then all attributes in their order."""
        grain = -(-prod(self.shape) // self.chunks)
        return grain, *self.shape, *self.x_strides, *self.out_strides, self.length, *self.steps

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        x, out = (
            Region((*self.shape, self.length), (*strides, step))
            for strides, step in ((self.x_strides, self.steps[0]), (self.out_strides, self.steps[1]))
        )
        return x, replace(out, is_written=True)

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        rows = prod(self.shape)
        return max(1, min(rows, rows * self.length // _CHUNK))

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""
        x, out = e.argument(0), e.argument(1)
        sizes = RuntimeSizes(e, 2)
        none = (0,) * len(self.shape)
        grain = sizes.one()
        shape, x_strides, out_strides = (sizes.some(none) for _ in range(3))
        length, x_step, out_step = sizes.some((0, 0, 0))
        with e.chunk_loop(grain, e.product(shape)) as loop:
            place = e.unravel(loop.index, shape)
            source, target = (
                e.address(base, *map(e.mul, place, strides))
                for base, strides in ((x, x_strides), (out, out_strides))
            )
            if self.how == "cumsum":
                _emit_sums(e, (source, x_step), (target, out_step), length)
            else:
                e.store_scalar(e.to_float(self._emit_search(e, (source, x_step), length)), target)

    def _emit_search(self, e: Emitter, x: tuple[IRValue, IRIndex], length: IRIndex) -> IRValue:
        """Return the place of the extreme of a row."""
        how = ">" if self.how == "argmax" else "<"
        with e.loop(0, length, carry=[e.load_scalar(x[0]), e.index(0)]) as loop:
            best, place = loop.carried
            value = e.load_scalar(x[0], e.mul(loop.index, x[1]))
            # unordered: better, or one of the two is NaN; it is the first NaN where the best is none yet
            is_better = e.both(
                e.builder.fcmp_unordered(how, value, best), e.builder.fcmp_ordered("==", best, best)
            )
            loop.following = [e.select(is_better, value, best), e.select(is_better, loop.index, place)]
        return loop.results[1]


def _emit_sums(e: Emitter, x: tuple[IRValue, IRIndex], out: tuple[IRValue, IRIndex], length: IRIndex) -> None:
    """Write the sums of all elements of a row up to each."""
    with e.loop(0, length, carry=[e.scalar(0.0)]) as loop:
        total = e.fadd(loop.carried[0], e.load_scalar(x[0], e.mul(loop.index, x[1])))
        e.store_scalar(total, out[0], e.mul(loop.index, out[1]))
        loop.following = [total]


def scan(how: str, axis: int, shape: Sequence[int], x_strides: Strides, out_strides: Strides) -> ScanKernel:
    """Return the kernel of a pass along an axis.

    Args:
        how: "cumsum", "argmax" or "argmin".
        axis: the axis.
        shape: shape of the input.
        x_strides: strides of the input.
        out_strides: strides of the output, 0 along the axis where a row gives one number.
    """
    others = [place for place in range(len(shape)) if place != axis]
    return ScanKernel(
        how=how,
        shape=tuple(shape[place] for place in others) or (1,),
        x_strides=tuple(x_strides[place] for place in others) or (0,),
        out_strides=tuple(out_strides[place] for place in others) or (0,),
        length=shape[axis],
        steps=(x_strides[axis], out_strides[axis]),
    )
