"""Recent runs as a trace that Perfetto and chrome://tracing open.

Google's "Trace Event Format", with times in microseconds. Each worker thread is a row of slices (`X`), which nest or do
not overlap. Requests and the times that they wait overlap, and are therefore nestable asynchronous events (`b`, `e`),
with an id for each request.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from engine import LayerTrace, OperandTrace, RunTrace
from service.telemetry.recent_runs import RecentRun

Event = dict[str, Any]

_PID = 1


class _Slice(NamedTuple):
    """A stage of a run that a worker was busy with, in nanoseconds of `perf_counter_ns`."""

    start: int
    end: int
    name: str
    run: RecentRun


def chrome_trace(runs: Iterable[RecentRun]) -> dict[str, Any]:
    """Return runs as a trace, ready for JSON.

    Args:
        runs: in any order. Runs of one batch are drawn once.
    """
    ordered = sorted(runs, key=lambda run: run.timestamps.received)
    if not ordered:
        return {"displayTimeUnit": "ms", "traceEvents": []}
    origin = ordered[0].timestamps.received
    events = [_metadata("process_name", 0, "kuiper")]
    for number, run in enumerate(ordered):
        events += _waiting(run, number, origin)
    for row, worker in enumerate(sorted({run.worker for run in ordered}), 1):
        events.append(_metadata("thread_name", row, worker))
        slices = [slice_ for run in ordered if run.worker == worker for slice_ in _slices(run)]
        for slice_ in _without_overlap(slices):
            events += _draw(slice_, row, origin)
    return {
        "displayTimeUnit": "ms",
        "otherData": {"started_ms_since_epoch": round(ordered[0].received_ms, 3)},
        "traceEvents": events,
    }


def draw_layers(trace: RunTrace) -> dict[str, Any]:
    """Return the layers of one run as a trace, ready for JSON."""
    events = [_metadata("process_name", 0, "kuiper"), _metadata("thread_name", 1, "run")]
    for layer, start, end in _placed(trace, 0):
        events.append(_complete(layer.type, "layer", start, end, 1, 0, _describe(layer)))
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _metadata(kind: str, row: int, name: str) -> Event:
    return {"ph": "M", "name": kind, "pid": _PID, "tid": row, "args": {"name": name}}


def _waiting(run: RecentRun, number: int, origin: int) -> Iterator[Event]:
    """Yield the events of a request: its whole time and, within it, the times that it waited."""
    timestamps = run.timestamps
    described = {
        "request_id": run.request_id,
        "model": run.model,
        "version": run.version,
        "ending": run.status.value,
        "items": run.items,
        "batch_size": run.batch_size,
    }
    parts = [("queue", timestamps.queued, timestamps.decode_start)]
    if run.is_shared:
        parts.append(("decode", timestamps.decode_start, timestamps.decode_end))
    parts.append(("wait for batch", timestamps.decode_end, timestamps.forward_start))

    def event(phase: str, name: str, ns: int) -> Event:
        common = {"cat": "request", "id": str(number), "pid": _PID, "tid": 0}
        return {**common, "ph": phase, "name": name, "ts": _us(ns - origin)}

    yield event("b", "request", timestamps.received) | {"args": described}
    for name, start, end in parts:
        yield event("b", name, start) | {"args": {}}
        yield event("e", name, end)
    yield event("e", "request", run.end_ns)


def _slices(run: RecentRun) -> Iterator[_Slice]:
    timestamps = run.timestamps
    if not run.is_shared:
        yield _Slice(timestamps.decode_start, timestamps.decode_end, "decode", run)
    yield _Slice(timestamps.forward_start, timestamps.forward_end, "forward", run)
    yield _Slice(timestamps.forward_end, timestamps.encode_end, "encode", run)


def _without_overlap(slices: Sequence[_Slice]) -> Iterator[_Slice]:
    """Yield the slices of one thread so that they do not overlap.

    A thread does one thing at a time: a run that begins during another is the same run, recorded for another request of
    the batch, and a response is encoded when the previous one is done.
    """
    busy_until = run_until = 0
    for slice_ in sorted(slices, key=lambda slice_: (slice_.start, slice_.end)):
        if slice_.name == "forward":
            if slice_.start < run_until:
                continue
            run_until = slice_.end
        start = max(slice_.start, busy_until)
        if start < slice_.end:
            busy_until = slice_.end
            yield slice_._replace(start=start)


def _draw(slice_: _Slice, row: int, origin: int) -> Iterator[Event]:
    run = slice_.run
    args: dict[str, Any] = {"model": run.model, "version": run.version, "request_id": run.request_id}
    if slice_.name == "forward":
        args["batch_size"] = run.batch_size
        if run.trace.is_observed:
            args["observed"] = True
    yield _complete(slice_.name, slice_.name, slice_.start, slice_.end, row, origin, args)
    if slice_.name == "forward":
        for layer, began, ended in _placed(run.trace, run.trace.start_ns or slice_.start):
            start, end = max(slice_.start, began), min(slice_.end, ended)
            if start <= end:
                yield _complete(layer.type, "layer", start, end, row, origin, _describe(layer))


def _placed(trace: RunTrace, begun: int) -> Iterator[tuple[LayerTrace, int, int]]:
    """Yield each layer of a run that began at `begun`, with when it began and ended, in nanoseconds."""
    for layer in trace.layers:
        end_us = layer.start_us + layer.duration_us
        yield layer, begun + round(layer.start_us * 1000), begun + round(end_us * 1000)


def _complete(
    name: str, category: str, start: int, end: int, row: int, origin: int, args: dict[str, Any]
) -> Event:
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "ts": _us(start - origin),
        "dur": _us(end - start),
        "pid": _PID,
        "tid": row,
        "args": args,
    }


def _describe(layer: LayerTrace) -> dict[str, Any]:
    """Return the arguments of a layer's slice; a multiply-add counts as two floating-point operations."""
    return {
        "name": layer.name,
        "inputs": [_shape(operand) for operand in layer.inputs],
        "outputs": [_shape(operand) for operand in layer.outputs],
        "GFLOP/s": _per_nanosecond(2 * layer.multiply_adds, layer),
        "GB/s": _per_nanosecond(layer.bytes_moved, layer),
        "multiply_adds": layer.multiply_adds,
        "bytes": layer.bytes_moved,
        "backend": layer.backend,
        "fused": ", ".join(layer.fused),
        "precision": layer.precision,
    }


def _per_nanosecond(amount: int, layer: LayerTrace) -> float:
    return round(amount / (layer.duration_us * 1000), 3) if layer.duration_us else 0.0


def _shape(operand: OperandTrace) -> str:
    """Return an operand as PNNX writes it: `(1,3)f32`."""
    if operand.shape is None:
        return operand.dtype
    return f"({','.join(str(size) for size in operand.shape)}){operand.dtype}"


def _us(ns: int) -> float:
    return ns / 1000
