"""Has the compiler give way to the runs of numpy layers that stand in for its programs: both need the interpreter."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from engine.build_clock import BuildClock

PATIENCE = 4.0
"""How many times as long as it worked the compiler waits for runs to end, so that it comes to an end itself."""
_LONGEST = 0.5
"""Seconds that it waits at most each time: a long run leaves the interpreter to others meanwhile."""


class CompileThrottle:
    """Counts runs, which never wait, and has the compiler wait while there are any, for a limited time.

    Attributes:
        waited: seconds that the compiler has waited so far.
    """

    def __init__(self) -> None:
        self.waited = 0.0
        self._changed = threading.Condition()
        self._running = 0
        self._worked_since = perf_counter()

    @contextmanager
    def run(self) -> Iterator[None]:
        """Enclose a run that the compiler gives way to."""
        with self._changed:
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                if not self._running:
                    self._changed.notify_all()

    def give_way(self) -> float:
        """Wait until no run is under way, or for as long as is fair; returns the seconds waited."""
        started = perf_counter()
        longest = min(_LONGEST, PATIENCE * (started - self._worked_since))
        with self._changed:
            self._changed.wait_for(lambda: not self._running, longest)
        self._worked_since = perf_counter()
        self.waited += self._worked_since - started
        return self._worked_since - started


class ThrottledClock(BuildClock):
    """A clock that has the compiler give way wherever it is asked; the time waited does not count.

    Args:
        seconds, doing: as for `BuildClock`.
        pace: what to give way to.
    """

    def __init__(self, seconds: float | None, doing: str, pace: CompileThrottle) -> None:
        super().__init__(seconds, doing)
        self._pace = pace

    def check(self, type: str, name: str) -> None:
        """Give way, and check that there is time for an operator; see `BuildClock.check`."""
        self.waited += self._pace.give_way()
        super().check(type, name)


pace = CompileThrottle()
"""That of this process: all graphs share the interpreter."""
