"""Work that may wait, begun a little at a time, so that others do not wait for all of it."""

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter

TURN_SECONDS = 0.001
"""How long work is begun in one iteration of the event loop, as far as that is more than one piece."""
TURNS = 8
"""Of so many iterations, work is begun in one: libuv accepts one connection in each, and a response takes several."""


class PacedWork:
    """Begins some pieces of work in one of several iterations of the event loop, in the order in which they came.

    Used on the event loop only.
    """

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._pause = 0

    def add(self, work: Callable[[], None]) -> None:
        """Begin some work, after what was added before."""
        if not self._waiting:
            self._pause = 0
            asyncio.get_running_loop().call_soon(self._take)
        self._waiting.append(work)

    def _take(self) -> None:
        try:
            if self._pause:
                self._pause -= 1
            else:
                self._pause = TURNS - 1
                self._begin()
        finally:  # a piece of work that fails is no reason for the others to wait for ever
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._take)

    def _begin(self) -> None:
        until = perf_counter() + TURN_SECONDS
        while self._waiting:
            self._waiting.popleft()()
            if perf_counter() >= until:
                break
