"""Threads for work outside of the queues, shared round-robin by client."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from weakref import WeakValueDictionary

from service.context import Peer
from service.errors import timed_out

Result = TypeVar("Result")


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
