"""Work on bodies before their calls are queued: on one thread, one body of each client in turn."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from service.heavy_work import giving_way
from service.peer import Peer
from service.scheduling.refusals import timed_out

Result = TypeVar("Result")


@dataclass(slots=True)
class _Job:
    """A function that waits for the thread.

    Attributes:
        function: what to do.
        answer: gets what it returns or raises.
        until: when nobody waits for it any more, on the event loop's clock.
        patience: seconds that it may wait.
    """

    function: Callable[[], Any]
    answer: asyncio.Future[Any]
    until: float
    patience: float


class PeerTurns:
    """Runs functions on one thread; where clients wait for it, one function of each in turn.

    Used on one event loop only. As in `ClientQueue`, a client that has much to do delays others by one function each
    time, and itself by all of them.

    Args:
        name: what the thread is called.
    """

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._waiting: dict[Peer, deque[_Job]] = {}
        self._is_busy = False

    async def run(self, peer: Peer, function: Callable[[], Result], patience: float) -> Result:
        """Return what a function returns, or raise what it raises.

        Args:
            peer: for whom.
            function: what to do on the thread.
            patience: seconds that it may wait for its turn.

        Raises:
            ServiceError: 504 `timeout`, as its turn has not come in time.
            MemoryError: the system has no room for the thread.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Result] = loop.create_future()
        self._waiting.setdefault(peer, deque()).append(
            _Job(function, answer, loop.time() + patience, patience)
        )
        del function
        if not self._is_busy:
            self._begin_next(loop)
        return await answer

    def _begin_next(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin with the first function of the client whose turn it is."""
        self._is_busy = False
        while self._waiting and not self._is_busy:
            peer = next(iter(self._waiting))
            jobs = self._waiting.pop(peer)
            job = jobs.popleft()
            if jobs:
                self._waiting[peer] = jobs
            if job.answer.done():  # its request was cancelled
                continue
            if loop.time() >= job.until:
                job.answer.set_exception(timed_out(job.patience))
                continue
            self._begin(job, loop)

    def _begin(self, job: _Job, loop: asyncio.AbstractEventLoop) -> None:
        try:
            done = self._thread.submit(_run_giving_way, job.function)
        except RuntimeError as error:  # the thread cannot be started
            job.answer.set_exception(MemoryError(str(error)))
            return
        self._is_busy = True
        done.add_done_callback(partial(self._tell, loop, job.answer))

    def _tell(self, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Any], done: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            loop.call_soon_threadsafe(self._end, loop, answer, done)

    def _end(self, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Any], done: Future[Any]) -> None:
        self._begin_next(loop)
        if answer.done():
            return
        error = done.exception()
        if error is None:
            answer.set_result(done.result())
        else:
            answer.set_exception(error)


def _run_giving_way(function: Callable[[], Result]) -> Result:
    with giving_way():
        return function()
