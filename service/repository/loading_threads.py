"""The threads that models are loaded on, beside the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

Result = TypeVar("Result")


class LoadingThreads:
    """Runs functions that may take seconds or minutes, and does not wait for those that are still running at the end.

    All methods are called on the event loop.

    Args:
        most: functions that run at the same time; any others wait.
    """

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="loader")
        self._waiting: set[asyncio.Future[Any]] = set()
        self._refusal: Exception | None = None

    async def run(self, function: Callable[[], Result]) -> Result:
        """Run a function on a thread, in the context of the caller, and return what it returns.

        Raises:
            Exception: what the function raises; or what `abort` got, if that came before the function's end.
        """
        if self._refusal is not None:
            raise self._refusal
        future = asyncio.get_running_loop().run_in_executor(self._pool, copy_context().run, function)
        self._waiting.add(future)
        try:
            return await future
        except asyncio.CancelledError:
            if self._refusal is None:
                raise
            raise self._refusal from None
        finally:
            self._waiting.discard(future)

    def abort(self, refusal: Exception) -> None:
        """Have each caller that waits, and each that still comes, get an error; functions that run are left to end."""
        self._refusal = refusal
        for future in list(self._waiting):
            future.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)
