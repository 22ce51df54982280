"""The trace of rows that were run in parts."""

from collections.abc import Sequence
from itertools import accumulate

from engine import LayerTrace, RunTrace


def join_traces(traces: Sequence[RunTrace], pieces: tuple[int, ...]) -> RunTrace:
    """Return the trace of runs that followed each other, at least one, as that of one run.

    Each layer has the sums of its times, multiply-adds and bytes, and begins where the one before it ends. Its operands
    are those of the first run, which is the largest. Where kernels did its work in some runs only, numpy is named.

    Args:
        traces: the runs.
        pieces: rows of each run.
    """
    first, last = traces[0], traces[-1]
    total_us = (last.start_ns - first.start_ns) / 1000 + last.total_us
    return RunTrace(total_us, lambda: _join_layers(traces), first.start_ns, pieces=pieces)


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
    return first._replace(
        duration_us=sum(layer.duration_us for layer in layers),
        multiply_adds=sum(layer.multiply_adds for layer in layers),
        bytes_moved=sum(layer.bytes_moved for layer in layers),
        backend="numpy" if any(layer.backend == "numpy" for layer in layers) else first.backend,
    )
