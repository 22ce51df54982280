"""A call that the scheduler has taken, until it is answered or given up."""

import asyncio
from collections.abc import Sequence
from typing import Generic, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from engine import InputError, LayerError, RunStoppedError
from service.errors import engine_error
from service.scheduling.call import Call, Observer
from service.scheduling.job import Done, Job
from service.scheduling.refusals import timed_out
from service.scheduling.scheduler import Scheduler

Payload = TypeVar("Payload")

_PATIENCE = 0.02
"""Seconds before a client is watched: most answers come sooner, and a task for each would cost more than it saves."""


class PendingCall(Generic[Payload]):
    """A call that ends once: by its answer, by its deadline, or because it is given up. Used on the event loop only.

    Args:
        call: the call.
        timeout: seconds until it is given up.
        priority: 1 is served first.
        scheduler: where it is queued.
        observers: told of its end, before `done` is.
        done: told of its end: the answer; or 504 `timeout`, 422 or 503 where the model does not run on it, what the
            call's `decode` or `encode` raised, or what it was given up with.

    Raises:
        ServiceError: 503 `queue_full` or `shutting_down`; the observers are told of that too.
    """

    def __init__(
        self,
        call: Call[Payload],
        timeout: float,
        priority: int,
        scheduler: Scheduler,
        observers: Sequence[Observer],
        done: Done[Payload],
    ) -> None:
        self._scheduler = scheduler
        self._observers = observers
        self._done = done
        self._job = job = Job(call, timeout, priority, self._end)
        try:
            scheduler.submit(job)
        except BaseException as error:
            self._tell(error)
            raise
        self._deadline = job.loop.call_later(timeout, self._expire)

    def give_up(self, reason: str, error: BaseException) -> None:
        """End the call with an error, unless it is over; its run stops before the model's next layer.

        Args:
            reason: why, for the run's own record.
            error: what `done` is told.
        """
        if self._job.is_over:
            return
        if not self._job.is_settled:
            self._scheduler.stop(self._job, reason)
        self._job.end(None, error)

    def _expire(self) -> None:
        self.give_up("its time is up", timed_out(self._job.timeout))

    def _end(self, answer: Payload | None, error: BaseException | None) -> None:
        self._deadline.cancel()
        self._tell(error)
        self._done(answer, None if error is None else self._explain(error))

    def _tell(self, error: BaseException | None) -> None:
        record = self._job.record(error)
        for observer in self._observers:
            observer.observe(record)

    def _explain(self, error: BaseException) -> BaseException:
        explained: BaseException = error
        if isinstance(error, RunStoppedError):  # the worker saw the deadline before this call did
            explained = timed_out(self._job.timeout)
        elif isinstance(error, InputError | LayerError):
            explained = engine_error(error)
        if explained is not error:
            explained.__cause__ = error
        return explained


class Departure:
    """Gives a call up when its client leaves, as far as an ASGI channel tells.

    Args:
        pending: the call.
        receive: the channel of its request, whose body is read to the end.
    """

    def __init__(self, pending: PendingCall[Payload], receive: Receive) -> None:
        self._pending = pending
        self._receive = receive
        self._watching: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(_PATIENCE, self._begin)

    def end(self) -> None:
        """Watch no more."""
        self._timer.cancel()
        if self._watching is not None:
            self._watching.cancel()
            # its CancelledError holds this watch: together they would outlive the request
            self._watching = None

    def _begin(self) -> None:
        self._watching = self._loop.create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._pending.give_up("the client left", ClientDisconnect())
