"""Callbacks after one delay, of which most are withdrawn in time."""

from asyncio import AbstractEventLoop, TimerHandle, get_running_loop
from collections.abc import Callable
from time import monotonic

Callback = Callable[[], None]


class DelayQueue:
    """Calls back after a delay that is the same for all, unless a callback is withdrawn before.

    It has one timer of the event loop for all of them: to start and to cancel a timer for each would cost more than to
    run a small model. Used on the event loop only.

    Args:
        seconds: the delay.
        keeps_timer: whether the timer runs on when the last callback is withdrawn: others will soon need it.

    Attributes:
        seconds: the delay.
    """

    __slots__ = ("_due", "_keeps_timer", "_loop", "_timer", "seconds")

    def __init__(self, seconds: float, *, keeps_timer: bool = True) -> None:
        self.seconds = seconds
        self._keeps_timer = keeps_timer
        self._due: dict[Callback, float] = {}
        self._loop: AbstractEventLoop | None = None
        """The event loop that has a timer for the first callback; None where no timer runs."""
        self._timer: TimerHandle | None = None

    def add(self, callback: Callback) -> None:
        """Have `callback` called after the delay; it must not be waiting already."""
        self._due[callback] = monotonic() + self.seconds
        loop = get_running_loop()
        if self._loop is not loop:
            self._start_timer(loop, self.seconds)

    def discard(self, callback: Callback) -> None:
        """Withdraw a callback, if it is waiting."""
        self._due.pop(callback, None)
        if not self._due and not self._keeps_timer and self._timer is not None:
            self._timer.cancel()
            self._timer = self._loop = None

    def _start_timer(self, loop: AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        self._timer = loop.call_later(seconds, self._run, loop)

    def _run(self, loop: AbstractEventLoop) -> None:
        timer = self._timer if self._loop is loop else None
        now = monotonic()
        try:
            while self._due and self._first() <= now:
                callback = next(iter(self._due))
                del self._due[callback]
                callback()
        finally:
            if timer is not None and self._timer is timer:  # no callback has stopped it or started another
                self._loop = self._timer = None
                if self._due:
                    self._start_timer(loop, max(0.0, self._first() - now))

    def _first(self) -> float:
        """Return when the first callback is due: all have the same delay, so that it is the one that came first."""
        return next(iter(self._due.values()))
