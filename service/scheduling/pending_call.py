"""A call from its submission to its end, as the event loop sees it."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from engine import InputError, LayerError, RunStoppedError
from service.errors import ServiceError, engine_error
from service.scheduling.call import Call
from service.scheduling.call_record import CallObserver, CallRecord, CallStatus
from service.scheduling.delay_queue import DelayQueue
from service.scheduling.progress import Result
from service.scheduling.refusals import timed_out
from service.scheduling.scheduled_call import ScheduledCall
from service.scheduling.scheduler import Scheduler

_logger = logging.getLogger(__name__)

Payload = TypeVar("Payload")

DoneCallback = Callable[[Payload | None, BaseException | None], None]
"""Called with the answer of a call, or with the error in its place; on the event loop."""


class PendingCall(Generic[Payload]):
    """A call that ends exactly once: by its answer, by its deadline, or because it is given up.

    Used on the event loop only. Observers and `done` are called when it ends, in the context that it was made in.

    Args:
        call: the call.
        deadline: calls back when it is to be given up.
        priority: 1 is served first.
        scheduler: where it is submitted to.
        observers: get the call's record when it ends, before `done` is called.
        done: called when it ends: with the answer; or with 504 `timeout`, 422 or 503 where the model fails
            on its inputs, what the call's `decode` or `encode` raised, or what it was given up with.
    """

    __slots__ = ("_deadline", "_done", "_observers", "_scheduled", "_scheduler")

    def __init__(
        self,
        call: Call[Payload],
        deadline: DelayQueue,
        priority: int,
        scheduler: Scheduler,
        observers: Sequence[CallObserver],
        done: DoneCallback[Payload],
    ) -> None:
        self._scheduler = scheduler
        self._observers = observers
        self._done: DoneCallback[Payload] | None = done
        self._scheduled: ScheduledCall[Payload] | None = ScheduledCall(call, deadline.seconds, priority, self)
        self._deadline = deadline

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._scheduled is None

    def submit(self) -> None:
        """Queue it, and start its time; to be called once.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`. Observers get a record of it; `done` is not called.
        """
        scheduled = self._scheduled
        if scheduled is None:
            raise RuntimeError("the call has ended")
        try:
            self._scheduler.submit(scheduled)
        except ServiceError as error:
            self._scheduled = self._done = None
            self._observe(_record(scheduled, CallStatus.REJECTED, error))
            raise
        self._deadline.add(self._expire)

    def give_up(self, reason: str, error: BaseException) -> None:
        """End it with an error, unless it has ended already; its run stops before the model's next layer.

        Args:
            reason: why the run is stopped.
            error: what `done` is called with.
        """
        scheduled = self._scheduled
        if scheduled is None:
            return
        if scheduled.progress.result is None:
            self._scheduler.cancel(scheduled, reason)
        self.abort(error)

    def complete(self, result: Result[Payload], leads_run: bool) -> None:
        """End it by a worker's result, unless it has ended already.

        Args:
            result: the result.
            leads_run: whether it is the one call of its run that counts the run.
        """
        self._end(result.status, result.answer, result.error, leads_run)

    def abort(self, error: BaseException) -> None:
        """End it with an error, unless it has ended already; a run that is in progress goes on."""
        scheduled = self._scheduled
        if scheduled is not None:
            never_ran = isinstance(error, ServiceError) and not scheduled.progress.timestamps.forward_start
            self._end(CallStatus.REJECTED if never_ran else CallStatus.CANCELED, None, error)

    def _end(
        self, status: CallStatus, answer: Payload | None, error: BaseException | None, leads_run: bool = False
    ) -> None:
        scheduled, done = self._scheduled, self._done
        if scheduled is None or done is None:
            return
        # an error's traceback refers to the scheduled call, and that to this one: they must not keep the request alive
        self._scheduled = self._done = None
        self._deadline.discard(self._expire)
        record = _record(scheduled, status, error, leads_run)
        explained = None if error is None else _explain(error, scheduled.timeout)
        # a copy, as a worker may still be in the context itself
        scheduled.context.copy().run(self._tell, record, done, answer, explained)

    def _expire(self) -> None:
        if self._scheduled is not None:
            self.give_up("its time is up", timed_out(self._scheduled.timeout))

    def _tell(
        self,
        record: CallRecord,
        done: DoneCallback[Payload],
        answer: Payload | None,
        error: BaseException | None,
    ) -> None:
        self._observe(record)
        done(answer, error)

    def _observe(self, record: CallRecord) -> None:
        for observer in self._observers:
            try:
                observer.observe(record)
            except Exception:  # the call has ended for all that, and its client has to be answered
                _logger.exception("the end of a call could not be recorded")


def _record(
    scheduled: ScheduledCall[Payload],
    status: CallStatus,
    error: BaseException | None,
    leads_run: bool = False,
) -> CallRecord:
    call, progress = scheduled.call, scheduled.progress
    return CallRecord(
        model=call.model.name,
        version=call.model.version,
        surface=call.surface,
        request_id=call.request_id,
        status=status,
        # a copy where a worker may still write to them
        timestamps=replace(progress.timestamps) if progress.result is None else progress.timestamps,
        batch_size=progress.batch_size,
        items=progress.items,
        leads_run=leads_run,
        worker=progress.worker,
        trace=progress.trace,
        error=None if error is None else str(error) or type(error).__name__,
        is_observed=progress.is_observed,
        client=call.client,
    )


def _explain(error: BaseException, timeout: float) -> BaseException:
    """Return the error that the client of a call is answered with."""
    explained: BaseException = error
    if isinstance(error, RunStoppedError):  # a worker saw the deadline before the event loop did
        explained = timed_out(timeout)
    elif isinstance(error, InputError | LayerError):
        explained = engine_error(error)
    if explained is not error:
        explained.__cause__ = error
    return explained
