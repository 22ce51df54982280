"""How fast calls have recently been served, and when a refused client should therefore try again."""

import math

LONGEST_RETRY_AFTER = 60
"""Seconds; the longest time that a client is asked to wait."""
_DECAY = 0.9
"""Factor by which earlier measurements count less with each new one."""


class ServiceRate:
    """Calls served per second of busy time, recent ones counting most. Times are in seconds, of any one clock."""

    def __init__(self) -> None:
        self._calls = 0.0
        self._seconds = 0.0
        self._since: float | None = None

    def busy(self, now: float) -> None:
        """Note that there is something to serve."""
        if self._since is None:
            self._since = now

    def idle(self) -> None:
        """Note that nothing is left to serve."""
        self._since = None

    def completed(self, calls: int, now: float) -> None:
        """Note that a worker has served some calls."""
        if self._since is None:
            return
        self._calls = self._calls * _DECAY + calls
        self._seconds = self._seconds * _DECAY + now - self._since
        self._since = now

    def retry_after(self, backlog: int) -> int:
        """Return the whole seconds until `backlog` calls are served at this rate; 1 to `LONGEST_RETRY_AFTER`."""
        if not self._calls:
            return 1
        seconds = backlog * self._seconds / self._calls
        return min(max(1, math.ceil(seconds)), LONGEST_RETRY_AFTER)
