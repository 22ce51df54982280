"""The trace of runs that belong together: of rows that were run in parts, and of the steps of a pipeline."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate

from engine import LayerTrace, OperandTrace, RunTrace, join_statistics


def join_traces(traces: Sequence[RunTrace], pieces: tuple[int, ...]) -> RunTrace:
    """Return the trace of runs that followed each other, at least one, as that of one run.

    Each layer has the sums of its times, multiply-adds and bytes, and begins where the one before it ends. Its operands
    are those of the first run, which is the largest, with the statistics of all. Where kernels did its work in some
    runs only, numpy is named. A trace with statistics is made at once, as each of the runs has many.

    Args:
        traces: the runs.
        pieces: rows of each run.
    """
    first, last = traces[0], traces[-1]
    total_us = (last.start_ns - first.start_ns) / 1000 + last.total_us
    layers = _join_layers(traces) if first.is_observed else partial(_join_layers, traces)
    return RunTrace(total_us, layers, first.start_ns, first.is_observed, pieces)


def join_steps(traces: Mapping[str, RunTrace]) -> RunTrace:
    """Return the traces of a pipeline's steps, at least one, as that of one run.

    Each layer and operand is called `STEP/NAME`; layers begin when they did, counted from the start of the first step.

    Args:
        traces: those of the steps that ran, by the step's name, in order.
    """
    first, last = (list(traces.values())[place] for place in (0, -1))
    total_us = (last.start_ns - first.start_ns) / 1000 + last.total_us
    is_observed = any(trace.is_observed for trace in traces.values())
    return RunTrace(total_us, partial(_step_layers, traces), first.start_ns, is_observed)


def _step_layers(traces: Mapping[str, RunTrace]) -> tuple[LayerTrace, ...]:
    begun = next(iter(traces.values())).start_ns
    layers = [
        _renamed(layer, step, (trace.start_ns - begun) / 1000)
        for step, trace in traces.items()
        for layer in trace.layers
    ]
    total = sum(layer.duration_us for layer in layers) or 1.0
    return tuple(
        layer._replace(index=index, share=layer.duration_us / total) for index, layer in enumerate(layers)
    )


def _renamed(layer: LayerTrace, step: str, begun_us: float) -> LayerTrace:
    def operands(found: Sequence[OperandTrace]) -> tuple[OperandTrace, ...]:
        return tuple(operand._replace(name=f"{step}/{operand.name}") for operand in found)

    return layer._replace(
        name=f"{step}/{layer.name}",
        inputs=operands(layer.inputs),
        outputs=operands(layer.outputs),
        start_us=begun_us + layer.start_us,
        fused=tuple(f"{step}/{name}" for name in layer.fused),
        fused_into=None if layer.fused_into is None else f"{step}/{layer.fused_into}",
    )


def _join_layers(traces: Sequence[RunTrace]) -> tuple[LayerTrace, ...]:
    rest = [{layer.name: layer for layer in trace.layers} for trace in traces[1:]]
    layers = [
        _join([first, *(layers[first.name] for layers in rest if first.name in layers)])
        for first in traces[0].layers
    ]
    total = sum(layer.duration_us for layer in layers) or 1.0
    starts = accumulate((layer.duration_us for layer in layers), initial=0.0)
    return tuple(
        layer._replace(start_us=start, share=layer.duration_us / total)
        for layer, start in zip(layers, starts, strict=False)
    )


def _join(layers: Sequence[LayerTrace]) -> LayerTrace:
    first = layers[0]
    outputs = map(_join_operands, zip(*(layer.outputs for layer in layers), strict=True))
    return first._replace(
        # what no input changes is the same in all runs
        outputs=first.outputs if first.backend == "folded" else tuple(outputs),
        duration_us=sum(layer.duration_us for layer in layers),
        multiply_adds=sum(layer.multiply_adds for layer in layers),
        bytes_moved=sum(layer.bytes_moved for layer in layers),
        backend="numpy" if any(layer.backend == "numpy" for layer in layers) else first.backend,
    )


def _join_operands(operands: Sequence[OperandTrace]) -> OperandTrace:
    first = operands[0]
    parts = [operand.statistics for operand in operands if operand.statistics is not None]
    if not parts:
        return first
    backend = "numpy" if any(operand.backend == "numpy" for operand in operands) else first.backend
    return first._replace(statistics=join_statistics(parts), backend=backend)
