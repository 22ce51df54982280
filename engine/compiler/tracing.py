"""The trace of a compiled run: every operator of the model, whichever kernel did its work."""

from engine.compiler.execution import NativeRun
from engine.compiler.program import Program
from engine.dtypes import pnnx_name
from engine.plan import Step
from engine.spec import TensorSpec, arrays_in
from engine.trace import LayerTrace, OperandTrace, RunTrace, shares, trace_operand


def trace_of(program: Program, run: NativeRun, started: int) -> RunTrace:
    """Return the trace of a run that began at `started`, in nanoseconds of `perf_counter_ns`.

    The time of a kernel counts for the operator that it begins with; those that were fused into it took none.
    """
    steps = program.plan.steps
    durations = [run.stamps.get(place, (0, 0))[1] / 1000 for place in program.order]
    layers = []
    now = started
    for index, (place, share) in enumerate(zip(program.order, shares(durations), strict=True)):
        began, took = run.stamps.get(place, (now, 0))
        now = max(now, began + took)
        step = steps[place]
        layers.append(
            LayerTrace(
                index=index,
                name=_name(step),
                type=step.operator.source.type,
                inputs=tuple(_operand(program, run, operand.name) for operand in step.operator.inputs),
                outputs=tuple(_operand(program, run, operand.name) for operand in step.operator.outputs),
                start_us=(began - started) / 1000,
                duration_us=durations[index],
                share=share,
                multiply_adds=step.multiply_adds,
                bytes_moved=_bytes_moved(run, step),
                backend=_backend(program, place),
                fused=tuple(_name(steps[other]) for other in program.fused.get(place, ())),
                fused_into=_name(steps[program.fused_into[place]]) if place in program.fused_into else None,
            )
        )
    return RunTrace((now - started) / 1000, tuple(layers), started)


def _operand(program: Program, run: NativeRun, name: str) -> OperandTrace:
    spec = program.plan.specs.get(name)
    if isinstance(spec, TensorSpec):
        return OperandTrace(name, spec.shape, pnnx_name(spec.dtype))
    return trace_operand(name, run.values[program.plan.slots[name]])


def _bytes_moved(run: NativeRun, step: Step) -> int:
    if step.bytes_moved is not None:
        return step.bytes_moved
    touched = [array for slot in (*step.inputs, *step.outputs) for array in arrays_in(run.values[slot])]
    return step.layer.attribute_bytes + sum(array.nbytes for array in touched)


def _backend(program: Program, place: int) -> str:
    if place in program.native:
        return "native"
    return "folded" if place in program.folded else "numpy"


def _name(step: Step) -> str:
    return step.operator.source.name
