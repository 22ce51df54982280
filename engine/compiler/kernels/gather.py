"""Elements at indices: rows of a table, slices, single elements.

Arguments: source, indices, output, then `sizes`. Indices are integers stored as float32.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.jit import Kernel
from engine.compiler.emit.runtime_sizes import RuntimeSizes, only_ones
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.kernels.strided_loops import Strides
from engine.compiler.memory.region import Region

_CHUNK = 1 << 14
"""Elements of a chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherKernel(Kernel):
    """A gather with runtime extents and strides: one code for tensors of all shapes.

    An index out of range is clamped: the caller has checked them.

    Attributes:
        shape: shape of the output.
        x_strides: elements of the source between neighbours along each axis of the output.
        limits: extent of the source along the axis of each index.
        steps: elements of the source between neighbours along it.
        index_strides: strides of each index along each axis of the output.
        out_strides: strides of the output.
    """

    shape: tuple[int, ...]
    x_strides: Strides
    limits: tuple[int, ...]
    steps: tuple[int, ...]
    index_strides: tuple[Strides, ...]
    out_strides: Strides

    @property
    def general(self) -> "GatherKernel":
        """The kernel whose code this one runs: it knows along what the last axis goes in steps of one or not at all."""
        none = (0,) * (len(self.shape) - 1)
        return replace(
            self,
            shape=(*none, 0),
            x_strides=(*none, *only_ones(self.x_strides[-1:])),
            limits=(0,) * len(self.limits),
            steps=(0,) * len(self.steps),
            index_strides=tuple((*none, int(strides[-1] != 0)) for strides in self.index_strides),
            out_strides=(*none, *only_ones(self.out_strides[-1:])),
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Runtime dimensions: units of a chunk, then all attributes in their order."""
        indices = [step for strides in self.index_strides for step in strides]
        others = (*self.limits, *self.steps, *indices, *self.out_strides)
        return -(-prod(self.shape[:-1]) // self.chunks), *self.shape, *self.x_strides, *others

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        source = Region((*self.shape, *self.limits), (*self.x_strides, *self.steps))
        indices = (Region(self.shape, strides) for strides in self.index_strides)
        return source, *indices, Region(self.shape, self.out_strides, is_written=True)

    @property
    def chunks(self) -> int:
        """Parts that the work is split into: lines along the last axis."""
        return max(1, min(prod(self.shape[:-1]), prod(self.shape) // _CHUNK))

    def emit(self, e: Emitter) -> None:
        """Write the kernel: lines along the last axis of the output."""
        rank, count = len(self.shape), len(self.index_strides)
        x, *indices, out = (e.argument(place) for place in range(count + 2))
        sizes = RuntimeSizes(e, count + 2)
        grain = sizes.one()
        shape, x_strides = (sizes.some((0,) * rank) for _ in range(2))
        limits, steps = (sizes.some((0,) * count) for _ in range(2))
        index_strides = [sizes.some((0,) * rank) for _ in range(count)]
        out_strides = sizes.some((0,) * rank)
        with e.chunk_loop(grain, e.product(shape[:-1])) as loop:
            place = e.unravel(loop.index, shape[:-1]) if rank > 1 else []
            source, target = (
                e.address(base, *map(e.mul, place, strides[:-1]))
                for base, strides in ((x, x_strides), (out, out_strides))
            )
            lines_of = [
                e.address(base, *map(e.mul, place, strides[:-1]))
                for base, strides in zip(indices, index_strides, strict=True)
            ]
            for number, line in enumerate(lines_of):
                if not self.index_strides[number][-1]:
                    offset = e.mul(_index(e, line, limits[number]), steps[number])
                    source = e.address(source, offset)
            along = [
                (line, strides[-1], limit, step)
                for line, strides, limit, step, known in zip(
                    lines_of, index_strides, limits, steps, self.index_strides, strict=True
                )
                if known[-1]
            ]
            self._emit_line(e, (source, x_strides[-1]), (target, out_strides[-1]), shape[-1], along)

    def _emit_line(
        self,
        e: Emitter,
        source: tuple[IRValue, IRIndex],
        target: tuple[IRValue, IRIndex],
        length: IRIndex,
        along: Sequence[tuple[IRValue, IRIndex, IRIndex, IRIndex]],
    ) -> None:
        """Write one line: side by side in source and output, or element by element."""
        if not along and self.x_strides[-1] == self.out_strides[-1] == 1:
            for index, count in e.each_vector(length):
                e.store(e.load(source[0], index, count=count), target[0], index, count=count)
            return
        with e.loop(0, length) as loop:
            offsets = [
                e.mul(_index(e, line, limit, e.mul(loop.index, stride)), step)
                for line, stride, limit, step in along
            ]
            value = e.load_scalar(source[0], e.mul(loop.index, source[1]), *offsets)
            e.store_scalar(value, target[0], e.mul(loop.index, target[1]))


def _index(e: Emitter, base: IRValue, limit: IRIndex, *offset: IRIndex) -> IRIndex:
    """Return an element as an integer, clamped to 0 up to below a limit."""
    last = e.to_float(e.sub(limit, 1))
    # what is on the right of a comparison is taken where the other is NaN
    number = e.fmax(e.fmin(e.load_scalar(base, *offset), last), e.scalar(0.0))
    return e.to_integer(number)
