"""Runs of programs without operators in numpy: Python handles only addresses and results.

A run of a small model takes a hundred microseconds, so that all which is the same in each of them is found once.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from engine.compiler.memory.alignment import row_by_row
from engine.compiler.memory.arena import Patch
from engine.compiler.program.instruction import NativeSteps
from engine.compiler.program.program import Program
from engine.compiler.threads.thread_team import run_segment
from engine.dtypes import Array
from engine.errors import RunStoppedError, stopped_before
from engine.run.stop import StopSignal

_FLOAT32 = np.dtype(np.float32)


class KernelRun:
    """Shared state of a program's runs without trace or observation. Immutable.

    It references parts of the program, not the program itself, so that a weak dictionary by program may hold it.

    Args:
        program: the program.
        instruction: all that it does.
        inputs: the arrays that kernels read, by operand name.
        outputs: the arrays that leave the graph, in order.
    """

    __slots__ = ("_arenas", "_dtypes", "_inputs", "_instruction", "_outputs", "_steps", "_threads")

    def __init__(
        self,
        program: Program,
        instruction: NativeSteps,
        inputs: Sequence[tuple[str, Patch]],
        outputs: Sequence[Patch],
    ) -> None:
        self._arenas = program.arenas
        self._steps = program.plan.steps
        self._instruction = instruction
        self._threads = program.threads
        self._inputs = tuple(inputs)
        self._outputs = tuple(outputs)
        self._dtypes = [program.dtypes.get(patch.slot) for patch in outputs] if program.dtypes else None

    def execute(self, inputs: Mapping[str, Array], stop: StopSignal | None) -> list[Array]:
        """Run the program; returns the graph's outputs, as `NativeRun.execute` does.

        Raises:
            LayerError: an input has another shape than was planned.
            RunStoppedError: the signal stopped the run.
        """
        arena = self._arenas.take()
        try:
            held = []  # the kernels read these by address
            for name, patch in self._inputs:
                held.append(array := row_by_row(inputs[name]))
                patch.fill_in(arena, array)
            outputs = []
            for patch in self._outputs:
                outputs.append(array := np.empty(patch.shape, _FLOAT32))
                patch.fill_in(arena, array)
            done = run_segment(self._threads, self._instruction.segment, arena.table_address, None, stop)
        finally:
            self._arenas.give_back(arena)
        if done < len(self._instruction.segment.steps):
            raise self._stopped(done, stop)
        if self._dtypes is not None:
            pairs = zip(outputs, self._dtypes, strict=True)
            outputs = [array if dtype is None else array.astype(dtype) for array, dtype in pairs]
        return outputs

    def _stopped(self, done: int, stop: StopSignal | None) -> RunStoppedError:
        operator = self._steps[self._instruction.owners[done]].operator
        return stopped_before(operator.type, operator.name, None if stop is None else stop())


def kernel_run(program: Program, outputs: Sequence[str]) -> KernelRun | None:
    """Return what the runs of a program have in common; None where anything but kernels has a part in them.

    Args:
        program: the program.
        outputs: names of the operands that leave the graph, in order.
    """
    if len(program.instructions) != 1 or not isinstance(program.instructions[0], NativeSteps):
        return None
    plan = program.plan
    names = {slot: name for name, slot in plan.slots.items()}
    given = {slot for step in plan.steps if step.is_input for slot in step.outputs}
    written = {patch.slot: patch for patch in program.outputs}
    leaving = [plan.slots[name] for name in outputs]
    # an input or constant that leaves the graph is no new array, nor is an output that leaves it twice
    if sorted(leaving) != sorted(written) or not all(patch.slot in given for patch in program.inputs):
        return None
    inputs = [(names[patch.slot], patch) for patch in program.inputs]
    return KernelRun(program, program.instructions[0], inputs, [written[slot] for slot in leaving])
