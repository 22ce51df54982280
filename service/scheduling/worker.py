"""A worker: the thread that decodes the inputs of jobs, runs their model and encodes their responses.

Nothing here raises: whatever a request causes, the worker lives on, and the job gets a result.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import current_thread
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from engine import InputError, LayerError, RunResult, RunStoppedError, StopSignal, TraceLevel
from service.decoding import (
    DecodingStoppedError,
    NeedsDecoderError,
    large_body_decoder,
    leaves_large_bodies,
    leaving_large_bodies,
)
from service.errors import ServiceError, engine_error, out_of_memory, without_frames
from service.repository.rows import batch_signature, join, run_rows, split
from service.scheduling.job import CallStatus, Job
from service.scheduling.queue import Work

if TYPE_CHECKING:
    from service.scheduling.scheduler import Scheduler

LARGE_ROWS = 16
"""Maximum rows of a run with captures or statistics on a worker: observation multiplies the time of a run."""


def serve(scheduler: "Scheduler") -> None:
    """Do the scheduler's work, until there will be none or another thread has replaced this one."""
    with leaving_large_bodies():
        while (work := scheduler.take()) is not None:
            _execute(scheduler, work)
            # free before a result is known: a client that has its response may count on room for its next request
            goes_on = scheduler.finish(work)
            scheduler.deliver(work.jobs)
            if not goes_on:
                return
            del work  # while a worker waits, it keeps nothing of a request alive


def _execute(scheduler: "Scheduler", work: Work) -> None:
    ready: list[Job[Any]] = []
    for job in list(work.jobs):
        if _is_ready(job):
            ready.append(job)
        elif job.needs_decoder:
            scheduler.leave_to_decoder(work, job)  # at once: decoding the next one may take long
    if work.is_batched:
        ended = [job for job in work.jobs if job.ending is not None]
        for job in ready:
            set_signature(job, work.queue.policy.max_batch_size)
        ready = scheduler.form_batch(work, ready)
        scheduler.deliver(ended)
    if ready:
        run(ready, work.queue.tracing.sample)
    for job in ready:
        if job.needs_decoder:
            scheduler.leave_to_decoder(work, job)


def _is_ready(job: Job[Any]) -> bool:
    """Decode a job, or encode the response of a pipeline whose steps have run; returns whether it is to run now."""
    result, job.result = job.result, None
    if result is None:
        return decode(job)
    if job.stop_reason() is None:
        encode(job, result)
    return False


def decode(job: Job[Any]) -> bool:
    """Decode a job's inputs, if they are not; returns whether it can run.

    It cannot if it failed, was cancelled, or is left to a thread with a decoder, as its body is large or many of its
    rows are observed.
    """
    if job.stop_reason() is not None:
        return False
    if job.decoded is not None:
        return True
    job.timestamps.decode_start = perf_counter_ns()
    try:
        decoded = job.context.run(job.decode)
    except NeedsDecoderError:
        job.needs_decoder = True
        return False
    except BaseException as error:
        _fail(job, CallStatus.OTHER, error)
        return False
    job.timestamps.decode_end = perf_counter_ns()
    job.take_decoded(decoded)
    job.needs_decoder = job.is_observed and job.rows > LARGE_ROWS and leaves_large_bodies()
    return not job.needs_decoder


def set_signature(job: Job[Any], max_batch_size: int) -> None:
    """Determine which jobs a decoded job can share a run with.

    None if it is larger than a batch, or requests more than outputs: statistics and captured operands are of all rows
    of a run, and would show one client's data to another.
    """
    if not job.is_observed and job.rows <= max_batch_size:
        job.signature = batch_signature(job.model.graph.inputs, job.inputs)


def run(jobs: Sequence[Job[Any]], sample: Callable[[], bool]) -> None:
    """Run the model on decoded jobs, and encode their responses.

    Several jobs share a run. If it fails, each runs on its own, so that only the one at fault gets an error.

    Args:
        jobs: jobs of equal signature, or a single one.
        sample: returns whether the next run is traced although no client requests it.
    """
    if not _run(jobs, is_sampled=sample()):
        for job in jobs:
            _run([job], is_sampled=sample())


def encode(job: Job[Any], result: RunResult) -> None:
    """Encode a job's response; a large one is left to a thread with a decoder."""
    try:
        response = job.context.run(job.encode, result)
    except NeedsDecoderError:
        job.needs_decoder, job.result = True, result
    except BaseException as error:
        _fail(job, CallStatus.OTHER, error)
    else:
        job.timestamps.encode_end = perf_counter_ns()
        job.ending, job.response = CallStatus.SUCCESS, response


def go_on_with_decoder(job: Job[Any]) -> None:
    """Decode a job's body, run it where it is observed, or encode its response; on a thread with a decoder."""
    job.needs_decoder = False
    decoder = large_body_decoder()
    if decoder is None:
        raise RuntimeError("this thread has no decoder")
    with decoder.stoppable() as stop:
        job.stop_with(stop)
        _is_ready(job)
        job.on_cancel = None
    if job.is_observed and job.decoded is not None:
        run([job], lambda: False)


@contextmanager
def stop_signal(jobs: Sequence[Job[Any]]) -> Iterator[StopSignal]:
    """Return the stop signal of a run: set once all of its jobs are cancelled, or after the last deadline."""
    signal = StopSignal(max(job.deadline for job in jobs))

    def stop(reason: str) -> None:
        if all(job.cancel_reason is not None for job in jobs):
            signal.stop(reason)

    for job in jobs:
        job.stop_with(stop)
    try:
        yield signal
    finally:
        for job in jobs:
            job.on_cancel = None


def _run(jobs: Sequence[Job[Any]], *, is_sampled: bool) -> bool:
    """Run the model once; returns False if that failed for several jobs, each of which is to run on its own."""
    first, counts, is_alone = jobs[0], [job.rows for job in jobs], len(jobs) == 1
    level = max(job.trace_level for job in jobs)
    for job in jobs:
        job.worker, job.batch_size = current_thread().name, sum(counts)
        job.timestamps.forward_start = perf_counter_ns()
    try:
        with stop_signal(jobs) as stop:
            result: RunResult = first.context.run(
                run_rows,
                first.model,
                first.inputs if is_alone else join([job.inputs for job in jobs]),
                sum(counts),
                trace=max(level, TraceLevel.ON) if is_sampled else level,
                capture=(first.decoded.options.capture if first.decoded else None) or (),
                stop=stop,
            )
        parts = [result.outputs] if is_alone else split(result.outputs, counts)
    except BaseException as error:
        is_stopped = isinstance(error, RunStoppedError)
        if not is_alone and not is_stopped:
            return False  # the runs one by one find the job that caused it
        _leader(jobs).leads_run = True
        for job in jobs:
            _fail(job, CallStatus.CANCELED if is_stopped else CallStatus.BACKEND, error)
        return True
    if parts is None:
        return False
    leader, ended = _leader(jobs), perf_counter_ns()
    leader.leads_run = True
    for job, part in zip(jobs, parts, strict=True):
        job.timestamps.forward_end = ended
        job.trace = result.trace if job is leader or job.trace_level else None
        job.decoded = None
        # a trace that is only sampled is not for the client
        encode(job, replace(result, outputs=part, trace=job.trace if job.trace_level else None))
    return True


def _leader(jobs: Sequence[Job[Any]]) -> Job[Any]:
    """Return the job that counts a run, and records its trace if it is sampled: one that is still wanted."""
    return next((job for job in jobs if job.stop_reason() is None), jobs[0])


def _fail(job: Job[Any], status: CallStatus, error: BaseException) -> None:
    if isinstance(error, DecodingStoppedError):
        status, error = CallStatus.CANCELED, RunStoppedError(str(error))
    elif isinstance(error, InputError | LayerError):
        inputs = None if job.decoded is None else job.decoded.inputs
        error = engine_error(error, job.model.graph.inputs, inputs)
    elif isinstance(error, MemoryError):
        error = out_of_memory()  # without the traceback, whose frames keep what took the memory
    elif not isinstance(error, Exception) or isinstance(error, StopIteration):
        # a future holds no StopIteration, and one that holds CancelledError looks cancelled
        error = RuntimeError(repr(error))
    if isinstance(error, ServiceError | RunStoppedError):  # their messages say everything
        without_frames(error)
    job.decoded = None
    job.ending, job.error = status, error
