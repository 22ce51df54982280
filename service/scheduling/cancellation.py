"""Cancellation: what stops a run, and what notices that a client has left."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

from starlette.types import Receive

from engine import StopSignal
from service.scheduling.job import Job

WATCH_DELAY_SECONDS = 0.02
"""Seconds before a client is watched: most responses come sooner, and a task for each would cost more."""
_deadline = attrgetter("deadline")


@contextmanager
def stop_signal(jobs: Sequence[Job[Any]]) -> Iterator[StopSignal]:
    """Return the stop signal of a run: set once all of its jobs are cancelled, or after the last deadline."""
    signal = StopSignal(max(map(_deadline, jobs)))

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


@contextmanager
def watch_client(receive: Receive, on_disconnect: Callable[[], None]) -> Iterator[None]:
    """Call a function if the client disconnects within this context; on the event loop.

    Args:
        receive: the ASGI channel of a request whose body was read to the end.
        on_disconnect: called once.
    """
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[None]] = []
    timer = loop.call_later(
        WATCH_DELAY_SECONDS, lambda: tasks.append(loop.create_task(_watch(receive, on_disconnect)))
    )
    try:
        yield
    finally:
        timer.cancel()
        for task in tasks:
            task.cancel()


async def _watch(receive: Receive, on_disconnect: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    on_disconnect()
