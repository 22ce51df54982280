"""One piece of work: from its place in the queue to the coroutine that waits for its result."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Job(Generic[Result]):
    """Work that a worker thread does for a coroutine.

    Made on the event loop, run by a worker. Times are those of `time.monotonic`, in seconds.

    Attributes:
        deadline: when the work is to be given up.
        queued: when the job was made.
        started: when a worker took it; `queued` until then.
        future: the result; belongs to the event loop.
    """

    def __init__(self, work: "Callable[[Job[Result]], Result]", deadline: float) -> None:
        self.deadline = deadline
        self.queued = time.monotonic()
        self.started = self.queued
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Result] = self._loop.create_future()
        self._work = work
        self._context = copy_context()
        self._stop_reason: str | None = None

    def stop(self, reason: str) -> None:
        """Ask the work to stop; it does so before the model's next layer."""
        self._stop_reason = reason

    def stop_reason(self) -> str | None:
        """Tell why the work is to stop, None while it is to go on."""
        if self._stop_reason is None and time.monotonic() >= self.deadline:
            return "its time is up"
        return self._stop_reason

    def run(self) -> Callable[[], None]:
        """Do the work and return what hands its result to the event loop. Neither raises anything."""
        self.started = time.monotonic()
        if self.stop_reason() is not None:
            return _nothing
        try:
            result = self._context.run(self._work, self)
        except BaseException as error:  # whatever the work raises, the worker lives on
            return partial(self._hand_over, self._fail, error)
        return partial(self._hand_over, self._succeed, result)

    def _hand_over(self, settle: Callable[..., None], outcome: object) -> None:
        # a closed loop has nobody left who waits
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(settle, outcome)

    def _succeed(self, result: Result) -> None:
        if not self.future.done():
            self.future.set_result(result)

    def _fail(self, error: BaseException) -> None:
        if not self.future.done():
            # a future holds no StopIteration, and one that holds CancelledError looks cancelled
            plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
            self.future.set_exception(error if plain else RuntimeError(repr(error)))


def _nothing() -> None:
    """Hand over nothing: nobody waits for work that was given up."""
