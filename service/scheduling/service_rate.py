"""How fast the calls of a model are answered of late."""

import math

LONGEST_RETRY_AFTER = 60
"""Seconds; a client that is told to wait longer had better go elsewhere."""
_KEPT = 0.9
"""Part of what was measured before that still counts after one more turn."""


class ServiceRate:
    """Calls answered per second of having any, recent ones counting most. Times are in seconds, of any one clock."""

    def __init__(self) -> None:
        self._calls = 0.0
        self._seconds = 0.0
        self._since: float | None = None

    def busy(self, now: float) -> None:
        """Note that there is something to do."""
        if self._since is None:
            self._since = now

    def idle(self) -> None:
        """Note that nothing is left to do."""
        self._since = None

    def completed(self, calls: int, now: float) -> None:
        """Note that a worker is done with some calls."""
        if self._since is None:
            return
        self._calls = self._calls * _KEPT + calls
        self._seconds = self._seconds * _KEPT + now - self._since
        self._since = now

    def retry_after(self, backlog: int) -> int:
        """Return the whole seconds until `backlog` calls are answered at this rate; 1 to `LONGEST_RETRY_AFTER`."""
        if not self._calls:
            return 1
        seconds = backlog * self._seconds / self._calls
        return min(max(1, math.ceil(seconds)), LONGEST_RETRY_AFTER)
