"""What a worker does with calls: decode the inputs, run the model, encode the answers.

None of these functions raises anything: whatever a request causes, the worker lives on, and the call's progress gets a
result that says what went wrong.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import current_thread
from time import perf_counter_ns
from typing import Any

from engine import Array, InputError, LayerError, RunResult, RunStoppedError, RunTrace, StopSignal, TraceLevel
from service.errors import ServiceError, out_of_memory, without_frames
from service.heavy_work import HeavyWorkError, WorkStoppedError
from service.scheduling.call import RunOutcome
from service.scheduling.call_record import CallStatus
from service.scheduling.declared_shape import name_declared_shape
from service.scheduling.progress import Result
from service.scheduling.row_runs import run_rows
from service.scheduling.rows import batch_signature, count_rows, join, split
from service.scheduling.scheduled_call import ScheduledCall
from service.scheduling.shared_stop_signal import SharedStopSignal

Sampler = Callable[[], bool]
"""Returns whether the next run is sampled: traced although no client asked for a trace."""

_SAID_IN_FULL = (ServiceError, InputError, LayerError, RunStoppedError)
"""Errors that the client is told; the log needs the tracebacks of all others."""


def decode(scheduled: ScheduledCall[Any]) -> bool:
    """Decode a call's inputs; returns whether it is to be run. It is not where it is heavy work to decode them."""
    progress = scheduled.progress
    progress.timestamps.decode_start = perf_counter_ns()
    if scheduled.stop_reason() is not None:
        return False
    try:
        decoded = scheduled.context.run(scheduled.call.decode)
    except HeavyWorkError:
        progress.is_heavy = True
        return False
    except BaseException as error:
        _fail(scheduled, CallStatus.OTHER, error)
        return False
    progress.timestamps.decode_end = perf_counter_ns()
    progress.decoded = decoded
    progress.items = count_rows(decoded.inputs)
    progress.trace_level = level = decoded.options.trace or TraceLevel.OFF
    progress.is_observed = bool(decoded.options.capture) or level >= TraceLevel.STATISTICS
    return True


def resume(scheduled: ScheduledCall[Any]) -> bool:
    """Go on with a call that was left as heavy, where it was left; returns whether it is to be run."""
    if scheduled.stop_reason() is not None:
        return False
    progress = scheduled.progress
    if progress.outcome is not None:
        outcome, progress.outcome = progress.outcome, None
        _encode_outcome(scheduled, outcome)
        return False
    return progress.decoded is not None or decode(scheduled)


def set_batch_signature(scheduled: ScheduledCall[Any], max_items: int) -> None:
    """Find out which calls a decoded call can be run with.

    None, where it is larger than a batch or asks for more than outputs: statistics and captured operands are of all
    rows of a run, and would show one client's data to another.

    Args:
        scheduled: the call.
        max_items: most items of a batch.
    """
    progress = scheduled.progress
    if not progress.is_observed and progress.items <= max_items:
        progress.signature = batch_signature(scheduled.call.model.graph.inputs, progress.inputs)


def run(calls: Sequence[ScheduledCall[Any]], sample: Sampler) -> list[Sequence[ScheduledCall[Any]]]:
    """Run the model on decoded calls, and encode their answers.

    Several calls are run together. Where that run fails, each call is run on its own, so that only the one that made it
    fail is answered with an error.

    Args:
        calls: calls of equal signature, or a single one.
        sample: asked for each run.

    Returns:
        The calls of each run that was made for answers.
    """
    if len(calls) > 1:
        results = _run_batch(calls, sample())
        if results is not None:
            for scheduled, result in results:
                _encode(scheduled, result)
            return [calls]
    for scheduled in calls:
        alone = _run_alone(scheduled, sample())
        if alone is not None:
            _encode(scheduled, alone)
    return [[scheduled] for scheduled in calls]


def _run_alone(scheduled: ScheduledCall[Any], is_sampled: bool) -> RunResult | None:
    """Return the result of a run for one call; None where it failed."""
    progress, level = scheduled.progress, scheduled.progress.trace_level
    signal = StopSignal(scheduled.deadline)
    scheduled.cancellation.on_cancel(signal.stop)
    _begin_run(scheduled, progress.items)
    try:
        result: RunResult = scheduled.context.run(
            run_rows,
            scheduled.call.model,
            progress.inputs,
            progress.items,
            trace=max(level, TraceLevel.ON) if is_sampled else level,
            capture=(progress.decoded.options.capture if progress.decoded else None) or (),
            stop=signal,
        )
    except RunStoppedError as error:
        _fail(scheduled, CallStatus.CANCELED, error)
    except (InputError, LayerError) as error:
        ports = scheduled.call.model.graph.inputs
        _fail(scheduled, CallStatus.BACKEND, name_declared_shape(error, ports, progress.inputs))
    except BaseException as error:
        _fail(scheduled, CallStatus.BACKEND, error)
    else:
        progress.timestamps.forward_end = perf_counter_ns()
        return result
    return None


def _run_batch(
    calls: Sequence[ScheduledCall[Any]], is_sampled: bool
) -> list[tuple[ScheduledCall[Any], RunResult]] | None:
    """Return each call's rows of a run for all of them, no call where the run was stopped; None where it failed."""
    counts = [scheduled.progress.items for scheduled in calls]
    level = max(scheduled.progress.trace_level for scheduled in calls)
    for scheduled in calls:
        _begin_run(scheduled, sum(counts))
    try:
        result = run_rows(
            calls[0].call.model,
            join([scheduled.progress.inputs for scheduled in calls]),
            sum(counts),
            trace=max(level, TraceLevel.ON) if is_sampled else level,
            stop=SharedStopSignal(calls),
        )
        parts = split(result.outputs, counts)
    except RunStoppedError as error:
        for scheduled in calls:
            _fail(scheduled, CallStatus.CANCELED, error)
        return []
    except BaseException:  # the runs one by one find the call that caused it
        return None
    return None if parts is None else _distribute(calls, parts, result.trace)


def _distribute(
    calls: Sequence[ScheduledCall[Any]], parts: Sequence[list[Array]], trace: RunTrace | None
) -> list[tuple[ScheduledCall[Any], RunResult]]:
    """Return each call with its rows of the outputs, and with the trace of the run where it is to record that."""
    for scheduled in calls:
        scheduled.progress.timestamps.forward_end = perf_counter_ns()
    # one call that is still wanted records the trace of a sampled run
    first = next((scheduled for scheduled in calls if scheduled.stop_reason() is None), calls[0])
    return [
        (scheduled, RunResult(part, trace if scheduled is first or scheduled.progress.trace_level else None))
        for scheduled, part in zip(calls, parts, strict=True)
    ]


def _begin_run(scheduled: ScheduledCall[Any], batch_size: int) -> None:
    progress = scheduled.progress
    progress.worker = current_thread().name
    progress.batch_size = batch_size
    progress.timestamps.forward_start = perf_counter_ns()


def _encode(scheduled: ScheduledCall[Any], result: RunResult) -> None:
    progress = scheduled.progress
    progress.trace = result.trace
    if progress.trace_level is TraceLevel.OFF and result.trace is not None:
        result = replace(result, trace=None)  # sampled: the client did not ask for it
    progress.decoded = None
    _encode_outcome(
        scheduled, RunOutcome(result, progress.timestamps, progress.batch_size, progress.is_observed)
    )


def _encode_outcome(scheduled: ScheduledCall[Any], outcome: RunOutcome) -> None:
    progress = scheduled.progress
    try:
        answer = scheduled.context.run(scheduled.call.encode, outcome)
    except HeavyWorkError:
        progress.is_heavy, progress.outcome = True, outcome
    except BaseException as error:
        _fail(scheduled, CallStatus.OTHER, error)
    else:
        progress.timestamps.encode_end = perf_counter_ns()
        progress.result = Result(CallStatus.SUCCESS, answer)


def _fail(scheduled: ScheduledCall[Any], status: CallStatus, error: BaseException) -> None:
    if isinstance(error, WorkStoppedError):
        status, error = CallStatus.CANCELED, RunStoppedError(str(error))
    elif isinstance(error, MemoryError):
        error = out_of_memory()  # without the traceback, whose frames keep what took the memory
    elif not isinstance(error, Exception) or isinstance(error, StopIteration):
        # a future holds no StopIteration, and one that holds CancelledError looks cancelled
        error = RuntimeError(repr(error))
    if isinstance(error, _SAID_IN_FULL):
        without_frames(error)
    scheduled.progress.decoded = None
    scheduled.progress.result = Result(status, error=error)
