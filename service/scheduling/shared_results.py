"""Results of expensive requests, such as `/metrics`, shared by all clients that wait for them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

Result = TypeVar("Result")

MANY = 8
"""Requests that share a result, beyond which the next one is delayed."""
PAUSE = 4
"""Delay of the next result, as a multiple of the time that this one took."""


class SharedResults:
    """Computes results on threads, one at a time for each key. Used on the event loop only.

    A result is computed after all requests that it is for, so that it includes everything that happened before.
    """

    def __init__(self) -> None:
        self._next: dict[Hashable, asyncio.Task[Any]] = {}
        self._waiting: Counter[Hashable] = Counter()
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()
        self._line = asyncio.Lock()

    async def get(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """Return what a function returns that is called from now on, or raise what it raises.

        Args:
            key: what the result is of.
            compute: computes it, on a thread.
        """
        task = self._next.get(key)
        if task is None:
            task = self._next[key] = asyncio.get_running_loop().create_task(self._compute(key, compute))
        self._waiting[key] += 1
        try:
            return await asyncio.shield(task)
        finally:
            async with self._line:  # one request an iteration of the event loop: thousands would block it
                pass

    async def _compute(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        lock = self._locks.setdefault(key, asyncio.Lock())
        await lock.acquire()
        del self._next[key]  # requests from now on share the next result
        waiting, loop = self._waiting.pop(key), asyncio.get_running_loop()
        began = loop.time()
        try:
            return await asyncio.to_thread(compute)
        finally:
            loop.call_later(PAUSE * (loop.time() - began) if waiting > MANY else 0.0, lock.release)
