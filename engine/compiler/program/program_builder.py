"""Program builder: kernel calls and operators in numpy of a program before its memory layout."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.compiler.emit.jit import Code
from engine.compiler.graph import Guard
from engine.compiler.memory.alignment import WORD
from engine.compiler.memory.arena import ArenaPool, Lifetime, arrange, least_size
from engine.compiler.memory.view import Buffer, BufferKind, View
from engine.compiler.memory.weights import PackedWeights, fetch_side_by_side
from engine.compiler.program.address_table import AddressTable
from engine.compiler.program.instruction import NativeSteps, NumpyStep
from engine.compiler.program.observable import Observables
from engine.compiler.program.program import Program
from engine.compiler.selection import KernelCall
from engine.compiler.threads.segment import NativeStep, Segment
from engine.errors import CompileError
from engine.precision import Precision
from engine.run.plan import MAX_RUN_BYTES, Plan
from engine.spec import TensorSpec

MAX_ARENA_BYTES = 2 * MAX_RUN_BYTES
"""Bytes of intermediate tensors and scratch memory of a program at most: kernels may need more than the plan counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramBuilder:
    """A program whose memory is not laid out yet.

    Attributes:
        calls: the kernel calls.
        owners: for each call, the place in the plan of the operator that its time counts for.
        instructions: instructions of a run, in order: indices of calls of one segment, or a reference layer.
        uses: buffers of the arena, each with the first and the last instruction that it is in use at.
        constants: slot -> value that no input changes.
        guards: bounds of inputs that kernels assume.
        exports, dtypes, releases, order, fused_into, fused, native, folded, observables, precisions, roughly_known: as
            those of `Program`.
    """

    calls: tuple[KernelCall, ...]
    owners: tuple[int, ...]
    instructions: tuple[tuple[int, ...] | NumpyStep, ...]
    uses: tuple[tuple[Buffer, int, int], ...]
    constants: dict[int, object]
    exports: dict[int, View]
    dtypes: dict[int, np.dtype[Any]]
    guards: tuple[Guard, ...]
    releases: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    fused_into: dict[int, int]
    fused: dict[int, tuple[int, ...]]
    native: frozenset[int]
    folded: frozenset[int]
    observables: Observables
    precisions: dict[int, Precision]
    roughly_known: frozenset[int]

    def finish(self, plan: Plan, codes: Callable[[], Sequence[Code]], threads: int) -> Program:
        """Lay out memory, fill the table of addresses and return the program.

        Args:
            plan: its plan.
            codes: returns the code of each call's kernel; called after the memory of a run is checked.
            threads: threads that share a run.

        Raises:
            CompileError: it would take too much memory.
        """
        lifetimes = [Lifetime(buffer.size * WORD, first, last) for buffer, first, last in self.uses]
        arrangement = arrange(lifetimes)
        offsets = {use[0]: offset for use, offset in zip(self.uses, arrangement.offsets, strict=True)}
        scratch = max((call.kernel.scratch for call in self.calls), default=0) * WORD * threads
        _check_size(arrangement.size + scratch)
        compiled = codes()
        fetch_side_by_side(self._packed_weights())
        table = AddressTable(offsets, arrangement.size)
        steps = [
            NativeStep(code, table.add(call), call.kernel.chunks)
            for code, call in zip(compiled, self.calls, strict=True)
        ]
        template, relative = table.finish()
        tensors = {slot: plan.specs.get(name) for name, slot in plan.slots.items()}
        shapes = {slot: spec.shape for slot, spec in tensors.items() if isinstance(spec, TensorSpec)}
        names = {slot: name for name, slot in plan.slots.items()}
        return Program(
            plan=plan,
            instructions=tuple(self._in_order(steps)),
            calls=self.calls,
            values=self._values(plan),
            inputs=table.patches(BufferKind.VALUE, shapes),
            outputs=table.patches(BufferKind.OUTPUT, shapes),
            exports=self.exports,
            dtypes=self.dtypes,
            guards=tuple((names[guard.slot], guard.least, guard.largest) for guard in self.guards),
            releases=self.releases,
            order=self.order,
            fused_into=self.fused_into,
            fused=self.fused,
            native=self.native,
            folded=self.folded,
            arenas=ArenaPool(arrangement.size + scratch, template, relative),
            arrangement=arrangement,
            least_bytes=least_size(lifetimes),
            scratch_bytes=scratch,
            threads=threads,
            offsets=offsets,
            loads=tuple(table.loads),
            observables=self.observables,
            precisions=self.precisions,
            roughly_known=self.roughly_known,
        )

    def _packed_weights(self) -> Iterator[PackedWeights]:
        """Yield the weights that kernels read, each once."""
        loads = [view.buffer.load for call in self.calls for view in call.arguments]
        owners = [getattr(load, "__self__", None) for load in loads]
        yield from {id(owner): owner for owner in owners if isinstance(owner, PackedWeights)}.values()

    def _in_order(self, steps: Sequence[NativeStep]) -> Iterator[NativeSteps | NumpyStep]:
        done = 0
        for instruction in self.instructions:
            if isinstance(instruction, NumpyStep):
                yield instruction
                done += 1
                continue
            owners = tuple(self.owners[place] for place in instruction)
            yield NativeSteps(Segment([steps[place] for place in instruction]), owners, done)
            done += len(instruction)

    def _values(self, plan: Plan) -> tuple[object, ...]:
        values: list[object] = [None] * len(plan.slots)
        for slot, value in self.constants.items():
            values[slot] = value
        return tuple(values)


def _check_size(size: int) -> None:
    if size > MAX_ARENA_BYTES:
        problem = f"a program needs {size:,} bytes besides its inputs and outputs"
        raise CompileError(f"{problem}; expected at most {MAX_ARENA_BYTES:,}")
