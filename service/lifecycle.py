"""The phase that the server is in, and the number of requests that it has accepted."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum

LAST_SECONDS = 3.0
"""Seconds that a body may still take to arrive after the drain; uvicorn cancels its request two seconds later."""


class Phase(Enum):
    """What the server is doing."""

    STARTING = "starting"
    READY = "ready"
    LEAVING = "leaving"
    """It is not ready any more, so that nobody sends new clients; it still does all that it did."""
    DRAINING = "draining"


class Lifecycle:
    """The server's phase; only the thread of the event loop changes it.

    Attributes:
        phase: what the server is doing.
        failure: why the server could not start, for people; None otherwise.
        is_drain_over: whether the drain is over, and what has no response yet is refused.
    """

    def __init__(self) -> None:
        self.phase = Phase.STARTING
        self._accepted = 0
        self._body_deadlines: set[asyncio.Timeout] = set()
        self._watchers: list[Callable[[], object]] = []
        self.failure: str | None = None
        self.is_drain_over = False

    @property
    def accepted(self) -> int:
        """Number of requests that were accepted and have no response yet."""
        return self._accepted

    def started(self) -> None:
        """Note that models are loaded and workers run; a server that is draining already keeps draining."""
        if self.phase is Phase.STARTING:
            self.phase = Phase.READY
            self._notify()

    def leave(self) -> None:
        """Say that the server is not ready any more, and go on accepting requests."""
        self.phase = Phase.LEAVING
        self._notify()

    def drain(self) -> None:
        """Accept no more requests."""
        self.phase = Phase.DRAINING
        self._notify()

    def watch(self, callback: Callable[[], object]) -> None:
        """Have a function called whenever the phase has changed; a signal may do so, between any two instructions."""
        self._watchers.append(callback)

    def _notify(self) -> None:
        for callback in self._watchers:
            callback()

    def end_drain(self) -> None:
        """Wait no longer than `LAST_SECONDS` for the bodies that are still arriving."""
        self.is_drain_over = True
        last = asyncio.get_running_loop().time() + LAST_SECONDS
        for deadline in self._body_deadlines:
            when = deadline.when()
            if when is None or when > last:
                deadline.reschedule(last)

    @contextmanager
    def receiving(self, deadline: asyncio.Timeout) -> Iterator[None]:
        """Let `end_drain` bring the deadline of a body forward for as long as the context lasts."""
        self._body_deadlines.add(deadline)
        try:
            yield
        finally:
            self._body_deadlines.discard(deadline)

    def begin_request(self) -> None:
        """Count a request as accepted, until `end_request`."""
        self._accepted += 1

    def end_request(self) -> None:
        """Note that an accepted request has its response or was aborted."""
        self._accepted -= 1
