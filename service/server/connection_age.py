"""How long connections are kept, so that clients come back through the load balancer and find servers that are new."""

import asyncio
from collections.abc import Callable
from random import Random

JITTER = 0.1
"""The age of each connection differs by up to this part of it: those that began together do not end together."""


class ConnectionAge:
    """Calls a function of each connection when its age is reached, and of all of them once the server leaves.

    Used on the event loop only.

    Args:
        seconds: the age; 0: none, connections become as old as their clients like.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self._is_over = False
        self._random = Random()  # noqa: S311  # no secret

    def begin(self, loop: asyncio.AbstractEventLoop, end: Callable[[], None]) -> asyncio.TimerHandle | None:
        """Take note of a new connection; returns its timer, None where it needs none.

        Args:
            loop: the running event loop.
            end: called when its age is reached: at once if all connections are to end.
        """
        if self._is_over:
            end()
        elif self._seconds:
            return loop.call_later(self._seconds * self._random.uniform(1 - JITTER, 1 + JITTER), end)
        return None

    def end_all(self) -> None:
        """Have each connection that begins from now on be as old as it may become."""
        self._is_over = True
