"""Tasks that take their first step at once, instead of in the next iteration of the event loop.

Python 3.12 has the same as `asyncio.Task(…, eager_start=True)`.
"""

import asyncio
from asyncio.tasks import _enter_task, _leave_task  # documented for those who extend asyncio
from collections.abc import Coroutine, Generator
from contextvars import copy_context
from typing import Any


class _Begun(Coroutine[Any, None, None]):
    """A coroutine whose first step has been taken, for a task that takes the others.

    Args:
        coroutine: the coroutine, not begun yet.
    """

    __slots__ = ("_awaited", "_coroutine", "_end", "_is_first_known")

    def __init__(self, coroutine: Coroutine[Any, None, None]) -> None:
        self._coroutine = coroutine
        self._awaited: Any = None
        self._end: BaseException | None = None
        self._is_first_known = False

    def begin(self) -> None:
        """Take the first step, and keep what it awaits, or how it ended, for the task."""
        try:
            self._awaited = self._coroutine.send(None)
        except BaseException as error:
            self._end = error
        self._is_first_known = True

    def send(self, value: None) -> Any:
        """Return what the first step awaits; from then on, take the other steps."""
        if not self._is_first_known:
            return self._coroutine.send(value)
        self._is_first_known = False
        if self._end is not None:
            raise self._end
        awaited, self._awaited = self._awaited, None
        return awaited

    def throw(self, *error: Any) -> Any:
        """Raise an error where the coroutine waits."""
        self._is_first_known = False
        if self._end is not None:
            raise self._end
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """Close the coroutine."""
        self._coroutine.close()

    def __await__(self) -> Generator[Any, None, None]:
        return self._coroutine.__await__()


def start_task(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, None, None]) -> asyncio.Task[None]:
    """Return a task of a coroutine that has taken its first step; within another task, one that has not.

    Args:
        loop: the running event loop.
        coroutine: the coroutine.
    """
    if asyncio.current_task(loop) is not None:
        return loop.create_task(coroutine)
    context, begun = copy_context(), _Begun(coroutine)
    task = loop.create_task(begun, context=context)
    _enter_task(loop, task)  # `asyncio.timeout` and the like ask for the current task
    try:
        context.run(begun.begin)
    finally:
        _leave_task(loop, task)
    return task
