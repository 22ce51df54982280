"""One run of a plan. All that changes during a run lives here."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns

import numpy as np

from engine.binding.requantization import to_real
from engine.dtypes import Array
from engine.errors import InputError, describe_problem, stopped_before
from engine.run.plan import MAX_RUN_BYTES, Plan, Step, check_step
from engine.run.recorder import Recorder
from engine.run.trace import RunTrace, TraceLevel
from engine.spec import QuantizedTensor, Value, arrays_in

StopCheck = Callable[[], str | None]
"""Called before each layer; a text stops the run and is the reason, None lets it continue."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """Result of a run.

    Attributes:
        outputs: the graph's outputs, nested tuples flattened in order.
        trace: the trace, or None where it was off.
        captured: operand name -> value of each operand that was requested, quantized ones as real numbers.
        captured_by: operand name -> which backend computed that value: `native` for the live compiled program,
            including its constants and operators in numpy; `numpy` for a run of the reference on the same
            inputs, as for a tensor that never leaves the registers of a compiled kernel.
    """

    outputs: list[Array]
    trace: RunTrace | None = None
    captured: dict[str, Value] = field(default_factory=dict)
    captured_by: dict[str, str] = field(default_factory=dict)

    @property
    def is_observed(self) -> bool:
        """Whether the run captured values or took statistics: its times are not those of plain runs."""
        return bool(self.captured) or (self.trace is not None and self.trace.is_observed)


class Run:
    """A run in progress: one value per operand slot, dropped after its last use."""

    def __init__(
        self,
        plan: Plan,
        level: TraceLevel = TraceLevel.OFF,
        capture: Collection[str] = (),
        stop: StopCheck | None = None,
        max_bytes: int = MAX_RUN_BYTES,
    ) -> None:
        self._plan = plan
        self._recorder = Recorder(plan, level, bool(capture)) if level else None
        self._capture = {plan.slots[name]: name for name in capture}
        self._stop = stop
        self._max_bytes = max_bytes
        self._values: list[Value] = [None] * len(plan.slots)
        self._captured: dict[str, Value] = {}

    def execute(self, inputs: Mapping[str, Array], outputs: Sequence[str]) -> RunResult:
        """Run the plan.

        Args:
            inputs: operand name -> array, of the shapes that the plan was made for.
            outputs: names of the operands that leave the graph, in order.

        Raises:
            LayerError: a layer cannot run on what reached it.
            RunStoppedError: the stop check stopped the run.
        """
        for name, array in inputs.items():
            self._values[self._plan.slots[name]] = array
        started = perf_counter_ns()
        # inf and nan are results like any other here, as they are in PyTorch
        with np.errstate(all="ignore"):
            for step in self._plan.steps:
                if self._stop is not None:
                    self._check_stop(step, self._stop)
                self._execute_step(step)
        values = [self._values[self._plan.slots[name]] for name in outputs]
        arrays = [array for value in values for array in arrays_in(as_tensors(value))]
        trace = self._recorder.finish(started) if self._recorder is not None else None
        return RunResult(arrays, trace, self._captured, dict.fromkeys(self._captured, "numpy"))

    def _check_stop(self, step: Step, stop: StopCheck) -> None:
        reason = stop()
        if reason is not None:
            raise stopped_before(step.operator.type, step.operator.name, reason)

    def _execute_step(self, step: Step) -> None:
        values = self._values
        inputs = [values[slot] for slot in step.inputs]
        started = perf_counter_ns()
        if not step.is_checked:
            check_step(step, inputs, self._max_bytes)
        if not step.is_input:
            for slot, value in zip(step.outputs, step.layer.forward(inputs), strict=True):
                values[slot] = value
        if self._recorder is not None:
            outputs = [values[slot] for slot in step.outputs]
            self._recorder.record(step, inputs, outputs, started, perf_counter_ns())
        if self._capture:
            for slot in self._capture.keys() & step.outputs:
                self._captured[self._capture[slot]] = to_real(values[slot])
        for slot in step.release:
            values[slot] = None


def check_capture(names: Collection[str], operands: Collection[str]) -> None:
    """Check the names of the requested operands.

    Raises:
        InputError: they are one text rather than a list, or the graph has no such operand.
    """
    if isinstance(names, str):  # a collection as well, of its letters
        raise InputError(describe_problem("capture", f"is the text {names!r:.80}", "a list of operand names"))
    unknown = [name for name in names if name not in operands]
    if unknown:
        raise InputError(f"capture: the graph has no operand called {', '.join(map(repr, unknown))}")


def as_tensors(value: Value) -> Value:
    """Turn Python scalars that leave the graph into the tensors that PyTorch would make of them."""
    if isinstance(value, tuple | list):
        return tuple(as_tensors(item) for item in value)
    if isinstance(value, QuantizedTensor):
        return value.real()
    if isinstance(value, float | complex):
        with np.errstate(all="ignore"):  # what float32 cannot hold is infinite
            return np.asarray(value, np.float32 if isinstance(value, float) else np.complex64)
    return value if value is None or isinstance(value, str) else np.asarray(value)
