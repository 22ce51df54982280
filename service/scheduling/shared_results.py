"""Results that many may ask for at once: those who come before one is begun share it."""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

Result = TypeVar("Result")

MANY = 8
"""Requests that share a result, beyond which the next one waits: they come faster than they can be answered."""
PAUSE = 4
"""How many times as long as a result took to make nothing is computed after it, where many asked for it."""
RELEASED = 8
"""Requests that go on in one iteration of the event loop: thousands at once would hold up all others."""


@dataclass(slots=True)
class _Run:
    """A result to be made.

    Attributes:
        compute: makes it; of several functions for the same key, the first that came.
        waiters: get it.
    """

    compute: Callable[[], Any]
    waiters: list[asyncio.Future[Any]] = field(default_factory=list)


class SharedResults:
    """Runs functions on threads for those who ask for what they return.

    A result is made after all who get it came, so that it tells of everything that happened before. For one key, one
    is made at a time: who comes meanwhile shares the next one. Thousands of connections that ask for metrics cost as
    much as a few. Used on the event loop only.
    """

    def __init__(self) -> None:
        self._busy: set[Hashable] = set()
        self._waiting: dict[Hashable, _Run] = {}

    async def get(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """Return what a function returns that is called from now on, or raise what it raises.

        Args:
            key: what is asked for.
            compute: makes it; called on a thread.
        """
        run = self._waiting.get(key)
        if run is None:
            run = self._waiting[key] = _Run(compute)
            if key not in self._busy:
                self._busy.add(key)
                self._begin(key)
        waiter: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        run.waiters.append(waiter)
        return await waiter

    def _begin(self, key: Hashable) -> None:
        """Make a result for those who wait; who comes from now on waits for the next one."""
        run = self._waiting.pop(key)
        loop = asyncio.get_running_loop()
        began = loop.time()
        task = loop.create_task(_on_a_thread(run.compute))
        task.add_done_callback(lambda task: self._end(key, run, task, loop.time() - began))

    def _end(self, key: Hashable, run: _Run, task: asyncio.Task[Any], seconds: float) -> None:
        loop = task.get_loop()
        pause = PAUSE * seconds if len(run.waiters) > MANY else 0.0
        _release(loop, task, deque(run.waiters))
        if key in self._waiting:
            loop.call_later(pause, self._begin, key)
        else:
            self._busy.remove(key)


async def _on_a_thread(compute: Callable[[], Result]) -> Result:
    from anyio import to_thread  # noqa: PLC0415  # it takes longer than all else of this module, at every start

    return await to_thread.run_sync(compute)


def _release(
    loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any], waiters: deque[asyncio.Future[Any]]
) -> None:
    """Let those who wait go on, a few in each iteration of the loop."""
    for _ in range(min(RELEASED, len(waiters))):
        _hand_over(task, waiters.popleft())
    if waiters:
        loop.call_soon(_release, loop, task, waiters)


def _hand_over(task: asyncio.Task[Any], waiter: asyncio.Future[Any]) -> None:
    if waiter.done():  # whoever asked has left
        return
    if task.cancelled():
        waiter.cancel()
    elif (error := task.exception()) is not None:
        waiter.set_exception(error)
    else:
        waiter.set_result(task.result())
