"""Observes the tensors of a program while it runs: the program that serves, paused whenever a tensor is complete.

Tensors share memory, so that each is read right after the kernel call that completes it. What is computed stays the
same to the bit; only the time that it takes does not.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.binding.requantization import to_real
from engine.compiler.program.execution import NativeRun
from engine.compiler.program.instruction import NativeSteps
from engine.compiler.program.program import Program
from engine.dtypes import Array
from engine.model.operator import RuntimeOperator
from engine.run.run import RunResult
from engine.run.trace import OperandTrace, TraceLevel, trace_operand
from engine.spec import Value


@dataclass(frozen=True, slots=True)
class Observation:
    """An operand's value in a program.

    Attributes:
        operand: the operand's name.
        operator: the operator that gives it.
        value: its value, in memory of its own.
    """

    operand: str
    operator: RuntimeOperator
    value: Value


class RunObserver:
    """Observes chosen operands of one run.

    Args:
        program: the program that runs.
        names: operands to observe; those that do not exist in the program's runs are skipped.
        look: gets an operand's name and value. An array may lie in the memory of the run, where the next kernel
            overwrites it: copy it to keep it.
    """

    def __init__(self, program: Program, names: Collection[str], look: Callable[[str, Value], None]) -> None:
        self._look = look
        self._due: dict[int, list[tuple[str, int]]] = {}
        slots, places = program.plan.slots, program.observables.by_slot
        for name in names:
            place = places.get(slots[name])
            if place is not None:
                self._due.setdefault(place.moment, []).append((name, slots[name]))

    def cuts(self, instruction: NativeSteps) -> Sequence[int]:
        """Return after how many of the calls there is something to observe, and the number of all calls."""
        count = len(instruction.segment)
        return [done for done in range(1, count) if instruction.first + done - 1 in self._due] + [count]

    def look(self, number: int, value: Callable[[int], Value]) -> None:
        """Observe the operands that are complete right after a call or numpy step."""
        for name, slot in self._due.get(number, ()):
            self._look(name, value(slot))


class Records:
    """The requested values and statistics of operands of one run.

    Args:
        capture: operands whose values to keep.
        level: whether statistics of all others are requested.

    Attributes:
        operands: operand name -> its trace, with statistics where requested.
    """

    def __init__(self, capture: Collection[str], level: TraceLevel) -> None:
        self._capture = list(dict.fromkeys(capture))
        self._with_statistics = level >= TraceLevel.STATISTICS
        self._values: dict[str, Value] = {}
        self._backends: dict[str, str] = {}
        self.operands: dict[str, OperandTrace] = {}

    @property
    def seen(self) -> Collection[str]:
        """Operands that are recorded."""
        return self._backends.keys()

    @property
    def captured(self) -> dict[str, Value]:
        """Operand name -> value, in the requested order, quantized ones as real numbers."""
        return {name: self._values[name] for name in self._capture}

    @property
    def captured_by(self) -> dict[str, str]:
        """Operand name -> backend that computed its value."""
        return {name: self._backends[name] for name in self._capture}

    def look(self, name: str, value: Value) -> None:
        """Record what the program computed for an operand."""
        self._backends[name] = "native"
        if name in self._capture:
            self._values[name] = to_real(kept(value))
        if self._with_statistics:
            self.operands[name] = trace_operand(name, value, "native")

    def complete(self, run: RunResult) -> None:
        """Record the reference implementation's results of operands that are not recorded yet."""
        layers = run.trace.layers if run.trace is not None else ()
        for operand in (operand for layer in layers for operand in layer.outputs):
            if operand.name not in self._backends:
                self._backends[operand.name] = "numpy"
                self.operands[operand.name] = operand
        self._values.update(run.captured)


def observe(
    program: Program, inputs: Mapping[str, Array], outputs: Sequence[str], max_run_bytes: int
) -> Iterator[Observation]:
    """Run a program and yield what it computed for every operand that exists in its runs, in execution order.

    The values of all of them are held at once. An operand that is not among them never leaves the registers of the
    kernel that computes it: see `Program.observable`.

    Args:
        program: the program.
        inputs: operand name -> array, of the shapes that the program was compiled for.
        outputs: names of the operands that leave the graph.
        max_run_bytes: maximum bytes of the results of a layer whose output shapes are known only at run time.

    Raises:
        LayerError: a layer cannot run on what reached it.
    """
    values: dict[str, Value] = {}

    def keep(name: str, value: Value) -> None:
        values[name] = kept(value)

    observer = RunObserver(program, program.plan.slots.keys(), keep)
    NativeRun(program, None, False, max_run_bytes, observer).execute(inputs, outputs)
    for place in program.order:
        operator = program.plan.steps[place].operator
        for operand in operator.outputs:
            if operand.name in values:
                yield Observation(operand.name, operator, values[operand.name])


def kept(value: Value) -> Value:
    """Return a value that the rest of the run cannot change: a copy of an array.

    Members of tuples and lists do so anyway: only tensors lie in the run's memory.
    """
    return value.copy() if isinstance(value, np.ndarray) else value
