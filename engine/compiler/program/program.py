"""A compiled plan: kernels with their arguments, operators in numpy between them, one arena for all in between."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.compiler.memory.arena import ArenaPool, Arrangement, Patch
from engine.compiler.memory.view import Buffer, View
from engine.compiler.program.instruction import NativeSteps, NumpyStep
from engine.compiler.program.observable import Observables
from engine.compiler.selection import KernelCall
from engine.dtypes import Array
from engine.precision import Precision
from engine.run.executor import Footprint
from engine.run.plan import Plan


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Program:
    """A compiled plan for inputs of given shapes. Immutable, shared by all runs.

    Attributes:
        plan: the plan that it was made of.
        instructions: instructions of a run, in order.
        calls: kernel calls, in order.
        values: slot -> value that no input changes; None elsewhere.
        inputs: addresses that are set to the arrays in slots.
        outputs: addresses of arrays that a run leaves behind.
        exports: slot -> memory of a tensor that operators in numpy read and that is no value of the run.
        dtypes: slot -> dtype that its tensor becomes where others than kernels see it, if that is not float32.
        guards: inputs of integers with the least and largest that kernels take; see `takes`.
        releases: for each instruction, the slots whose values nothing reads after it.
        order: the steps as they are done, fused ones after what they are fused into.
        fused_into: step -> the step whose kernel does its work.
        fused: step -> the other steps whose work its kernel does.
        native: steps that kernels do, fused ones among them.
        folded: steps that were done at build.
        arenas: memory for runs.
        arrangement: layout of the arena.
        least_bytes: peak bytes of tensors in use.
        scratch_bytes: bytes of scratch memory, in the arena after the tensors.
        threads: threads that share a run.
        offsets: buffer in the arena -> place of its first element there.
        loads: loaders of the constant arrays that kernels read; they share packed weights with other programs.
        observables: tensors that can be observed in a run, where and when.
        precisions: step -> what its kernel rounds the operands of products to; F32 for those left out.
        roughly_known: of these, steps of several products, whose intermediate results the reference implementation does
            not round as the kernels do.
    """

    plan: Plan
    instructions: tuple[NativeSteps | NumpyStep, ...]
    calls: tuple[KernelCall, ...]
    values: tuple[object, ...]
    inputs: tuple[Patch, ...]
    outputs: tuple[Patch, ...]
    exports: dict[int, View]
    dtypes: dict[int, np.dtype[Any]]
    guards: tuple[tuple[str, int, int], ...]
    releases: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    fused_into: dict[int, int]
    fused: dict[int, tuple[int, ...]]
    native: frozenset[int]
    folded: frozenset[int]
    arenas: ArenaPool
    arrangement: Arrangement
    least_bytes: int
    scratch_bytes: int
    threads: int
    offsets: dict[Buffer, int]
    loads: tuple[Callable[[], Array], ...]
    observables: Observables
    precisions: dict[int, Precision]
    roughly_known: frozenset[int]

    def takes(self, inputs: Mapping[str, Array]) -> bool:
        """Return whether kernels may run on these inputs: integers that are used as indices are in range.

        Where they are not, the reference implementation runs, and reports the error.
        """
        for name, least, largest in self.guards:
            array = inputs[name]
            if array.size and not (least <= array.min() and array.max() <= largest):
                return False
        return True

    @property
    def precisions_by_name(self) -> dict[str, Precision]:
        """The same by names of operators."""
        steps = self.plan.steps
        return {steps[place].operator.name: precision for place, precision in self.precisions.items()}

    @property
    def constants(self) -> tuple[Array, ...]:
        """The constant arrays that kernels read, each once."""
        arrays = [load() for load in self.loads]
        return tuple({id(array): array for array in arrays}.values())

    @property
    def observable(self) -> dict[str, str]:
        """Operand name -> name of the operand at which it can be seen; what is never computed is left out."""
        names = {slot: name for name, slot in self.plan.slots.items()}
        return {names[slot]: names[end] for slot, end in self.observables.ends.items()} | {
            names[slot]: names[slot] for slot in self.observables.by_slot
        }

    @property
    def footprint(self) -> Footprint:
        """The memory of the program."""
        return Footprint(
            arena_bytes=self.arrangement.size,
            least_bytes=self.least_bytes,
            scratch_bytes=self.scratch_bytes,
            constant_bytes=sum(array.nbytes for array in self.constants),
            native=len(self.native),
            numpy=sum(isinstance(instruction, NumpyStep) for instruction in self.instructions),
        )
