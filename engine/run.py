"""One run of a plan. All that changes during a run lives here."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns

import numpy as np

from engine.dtypes import Array
from engine.errors import RunStoppedError
from engine.plan import Plan, Step
from engine.spec import Value, arrays_in
from engine.trace import LayerTrace, OperandTrace, RunTrace, TraceLevel, shares, trace_operand

StopCheck = Callable[[], str | None]
"""Asked before each layer; a text stops the run and says why, None lets it go on."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run gave.

    Attributes:
        outputs: the graph's outputs, nested tuples flattened in order.
        trace: the trace, or None where it was off.
        captured: operand name -> value of each operand that was asked for.
    """

    outputs: list[Array]
    trace: RunTrace | None = None
    captured: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Record:
    """Raw stamps of one step; turned into a `LayerTrace` when the run is over."""

    start_ns: int
    end_ns: int
    inputs: tuple[OperandTrace, ...]
    outputs: tuple[OperandTrace, ...]
    bytes_moved: int


class Run:
    """A run in progress: one value per operand slot, dropped after its last use."""

    def __init__(
        self, plan: Plan, level: TraceLevel, capture: Collection[str], stop: StopCheck | None
    ) -> None:
        self._plan = plan
        self._level = level
        self._capture = {plan.slots[name]: name for name in capture}
        self._stop = stop
        self._values: list[Value] = [None] * len(plan.slots)
        self._captured: dict[str, Value] = {}
        self._records: list[_Record] = []

    def execute(self, inputs: Mapping[str, Array], outputs: Sequence[str]) -> RunResult:
        """Run the plan.

        Args:
            inputs: operand name -> array, of the shapes that the plan was made for.
            outputs: names of the operands that leave the graph, in order.

        Raises:
            LayerError: a layer cannot run on what reached it.
            RunStoppedError: the stop check said so.
        """
        for name, array in inputs.items():
            self._values[self._plan.slots[name]] = array
        started = perf_counter_ns()
        # inf and nan are results like any other here, as they are in PyTorch
        with np.errstate(all="ignore"):
            for step in self._plan.steps:
                self._check_stop(step)
                self._execute_step(step)
        values = [self._values[self._plan.slots[name]] for name in outputs]
        arrays = [array for value in values for array in arrays_in(_as_tensors(value))]
        trace = self._trace(started) if self._level else None
        return RunResult(arrays, trace, self._captured)

    def _check_stop(self, step: Step) -> None:
        reason = self._stop() if self._stop is not None else None
        if reason is not None:
            raise RunStoppedError(f"stopped before {step.operator.type} {step.operator.name}: {reason}")

    def _execute_step(self, step: Step) -> None:
        values = self._values
        inputs = [values[slot] for slot in step.inputs]
        started = perf_counter_ns()
        if step.operator.type != "pnnx.Input":
            for slot, value in zip(step.outputs, step.layer.forward(inputs), strict=True):
                values[slot] = value
        ended = perf_counter_ns()
        if self._level:
            self._record(step, inputs, started, ended)
        for slot in self._capture.keys() & step.outputs:
            self._captured[self._capture[slot]] = values[slot]
        for slot in step.release:
            values[slot] = None

    def _record(self, step: Step, inputs: Sequence[Value], started: int, ended: int) -> None:
        outputs = [self._values[slot] for slot in step.outputs]
        with_statistics = self._level >= TraceLevel.STATISTICS
        moved = step.bytes_moved
        if moved is None:
            touched = [array for value in (*inputs, *outputs) for array in arrays_in(value)]
            moved = step.layer.attribute_bytes + sum(array.nbytes for array in touched)
        taken = zip(step.operator.inputs, inputs, strict=True)
        given = zip(step.operator.outputs, outputs, strict=True)
        self._records.append(
            _Record(
                started,
                ended,
                tuple(trace_operand(operand.name, value) for operand, value in taken),
                tuple(trace_operand(operand.name, value, with_statistics) for operand, value in given),
                moved,
            )
        )

    def _trace(self, started: int) -> RunTrace:
        durations = [(record.end_ns - record.start_ns) / 1000 for record in self._records]
        layers = tuple(
            LayerTrace(
                index=index,
                name=step.operator.name,
                type=step.operator.type,
                inputs=record.inputs,
                outputs=record.outputs,
                start_us=(record.start_ns - started) / 1000,
                duration_us=duration,
                share=share,
                multiply_adds=step.multiply_adds,
                bytes_moved=record.bytes_moved,
            )
            for index, (step, record, duration, share) in enumerate(
                zip(self._plan.steps, self._records, durations, shares(durations), strict=True)
            )
        )
        total = (self._records[-1].end_ns - started) / 1000 if self._records else 0.0
        return RunTrace(total, layers)


def _as_tensors(value: Value) -> Value:
    """Turn Python scalars that leave the graph into the tensors that PyTorch would make of them."""
    if isinstance(value, tuple | list):
        return tuple(_as_tensors(item) for item in value)
    if isinstance(value, float):
        return np.asarray(value, np.float32)
    if isinstance(value, complex):
        return np.asarray(value, np.complex64)
    return value if value is None or isinstance(value, str) else np.asarray(value)
