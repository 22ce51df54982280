"""Whether a call was cancelled, and why."""

from collections.abc import Callable
from threading import Lock


class Cancellation:
    """Tells whether a call was cancelled, and why. Any thread may use it.

    Attributes:
        reason: the first reason that was given; None while the call is to go on.
    """

    __slots__ = ("_lock", "_on_cancel", "reason")

    def __init__(self) -> None:
        self.reason: str | None = None
        self._lock = Lock()
        self._on_cancel: Callable[[str], None] | None = None

    def cancel(self, reason: str) -> None:
        """Cancel the call; a run that is in progress stops before its next layer."""
        with self._lock:
            on_cancel, self._on_cancel = self._on_cancel, None
            self.reason = self.reason or reason
        if on_cancel is not None:
            on_cancel(reason)

    def on_cancel(self, callback: Callable[[str], None]) -> None:
        """Have `callback` called with the reason, once: when the call is cancelled, or now if it was already.

        Replaces the callback that was set before.
        """
        with self._lock:
            reason = self.reason
            if reason is None:
                self._on_cancel = callback
        if reason is not None:
            callback(reason)
