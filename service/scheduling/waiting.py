"""Waits for a job, its deadline and its client at once."""

import asyncio
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from engine import RunStoppedError
from service.scheduling.job import Job
from service.scheduling.refusals import timed_out
from service.scheduling.scheduler import Scheduler

Payload = TypeVar("Payload")

_PATIENCE = 0.02
"""Seconds before a client is watched: most answers come sooner, and a task for each would cost more than it saves."""


async def answer_of(job: Job[Payload], scheduler: Scheduler, receive: Receive) -> Payload:
    """Return a job's answer, unless its time is up or its client leaves first: then it is given up.

    Args:
        job: the job, submitted.
        scheduler: what it was submitted to.
        receive: the request's ASGI channel, its body read to the end.

    Raises:
        ServiceError: 504 `timeout`, or what the job failed with.
        ClientDisconnect: the client has left.
    """
    watch = _Watch(job, receive)
    try:
        return await job.future
    except RunStoppedError as error:
        # the worker saw the deadline before this coroutine did
        raise timed_out(job.timeout) from error
    finally:
        watch.end()
        if not job.is_settled:
            scheduler.stop(job, watch.reason)


class _Watch:
    """Ends the wait for a job when its deadline comes or its client leaves.

    Attributes:
        reason: why the wait ended, where no answer ended it.
    """

    def __init__(self, job: Job[Any], receive: Receive) -> None:
        self._job = job
        self._receive = receive
        self._departure: asyncio.Task[None] | None = None
        self.reason = "the request was cancelled"
        patience = min(_PATIENCE, job.seconds_left())
        self._timer = job.loop.call_later(patience, self._begin)

    def end(self) -> None:
        """Watch no more."""
        self._timer.cancel()
        if self._departure is not None:
            self._departure.cancel()
            # its CancelledError holds this watch: together they would outlive the request
            self._departure = None

    def _begin(self) -> None:
        self._departure = self._job.loop.create_task(self._leave())
        self._timer = self._job.loop.call_later(self._job.seconds_left(), self._expire)

    def _expire(self) -> None:
        self._settle("its time is up", timed_out(self._job.timeout))

    async def _leave(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._settle("the client left", ClientDisconnect())

    def _settle(self, reason: str, error: Exception) -> None:
        if not self._job.future.done():
            self.reason = reason
            self._job.future.set_exception(error)
