"""One call, from its place in the queue to whoever waits for its answer."""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import replace
from itertools import count
from threading import Lock, current_thread
from time import monotonic, perf_counter_ns
from typing import Generic, TypeVar, cast

from engine import RunResult, RunStoppedError, RunTrace, TraceLevel
from engine.dtypes import Array
from engine.stop import OVERDUE, StopSignal
from service.codec import Decoded
from service.errors import ServiceError
from service.scheduling.call import Call, CallRecord, Ending, Outcome, Stamps
from service.scheduling.rows import Signature, count_rows, sign

Payload = TypeVar("Payload")

Done = Callable[[Payload | None, BaseException | None], None]
"""Told of an answer, or of the error in its place; on the event loop."""

_numbers = count()


class Job(Generic[Payload]):
    """A call that is being seen to.

    Made on the event loop, worked on by one worker at a time. Deadlines are on the clock of `time.monotonic`.

    Args:
        call: the call.
        timeout: seconds until it is to be given up.
        priority: 1 is served first.
        done: told once, in the context that the job was made in.

    Attributes:
        call: the call.
        deadline: when it is to be given up.
        timeout: seconds that the deadline stands for.
        arrived: when it came, on the same clock.
        priority: 1 is served first.
        number: place in the order of arrival.
        stamps: how far it has come.
        decoded: its inputs, once a worker has decoded them, until they are run.
        items: items (rows) that it brings; 0 until it is decoded.
        group: what it has in common with calls that it can be run with; None where it is run alone.
        batch_size: items of the run that it is part of.
        leads_run: whether it is the one that counts its run.
        worker: name of the thread that ran it.
        trace: trace of its run.
        is_observed: whether its run keeps values or takes statistics besides; known once it is decoded.
    """

    def __init__(self, call: Call[Payload], timeout: float, priority: int, done: Done[Payload]) -> None:
        self.call = call
        self.arrived = monotonic()
        self.deadline = self.arrived + timeout
        self.timeout = timeout
        self.priority = priority
        self.number = next(_numbers)
        self.stamps = Stamps(received=call.received_ns, queued=perf_counter_ns())
        self.loop = asyncio.get_running_loop()
        self._done: Done[Payload] | None = done
        self.decoded: Decoded | None = None
        self.items = 0
        self.group: Signature | None = None
        self.batch_size = 0
        self.leads_run = False
        self.worker = ""
        self.trace: RunTrace | None = None
        self.is_observed = False
        self.is_recorded = False
        self._context = copy_context()
        self._stop_lock = Lock()
        self._stopped: str | None = None
        self._signal: StopSignal | None = None
        self._on_stop: Callable[[str], None] | None = None
        self._answer: Payload | None = None
        self._error: BaseException | None = None
        self._ending: Ending | None = None

    def stop(self, reason: str) -> None:
        """Ask for it to be given up; its run stops before the model's next layer."""
        with self._stop_lock:
            told, self._on_stop = self._on_stop, None
            self._stopped = self._stopped or reason
        if told is not None:
            told(reason)

    def when_stopped(self, tell: Callable[[str], None]) -> None:
        """Have it told, once, that the call is given up, at once if it is already; deadlines are not told."""
        with self._stop_lock:
            reason = self._stopped
            if reason is None:
                self._on_stop = tell
        if reason is not None:
            tell(reason)

    def stop_reason(self) -> str | None:
        """Tell why it is given up, None while it is to go on."""
        if self._stopped is None and monotonic() >= self.deadline:
            return OVERDUE
        return self._stopped

    def seconds_left(self) -> float:
        """Return the seconds until the deadline, 0 from then on."""
        return max(0.0, self.deadline - monotonic())

    @property
    def is_settled(self) -> bool:
        """Whether a worker has come to its end."""
        return self._ending is not None

    @property
    def level(self) -> TraceLevel:
        """How much of its run it wants to see."""
        return (self.decoded.options.trace if self.decoded else None) or TraceLevel.OFF

    def decode(self) -> bool:
        """Decode the call's inputs; tells whether it is to go on. Raises nothing."""
        self.stamps.decode_start = perf_counter_ns()
        if self.stop_reason() is not None:
            return False
        try:
            self.decoded = self._context.run(self.call.decode)
        except BaseException as error:  # whatever a request makes it raise, the worker lives on
            self.fail(Ending.OTHER, error)
            return False
        self.stamps.decode_end = perf_counter_ns()
        self.items = count_rows(self.decoded.inputs)
        self.is_observed = bool(self.decoded.options.capture) or self.level >= TraceLevel.STATISTICS
        return True

    def join_group(self, max_items: int) -> None:
        """Find out what calls it can be run with, none where it is larger than a batch or asks for more than outputs.

        Statistics and captured operands are of all rows of a run, and are no other client's business.
        """
        if not self.is_observed and self.items <= max_items:
            self.group = sign(self.call.model.graph.inputs, self.inputs)

    @property
    def inputs(self) -> dict[str, Array]:
        """Its inputs, until its answer is encoded."""
        return self._known().inputs

    def run(self, sampled: bool) -> RunResult | None:
        """Run the model on this call alone; None where that failed. Raises nothing.

        Args:
            sampled: record the trace even where the call does not ask for it.
        """
        decoded = self._known()
        level = max(self.level, TraceLevel.ON) if sampled else self.level
        self._signal = signal = StopSignal(self.deadline)
        self.when_stopped(signal.stop)
        self.begin_run(self.items)
        try:
            result = self._context.run(
                self.call.model.graph.run,
                decoded.inputs,
                trace=level,
                capture=decoded.options.capture or (),
                stop=signal,
                waits=False,
            )
        except RunStoppedError as error:
            self.fail(Ending.CANCELED, error)
        except BaseException as error:  # as above
            self.fail(Ending.BACKEND, error)
        else:
            self.end_run()
            return result
        return None

    def begin_run(self, batch_size: int) -> None:
        """Note that the run begins which this call is part of, with how many items."""
        self.worker = current_thread().name
        self.batch_size = batch_size
        self.stamps.forward_start = perf_counter_ns()

    def end_run(self) -> None:
        """Note that the run is over."""
        self.stamps.forward_end = perf_counter_ns()

    def encode(self, result: RunResult) -> None:
        """Make the answer of what the run gave for this call. Raises nothing."""
        self.trace = result.trace
        if self.level is TraceLevel.OFF and result.trace is not None:
            result = replace(result, trace=None)
        self.decoded = None
        try:
            outcome = Outcome(result, self.stamps, self.batch_size, self.is_observed)
            self._answer = self._context.run(self.call.encode, outcome)
        except BaseException as error:  # as above
            self.fail(Ending.OTHER, error)
        else:
            self.stamps.encode_end = perf_counter_ns()
            self._ending = Ending.SUCCESS

    def fail(self, ending: Ending, error: BaseException) -> None:
        """Settle it with an error."""
        self.decoded = None
        # a future holds no StopIteration, and one that holds CancelledError looks cancelled
        is_plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
        self._error = error if is_plain else RuntimeError(repr(error))
        self._ending = ending

    def deliver(self) -> None:
        """Hand the answer to who waits for it, if a worker has come to its end; on the event loop."""
        if self._ending is not None:
            self.end(self._answer, self._error)

    def end(self, answer: Payload | None, error: BaseException | None) -> None:
        """Tell who waits for it what became of it, unless that has been told; on the event loop."""
        done, self._done = self._done, None
        if done is not None:
            self._context.copy().run(done, answer, error)  # a worker may still be in the context itself

    @property
    def is_over(self) -> bool:
        """Whether `done` has been told; on the event loop."""
        return self._done is None

    def record(self, error: BaseException | None) -> CallRecord:
        """Return what became of the call, once, when nobody waits for it any more; on the event loop.

        Args:
            error: what its client is told, None where that is the answer.
        """
        self.is_recorded = True
        return CallRecord(
            call=cast("Call[object]", self.call),
            ending=self._ended(error),
            stamps=self.stamps if self.is_settled else replace(self.stamps),  # a worker may still be on it
            batch_size=self.batch_size,
            items=self.items,
            leads_run=self.leads_run,
            worker=self.worker,
            trace=self.trace,
            error=None if error is None else str(error) or type(error).__name__,
            is_observed=self.is_observed,
        )

    def _known(self) -> Decoded:
        if self.decoded is None:
            raise RuntimeError("the call is not decoded, or its answer is encoded already")
        return self.decoded

    def _ended(self, error: BaseException | None) -> Ending:
        if error is None:
            return Ending.SUCCESS
        if self._ending not in (None, Ending.SUCCESS) and error is self._error:
            return self._ending
        if isinstance(error, ServiceError) and not self.stamps.forward_start:
            return Ending.REJECTED
        return Ending.CANCELED
