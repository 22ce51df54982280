"""The rows of calls' inputs: which calls can share a run, how their rows are joined and split, and how rows are run.

Rows run all at once, or in parts where programs for the parts are at hand and none for all.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from engine import (
    Array,
    KuiperError,
    Port,
    RunResult,
    RuntimeGraph,
    RunTrace,
    StopSignal,
    TensorSpec,
    TraceLevel,
    Value,
)
from service.repository.joined_trace import join_traces
from service.repository.loaded_model import LoadedModel
from service.repository.row_pieces import RowPieces

Signature = tuple[tuple[tuple[int, ...], "np.dtype[Any]"], ...]
"""Shape of a row and dtype of each input: calls of equal signature can be run together."""


def count_rows(inputs: Mapping[str, Array]) -> int:
    """Return the extent of the first axis that all inputs share; 1 where they share none."""
    extent = _shared_extent(inputs)
    return extent[0] if extent else 1


def batch_signature(ports: Sequence[Port], inputs: Mapping[str, Array]) -> Signature | None:
    """Return the signature of a call; None where it cannot be run together with others.

    Rows must have the shape that the file declares, as far as it declares one: batching is proved for no other shape.

    Args:
        ports: the graph's inputs.
        inputs: the call's, by operand name.
    """
    if not any(_shared_extent(inputs)):
        return None
    signature = []
    for port in ports:
        array = inputs[port.operand]
        row = array.shape[1:]
        if not _is_declared(port, row):
            return None
        signature.append((row, array.dtype))
    return tuple(signature)


def join(calls: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Return the inputs of several calls of equal signature as the inputs of one run; nobody may write to them."""
    return {name: np.concatenate([inputs[name] for inputs in calls]) for name in calls[0]}


def split(outputs: Sequence[Array], counts: Sequence[int]) -> list[list[Array]] | None:
    """Return each call's rows of a run's outputs; None where the outputs have another number of rows than the inputs.

    Rows are copied: a view would keep the whole batch alive, and let the responses of two clients share memory.
    """
    if any(output.shape[:1] != (sum(counts),) for output in outputs):
        return None
    return [
        [output[stop - count : stop].copy() for output in outputs]
        for stop, count in zip(accumulate(counts), counts, strict=True)
    ]


def _shared_extent(inputs: Mapping[str, Array]) -> tuple[int, ...]:
    """Return the extent of the first axis that all inputs share, as a tuple; an empty one where they share none."""
    shared: tuple[int, ...] | None = None
    for array in inputs.values():
        extent = array.shape[:1]
        if shared is None:
            shared = extent
        elif shared != extent:
            return ()
    return shared or ()


def _is_declared(port: Port, row: tuple[int, ...]) -> bool:
    """Return whether a row has the shape that an input declares, its first axis left out."""
    declared = (port.shape or ())[1:]
    if declared == row:
        return bool(port.shape)
    return len(declared) == len(row) and all(
        dim in (None, extent) for dim, extent in zip(declared, row, strict=True)
    )


def run_rows(
    model: LoadedModel,
    inputs: Mapping[str, Array],
    rows: int,
    *,
    trace: TraceLevel,
    stop: StopSignal,
    capture: Collection[str] = (),
) -> RunResult:
    """Run a model, without waiting for the compiler.

    Rows are run in parts only where they are proved to be independent, and have the shape that this is proved for.
    Statistics are of all rows: no part is filled up with others. Captured operands are joined if they have a row for
    each of the inputs; else the rows are run at once.

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
    run = partial(graph.run, trace=trace, capture=capture, stop=stop, waits=False)
    if pieces is not None and rows not in pieces.sizes:
        is_exact = bool(capture) or trace >= TraceLevel.STATISTICS
        parts = _parts(graph, pieces, inputs, rows, is_exact)
        if parts and _have_rows(graph, inputs, capture):
            result = _run_parts(pieces, inputs, rows, parts, run)
            if result is not None:
                return result
    return run(inputs)


def _parts(
    graph: RuntimeGraph, pieces: RowPieces, inputs: Mapping[str, Array], rows: int, is_exact: bool
) -> tuple[int, ...]:
    """Return the sizes of the parts; none where the rows cannot be cut, or are better run at once."""
    if batch_signature(graph.inputs, inputs) is None or _is_compiled(graph, inputs, rows):
        return ()
    parts = pieces.exact_parts(rows) if is_exact else pieces.parts(rows)
    return parts if all(_is_compiled(graph, inputs, size) for size in set(parts)) else ()


def _is_compiled(graph: RuntimeGraph, inputs: Mapping[str, Array], rows: int) -> bool:
    return graph.is_compiled(_specs(graph, inputs, rows))


def _specs(graph: RuntimeGraph, inputs: Mapping[str, Array], rows: int) -> list[TensorSpec]:
    arrays = [inputs[port.operand] for port in graph.inputs]
    return [TensorSpec((rows, *array.shape[1:]), array.dtype) for array in arrays]


def _have_rows(graph: RuntimeGraph, inputs: Mapping[str, Array], names: Collection[str]) -> bool:
    """Return whether the first extent of operands is the number of rows, and no other depends on it."""
    if not names:
        return True
    try:
        one, two = (graph.plan(_specs(graph, inputs, rows)).specs for rows in (1, 2))
    except KuiperError:
        return False
    pairs = ((one[name], two[name]) for name in names)
    return all(
        isinstance(first, TensorSpec)
        and isinstance(second, TensorSpec)
        and (first.shape[:1], second.shape[:1]) == ((1,), (2,))
        and first.shape[1:] == second.shape[1:]
        for first, second in pairs
    )


def _run_parts(
    pieces: RowPieces,
    inputs: Mapping[str, Array],
    rows: int,
    parts: Sequence[int],
    run: Callable[[Mapping[str, Array]], RunResult],
) -> RunResult | None:
    """Return what all rows give; None where their results are too large, or are not one for each row after all."""
    joined: list[Array] = []
    traces: list[RunTrace] = []
    captured_by: dict[str, str] = {}
    for start, size in zip(accumulate(parts, initial=0), parts, strict=False):
        stop_at = min(rows, start + size)
        result = run({name: _cut(array, start, stop_at, size) for name, array in inputs.items()})
        given = [*result.outputs, *_arrays(result.captured)]
        if not joined:
            room = pieces.max_bytes - sum(array.nbytes for array in inputs.values())
            if sum(array.nbytes // size * rows for array in given) > room:
                return None
            joined = [np.empty((rows, *array.shape[1:]), array.dtype) for array in given]
        if not _put(given, joined, start, stop_at, size):
            return None
        captured_by = result.captured_by | {name: by for name, by in captured_by.items() if by == "numpy"}
        if result.trace is not None:
            traces.append(result.trace)
        if result.is_observed and traces:  # with statistics, traces are too large to keep one for each part
            traces = [join_traces(traces, ())]
    count = len(joined) - len(captured_by)
    captured: dict[str, Value] = dict(zip(captured_by, joined[count:], strict=True))
    trace = join_traces(traces, tuple(parts)) if traces else None
    return RunResult(joined[:count], trace, captured, captured_by)


def _arrays(captured: Mapping[str, Value]) -> list[Array]:
    return [value for value in captured.values() if isinstance(value, np.ndarray)]


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
