"""Waits for a job, its deadline and its client at once."""

import asyncio
from time import monotonic
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from engine import RunStoppedError
from service.errors import ServiceError
from service.job import Job
from service.scheduler import Scheduler

Result = TypeVar("Result")


async def result_of(job: Job[Result], scheduler: Scheduler, receive: Receive, timeout: float) -> Result:
    """Return a job's result, unless its time is up or its client leaves first: then it is given up.

    Args:
        job: the job.
        scheduler: what it was submitted to.
        receive: the request's ASGI channel, its body read to the end.
        timeout: seconds that the deadline stands for, to be named in the error.

    Raises:
        ServiceError: 504 `timeout`, or what the work raised.
        ClientDisconnect: the client has left.
    """
    departure = asyncio.ensure_future(_departure(receive))
    reason = "the request was cancelled"
    try:
        awaited: set[asyncio.Future[Any]] = {job.future, departure}
        await asyncio.wait(
            awaited,
            timeout=max(0.0, job.deadline - monotonic()),
            return_when=asyncio.FIRST_COMPLETED,
        )
        if job.future.done():
            return job.future.result()
        if departure.done():
            reason = "the client left"
            raise ClientDisconnect
        reason = "its time is up"
        raise _timed_out(timeout)
    except RunStoppedError as error:
        # the worker saw the deadline before this coroutine did
        raise _timed_out(timeout) from error
    finally:
        scheduler.stop(job, reason)
        departure.cancel()


def _timed_out(timeout: float) -> ServiceError:
    return ServiceError(
        504, "timeout", f"the request took longer than {timeout:g} s and was stopped", {"timeout": timeout}
    )


async def _departure(receive: Receive) -> None:
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
