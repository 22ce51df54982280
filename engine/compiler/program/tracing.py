"""The trace of a compiled run: every operator of the model, whichever kernel did its work."""

from collections.abc import Mapping
from typing import NamedTuple

from engine.compiler.program.execution import NativeRun, StepTimes
from engine.compiler.program.instruction import NativeSteps
from engine.compiler.program.program import Program
from engine.dtypes import pnnx_name
from engine.model.operator import RuntimeOperand
from engine.precision import Precision
from engine.run.plan import Step
from engine.run.trace import Candidate, LayerTrace, OperandTrace, RunTrace, shares, trace_operand
from engine.spec import Spec, TensorSpec, arrays_in


class _Row(NamedTuple):
    """Constant part of an operator's trace; None for what is known only at run time."""

    place: int
    step: Step
    inputs: tuple[OperandTrace | None, ...]
    outputs: tuple[OperandTrace | None, ...]
    backend: str
    fused: tuple[str, ...]
    fused_into: str | None
    precision: str
    candidates: tuple[Candidate, ...]


class Tracer:
    """Builds the traces of a program's runs; constant parts are built once.

    The time of a kernel counts for the operator that it begins with; those that were fused into it took none.
    """

    def __init__(self, program: Program) -> None:
        self._slots, self._specs = program.plan.slots, program.plan.specs
        candidates = _candidates(program)
        self._rows = [_row(program, place, candidates.get(place, ())) for place in program.order]
        self._is_known = all(
            None not in (*row.inputs, *row.outputs) and row.step.bytes_moved is not None for row in self._rows
        )

    def trace(self, run: NativeRun, started: int, seen: Mapping[str, OperandTrace] | None = None) -> RunTrace:
        """Return the trace of a run.

        Args:
            run: the run, at its end.
            started: when it began, in nanoseconds of `perf_counter_ns`.
            seen: of an observed run, what was seen of operands, by name; None for any other run.
        """
        end = max((began + took for began, took in run.timestamps.values()), default=started)
        total = (end - started) / 1000
        if seen is not None:
            layers = tuple(_with_seen(layer, seen) for layer in self._layers(run.timestamps, started, run))
            return RunTrace(total, layers, started, is_observed=True)
        if not self._is_known:
            return RunTrace(total, self._layers(run.timestamps, started, run), started)
        # only the run's timestamps are recorded: the trace of each layer is built when it is first read
        timestamps = run.timestamps
        return RunTrace(total, lambda: self._layers(timestamps, started, None), started)

    def _layers(self, timestamps: StepTimes, started: int, run: NativeRun | None) -> tuple[LayerTrace, ...]:
        durations = [
            timestamps[row.place][1] / 1000 if row.place in timestamps else 0.0 for row in self._rows
        ]
        layers = []
        now = started
        for index, (row, duration, share) in enumerate(
            zip(self._rows, durations, shares(durations), strict=True)
        ):
            began, took = timestamps.get(row.place, (now, 0))
            now = max(now, began + took)
            step = row.step
            operator = step.operator
            moved = step.bytes_moved
            layers.append(
                LayerTrace(
                    index=index,
                    name=operator.source.name,
                    type=operator.source.type,
                    inputs=self._operands(run, operator.inputs, row.inputs),
                    outputs=self._operands(run, operator.outputs, row.outputs),
                    start_us=(began - started) / 1000,
                    duration_us=duration,
                    share=share,
                    multiply_adds=step.multiply_adds,
                    bytes_moved=_bytes_moved(run, step, self._specs) if moved is None else moved,
                    backend=row.backend,
                    fused=row.fused,
                    fused_into=row.fused_into,
                    precision=row.precision,
                    candidates=row.candidates,
                )
            )
        return tuple(layers)

    def _operands(
        self, run: NativeRun | None, operands: list[RuntimeOperand], known: tuple[OperandTrace | None, ...]
    ) -> tuple[OperandTrace, ...]:
        return tuple(
            self._operand(run, operand.name) if trace is None else trace
            for operand, trace in zip(operands, known, strict=True)
        )

    def _operand(self, run: NativeRun | None, name: str) -> OperandTrace:
        if run is None:
            raise ValueError("an operand without a known shape is known only from its run")
        return trace_operand(name, run.values[self._slots[name]])


def _with_seen(layer: LayerTrace, seen: Mapping[str, OperandTrace]) -> LayerTrace:
    return layer._replace(outputs=tuple(seen.get(operand.name, operand) for operand in layer.outputs))


def _candidates(program: Program) -> dict[int, tuple[Candidate, ...]]:
    """Return the ways to compute each step that the compiler considered, by its place in the plan."""
    parts = [part for part in program.instructions if isinstance(part, NativeSteps)]
    owners = [owner for part in parts for owner in part.owners]
    return {
        owner: call.candidates for owner, call in zip(owners, program.calls, strict=True) if call.candidates
    }


def _row(program: Program, place: int, candidates: tuple[Candidate, ...]) -> _Row:
    step = program.plan.steps[place]
    names = [other.operator.source.name for other in program.plan.steps]
    into = program.fused_into.get(place)
    return _Row(
        place=place,
        step=step,
        inputs=_known(program, step.operator.inputs),
        outputs=_known(program, step.operator.outputs),
        backend=_backend(program, place),
        fused=tuple(names[other] for other in program.fused.get(place, ())),
        fused_into=None if into is None else names[into],
        precision=program.precisions.get(place, Precision.F32).value,
        candidates=candidates,
    )


def _known(program: Program, operands: list[RuntimeOperand]) -> tuple[OperandTrace | None, ...]:
    """Return operands as they are in every run, None for those known only at run time."""
    return tuple(_trace_before(program, operand.name) for operand in operands)


def _trace_before(program: Program, name: str) -> OperandTrace | None:
    spec, slot = program.plan.specs.get(name), program.plan.slots[name]
    if isinstance(spec, TensorSpec):
        return OperandTrace(name, spec.shape, pnnx_name(spec.dtype))
    if program.values[slot] is not None:
        return trace_operand(name, program.values[slot])  # type: ignore[arg-type]  # values of operands all
    is_made = slot in program.observables.by_slot
    return OperandTrace(name, None, "tuple") if isinstance(spec, tuple) and not is_made else None


def _bytes_moved(run: NativeRun | None, step: Step, specs: Mapping[str, Spec]) -> int:
    if run is None:
        raise ValueError("bytes are known only from their run")
    total = step.layer.attribute_bytes
    operands = (*step.operator.inputs, *step.operator.outputs)
    for operand, slot in zip(operands, (*step.inputs, *step.outputs), strict=True):
        spec = specs.get(operand.name)
        if isinstance(
            spec, TensorSpec
        ):  # its value may be in the run's memory, where the trace does not look
            total += spec.nbytes
        else:
            total += sum(array.nbytes for array in arrays_in(run.values[slot]))
    return total


def _backend(program: Program, place: int) -> str:
    if place in program.native:
        return "native"
    return "folded" if place in program.folded else "numpy"
