"""Fair use of what is outside the queues of models: threads, 503 responses, and results that take long to compute."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from service.context import Peer
from service.errors import timed_out

Result = TypeVar("Result")

RATE = 100.0
"""503 responses per second to one client, beyond a burst."""
BURST = 32
"""503 responses to one client without a delay."""
MAX_WAITING = 256
"""Maximum delayed responses, as each keeps its connection open; beyond it, responses are not delayed."""
MAX_SECONDS = 1.0
_MAX_CLIENTS = 1024
MANY = 8
"""Requests that share a result, beyond which the next one is delayed."""
PAUSE = 4
"""Delay of the next result, as a multiple of the time that this one took."""


class FairExecutor:
    """Runs functions on some threads, round-robin by client. Used on one event loop only.

    A client waits for its own previous function before it joins the line of clients.

    Args:
        name: name of the threads.
        threads: how many there are.
    """

    def __init__(self, name: str, threads: int = 1) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._line = asyncio.Semaphore(threads)
        self._clients: WeakValueDictionary[Peer, asyncio.Lock] = WeakValueDictionary()

    async def run(self, client: Peer, function: Callable[[], Result], timeout: float) -> Result:
        """Return what a function returns, or raise what it raises.

        Args:
            client: the client.
            function: runs on a thread.
            timeout: maximum seconds until it starts.

        Raises:
            ServiceError: 504 `timeout`, as it did not start in time.
            MemoryError: a thread cannot be started.
        """
        own = self._clients.setdefault(client, asyncio.Lock())
        try:
            async with asyncio.timeout(timeout) as waiting, own, self._line:
                waiting.reschedule(None)
                return await self._run(function)
        except TimeoutError:
            if waiting.expired():
                raise timed_out(timeout) from None
            raise

    def close(self) -> None:
        """End the threads, once what they do is done."""
        self._threads.shutdown()

    async def _run(self, function: Callable[[], Result]) -> Result:
        loop = asyncio.get_running_loop()
        try:
            future = loop.run_in_executor(self._threads, function)
        except RuntimeError as error:
            raise MemoryError(str(error)) from error
        return await future


class ErrorThrottle:
    """Delays 503 responses to clients that retry at once. Used on the event loop only.

    A 503 costs a quarter of a millisecond. Beside a client that ignores `Retry-After` on 48 connections, the 99th
    percentile of others would otherwise be 72 to 89 ms instead of 13 to 15.
    """

    def __init__(self) -> None:
        self._due: OrderedDict[Peer, float] = OrderedDict()
        self._waiting = 0

    async def wait(self, client: Peer) -> None:
        """Return when a client may get its 503: at once, within its burst."""
        now = asyncio.get_running_loop().time()
        earliest = now - BURST / RATE
        due = max(self._due.get(client, earliest), earliest) + 1 / RATE
        if self._waiting >= MAX_WAITING:
            return
        if due - now > MAX_SECONDS:
            due = now + MAX_SECONDS
        else:
            self._note(client, due)
        if due <= now:
            return
        self._waiting += 1
        try:
            await asyncio.sleep(due - now)
        finally:
            self._waiting -= 1

    def _note(self, client: Peer, due: float) -> None:
        self._due[client] = due
        self._due.move_to_end(client)
        if len(self._due) > _MAX_CLIENTS:
            self._due.popitem(last=False)


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
