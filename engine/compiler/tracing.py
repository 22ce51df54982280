"""The trace of a compiled run: every operator of the model, whichever kernel did its work."""

from engine.compiler.execution import NativeRun
from engine.compiler.program import Program
from engine.plan import Step
from engine.spec import Spec, TensorSpec
from engine.trace import LayerTrace, OperandTrace, RunTrace, shares, trace_operand
from engine.dtypes import pnnx_name


def trace_of(program: Program, run: NativeRun, started: int) -> RunTrace:
    """Return the trace of a run that began at `started`, in nanoseconds of `perf_counter_ns`.

    The time of a kernel counts for the operator that it begins with; those that were fused into it took none.
    """
    steps = program.plan.steps
    durations = [run.stamps.get(place, (0, 0))[1] / 1000 for place in range(len(steps))]
    operands: dict[str, OperandTrace] = {}
    layers = []
    now = started
    for place, (step, share) in enumerate(zip(steps, shares(durations), strict=True)):
        began, took = run.stamps.get(place, (now, 0))
        now = max(now, began + took)
        given = tuple(_operand(program, run, operand.name) for operand in step.operator.outputs)
        operands |= {operand.name: operand for operand in given}
        layers.append(
            LayerTrace(
                index=place,
                name=step.operator.source.name,
                type=step.operator.source.type,
                inputs=tuple(operands[operand.name] for operand in step.operator.inputs),
                outputs=given,
                start_us=(began - started) / 1000,
                duration_us=durations[place],
                share=share,
                multiply_adds=step.multiply_adds,
                bytes_moved=step.bytes_moved or 0,
                backend=_backend(program, place),
                fused=program.fused.get(place, ()),
                fused_into=_name(steps, program.fused_into.get(place)),
            )
        )
    return RunTrace((now - started) / 1000, tuple(layers), started)


def _operand(program: Program, run: NativeRun, name: str) -> OperandTrace:
    spec: Spec = program.plan.specs.get(name)
    if isinstance(spec, TensorSpec):
        return OperandTrace(name, spec.shape, pnnx_name(spec.dtype))
    return trace_operand(name, run.values[program.plan.slots[name]])


def _backend(program: Program, place: int) -> str:
    if place in program.native:
        return "native"
    return "folded" if place in program.folded else "numpy"


def _name(steps: tuple[Step, ...], place: int | None) -> str | None:
    return None if place is None else steps[place].operator.source.name
