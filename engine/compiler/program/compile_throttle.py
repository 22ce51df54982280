"""Compile throttle: the compiler waits for fallback runs, since both need the GIL."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from engine.model.build_clock import BuildClock

WAIT_FACTOR = 4.0
"""Maximum wait for runs, as a multiple of the compiler's own working time, so that compilation finishes."""
_LONGEST = 0.5
"""Maximum wait in seconds: a long run releases the GIL meanwhile."""


class CompileThrottle:
    """Counts active runs, which never wait; the compiler waits while there are any, for a limited time.

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
        """Count a run that the compiler waits for."""
        with self._changed:
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                if not self._running:
                    self._changed.notify_all()

    def wait_for_runs(self) -> float:
        """Wait until no run is active, at most for the limit; returns the seconds waited."""
        started = perf_counter()
        longest = min(_LONGEST, WAIT_FACTOR * (started - self._worked_since))
        with self._changed:
            self._changed.wait_for(lambda: not self._running, longest)
        self._worked_since = perf_counter()
        self.waited += self._worked_since - started
        return self._worked_since - started


class ThrottledClock(BuildClock):
    """A build clock that waits for runs at every check; the wait does not count.

    Args:
        seconds, doing: as for `BuildClock`.
        throttle: the throttle of the process.
    """

    def __init__(self, seconds: float | None, doing: str, throttle: CompileThrottle) -> None:
        super().__init__(seconds, doing)
        self._throttle = throttle

    def check(self, type: str, name: str) -> None:
        """Wait for runs, and check that there is time for an operator; see `BuildClock.check`."""
        self.waited += self._throttle.wait_for_runs()
        super().check(type, name)


compile_throttle = CompileThrottle()
"""The throttle of this process: all graphs share the GIL."""
