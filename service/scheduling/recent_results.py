"""Results that many may ask for at once: beyond a few, they share one."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from anyio import to_thread

Result = TypeVar("Result")

SECONDS = 0.5
"""How old a result may be that is shared."""
FREE = 3
"""Requests in so much time that each get a result of their own, made after they came."""
_KEPT = 16


@dataclass(slots=True)
class _Recent:
    """What was asked for since some moment.

    Attributes:
        since: the moment, on the event loop's clock.
        asked: how often.
        task: makes, or has made, a result, the last to begin.
        made: has made a result, the last to end.
    """

    since: float
    asked: int = 0
    task: asyncio.Task[Any] | None = None
    made: asyncio.Task[Any] | None = None


class RecentResults:
    """Runs functions on threads for those who ask for what they return.

    A few requests cost as many runs, and see all that happened before they came. Where there are more of them in
    `SECONDS`, the others get the latest result, which is hardly older than that, and nothing is computed for them:
    thousands of connections that ask for metrics cost as much as a few. Results are dropped soon. Used on the event
    loop only.
    """

    def __init__(self) -> None:
        self._recent: OrderedDict[Hashable, _Recent] = OrderedDict()

    async def get(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """Return what a function returns, or has returned a moment ago, or raise what it raises.

        Args:
            key: what is asked for.
            compute: makes it; called on a thread.
        """
        loop = asyncio.get_running_loop()
        recent = self._of(key, loop.time())
        recent.asked += 1
        if recent.asked <= FREE or recent.task is None:
            task = recent.task = loop.create_task(to_thread.run_sync(compute))
            task.add_done_callback(lambda _: self._end(key, recent, task))
        else:  # thousands do not wait for the same result, to go on all at once
            task = recent.made or recent.task
        result: Result = await asyncio.shield(task)
        return result

    def _of(self, key: Hashable, now: float) -> _Recent:
        """Return what was asked for in these `SECONDS`; while a result is made that takes longer, they go on."""
        recent = self._recent.get(key)
        if recent is None:
            recent = self._recent[key] = _Recent(now)
            if len(self._recent) > _KEPT:
                self._recent.popitem(last=False)
        elif now - recent.since >= SECONDS and (recent.task is None or recent.task.done()):
            recent.since, recent.asked = now, 0
        return recent

    def _end(self, key: Hashable, recent: _Recent, task: asyncio.Task[Any]) -> None:
        if not task.cancelled():
            task.exception()  # perhaps nobody waits any more who would ask for it
        recent.made = task
        with suppress(RuntimeError):  # the loop is closed
            task.get_loop().call_later(2 * SECONDS, self._drop, key, recent, task)

    def _drop(self, key: Hashable, recent: _Recent, task: asyncio.Task[Any]) -> None:
        """Drop a result, unless a later one is made."""
        if self._recent.get(key) is recent and recent.task is task:
            del self._recent[key]
