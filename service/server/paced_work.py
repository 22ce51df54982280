"""Work that clients have sent ahead, begun a few pieces at a time, so that others do not wait for all of it."""

import asyncio
from collections import deque
from collections.abc import Callable

AT_A_TIME = 8
"""Pieces of work that are begun in one iteration of the event loop."""


class PacedWork:
    """Begins a few pieces of work in each iteration of the event loop, in the order in which they came.

    Used on the event loop only.
    """

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def add(self, work: Callable[[], None]) -> None:
        """Begin some work, after what was added before."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._take)
        self._waiting.append(work)

    def _take(self) -> None:
        for _ in range(min(AT_A_TIME, len(self._waiting))):
            self._waiting.popleft()()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._take)
