"""The trace of rows that were run in parts."""

from collections.abc import Sequence
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


def _join_layers(traces: Sequence[RunTrace]) -> tuple[LayerTrace, ...]:
    rest = [{layer.name: layer for layer in trace.layers} for trace in traces[1:]]
    layers = [
        _join([first, *(layers[first.name] for layers in rest if first.name in layers)])
        for first in traces[0].layers
    ]
    total = sum(layer.duration_us for layer in layers)
    starts = accumulate((layer.duration_us for layer in layers), initial=0.0)
    return tuple(
        layer._replace(start_us=start, share=layer.duration_us / total if total else 0.0)
        for layer, start in zip(layers, starts, strict=False)
    )


def _join(layers: Sequence[LayerTrace]) -> LayerTrace:
    first = layers[0]
    outputs = first.outputs
    if first.backend != "folded":  # what no input changes is the same in all runs
        outputs = tuple(
            _join_operands(operands) for operands in zip(*(layer.outputs for layer in layers), strict=True)
        )
    return first._replace(
        outputs=outputs,
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
