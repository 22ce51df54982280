"""Records a run: times while it is in progress, converted to a trace afterwards."""

from collections.abc import Sequence
from typing import NamedTuple

from engine.run.plan import Plan, Step
from engine.run.trace import LayerTrace, OperandTrace, RunTrace, TraceLevel, shares, trace_operand
from engine.spec import Value, arrays_in


class _Record(NamedTuple):
    """Stamps of one step; what it took is what other steps gave."""

    start_ns: int
    end_ns: int
    outputs: tuple[OperandTrace, ...]
    bytes_moved: int


class Recorder:
    """Records the steps of one run in the order of its plan.

    Args:
        plan: the plan of the run.
        level: the trace level.
        is_observed: whether the run also captures values.
    """

    def __init__(self, plan: Plan, level: TraceLevel, is_observed: bool = False) -> None:
        self._plan = plan
        self._is_observed = is_observed or level >= TraceLevel.STATISTICS
        self._with_statistics = level >= TraceLevel.STATISTICS
        self._records: list[_Record] = []

    def record(
        self, step: Step, inputs: Sequence[Value], outputs: Sequence[Value], started: int, ended: int
    ) -> None:
        """Record that a step ran, between two readings of the clock in nanoseconds."""
        moved = step.bytes_moved
        if moved is None:
            touched = [array for value in (*inputs, *outputs) for array in arrays_in(value)]
            moved = step.layer.attribute_bytes + sum(array.nbytes for array in touched)
        operands = step.operator.outputs
        backend = "numpy" if self._with_statistics else None
        given = tuple(
            trace_operand(operand.name, value, backend)
            for operand, value in zip(operands, outputs, strict=True)
        )
        self._records.append(_Record(started, ended, given, moved))

    def finish(self, started: int) -> RunTrace:
        """Return the trace of the run that began at `started`."""
        durations = [(record.end_ns - record.start_ns) / 1000 for record in self._records]
        operands: dict[str, OperandTrace] = {}
        layers = []
        for index, (step, record, share) in enumerate(
            zip(self._plan.steps, self._records, shares(durations), strict=True)
        ):
            layers.append(
                LayerTrace(
                    index=index,
                    name=step.operator.source.name,
                    type=step.operator.source.type,
                    inputs=tuple([operands[operand.name] for operand in step.operator.inputs]),
                    outputs=record.outputs,
                    start_us=(record.start_ns - started) / 1000,
                    duration_us=durations[index],
                    share=share,
                    multiply_adds=step.multiply_adds,
                    bytes_moved=record.bytes_moved,
                    precision=step.layer.precision.value,
                )
            )
            for given in record.outputs:
                operands[given.name] = given.plain
        total = (self._records[-1].end_ns - started) / 1000 if self._records else 0.0
        return RunTrace(total, tuple(layers), started, self._is_observed)
