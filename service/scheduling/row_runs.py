"""Runs a model on rows: all at once, or in parts where programs for the parts are at hand and none for all."""

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate

import numpy as np

from engine import Array, RunResult, RuntimeGraph, StopSignal, TensorSpec, TraceLevel
from service.repository.loaded_model import LoadedModel
from service.repository.row_pieces import RowPieces
from service.scheduling.joined_trace import join_traces
from service.scheduling.rows import batch_signature
from service.scheduling.shared_stop_signal import SharedStopSignal


def run_rows(
    model: LoadedModel,
    inputs: Mapping[str, Array],
    rows: int,
    *,
    trace: TraceLevel,
    stop: StopSignal | SharedStopSignal,
    capture: Collection[str] = (),
) -> RunResult:
    """Run a model, without waiting for the compiler.

    Rows are run in parts only where they are proved to be independent, and have the shape that this is proved for.
    Captured operands and statistics are of all rows, so that such a run is never cut.

    Args:
        model: the model.
        inputs: arrays by operand name.
        rows: how many rows they have.
        trace: how much to record.
        stop: what stops the run, also between its parts.
        capture: names of operands whose values to return.

    Raises:
        InputError, LayerError, RunStoppedError: as `RuntimeGraph.run`.
    """
    graph, pieces = model.graph, model.batching.pieces
    if pieces is not None and rows not in pieces.sizes and not capture and trace < TraceLevel.STATISTICS:
        parts = _parts(graph, pieces, inputs, rows)
        result = _run_parts(graph, pieces, inputs, rows, parts, trace, stop) if parts else None
        if result is not None:
            return result
    return graph.run(inputs, trace=trace, capture=capture, stop=stop, waits=False)


def _parts(graph: RuntimeGraph, pieces: RowPieces, inputs: Mapping[str, Array], rows: int) -> tuple[int, ...]:
    """Return the sizes of the parts; none where the rows cannot be cut, or are better run at once."""
    if batch_signature(graph.inputs, inputs) is None or _is_compiled(graph, inputs, rows):
        return ()
    parts = pieces.parts(rows)
    return parts if all(_is_compiled(graph, inputs, size) for size in set(parts)) else ()


def _is_compiled(graph: RuntimeGraph, inputs: Mapping[str, Array], rows: int) -> bool:
    arrays = [inputs[port.operand] for port in graph.inputs]
    return graph.is_compiled([TensorSpec((rows, *array.shape[1:]), array.dtype) for array in arrays])


def _run_parts(
    graph: RuntimeGraph,
    pieces: RowPieces,
    inputs: Mapping[str, Array],
    rows: int,
    parts: Sequence[int],
    trace: TraceLevel,
    stop: StopSignal | SharedStopSignal,
) -> RunResult | None:
    """Return what all rows give; None where their results are too large, or are not one for each row after all."""
    outputs: list[Array] = []
    traces = []
    for start, size in zip(accumulate(parts, initial=0), parts, strict=False):
        stop_at = min(rows, start + size)
        part = {name: _cut(array, start, stop_at, size) for name, array in inputs.items()}
        result = graph.run(part, trace=trace, stop=stop, waits=False)
        if not outputs:
            room = pieces.max_bytes - sum(array.nbytes for array in inputs.values())
            if sum(output.nbytes // size * rows for output in result.outputs) > room:
                return None
            outputs = [np.empty((rows, *output.shape[1:]), output.dtype) for output in result.outputs]
        if not _put(result.outputs, outputs, start, stop_at, size):
            return None
        if result.trace is not None:
            traces.append(result.trace)
    return RunResult(outputs, join_traces(traces, tuple(parts)) if traces else None)


def _cut(array: Array, start: int, stop: int, size: int) -> Array:
    """Return some rows; where there are fewer than a run takes, the last one stands for those that lack."""
    part = array[start:stop]
    if stop - start == size:
        return part
    return np.concatenate([part, np.repeat(part[-1:], size - (stop - start), axis=0)])


def _put(part: Sequence[Array], outputs: Sequence[Array], start: int, stop: int, size: int) -> bool:
    """Put the results of a part to those of the others; returns whether they fit."""
    if len(part) != len(outputs):
        return False
    for target, source in zip(outputs, part, strict=True):
        if source.shape != (size, *target.shape[1:]) or source.dtype != target.dtype:
            return False
        target[start:stop] = source[: stop - start]
    return True
