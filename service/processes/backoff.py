"""How long to wait before a process is started again that has ended."""

from collections.abc import Callable
from time import monotonic

FIRST_SECONDS, MOST_SECONDS = 0.5, 30.0
"""The wait after a second end in a row, which doubles with each further one, and the longest."""
SOUND_SECONDS = 60.0
"""A process that has served so long did not end because of its start."""


class Backoff:
    """Waits longer each time in a row. A process that served for a while is started again at once.

    Args:
        clock: returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._seconds = 0.0

    def begin(self) -> None:
        """Note that a process is started."""
        self._since = self._clock()

    def seconds(self) -> float:
        """Return how long to wait, now that the process has ended."""
        if self._clock() - self._since >= SOUND_SECONDS:
            self._seconds = 0.0
        waited, self._seconds = self._seconds, min(max(2 * self._seconds, FIRST_SECONDS), MOST_SECONDS)
        return waited
