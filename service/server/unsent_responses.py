"""Responses that their clients do not read: how much memory they may take, and for how long."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Protocol

TICK_SECONDS = 1.0
"""How often connections are looked at that have something to send."""
LEAST_RATE = 4 << 10
"""Bytes per second that a client has to take, on the average of each period."""

_logger = logging.getLogger(__name__)


class Sender(Protocol):
    """A connection, as far as it sends responses."""

    def unsent_bytes(self) -> int:
        """Return the bytes of responses that are begun and that the system has not taken yet."""

    def abort(self) -> None:
        """Close at once; what is unsent is lost."""


@dataclass(slots=True)
class _Progress:
    """What a client has taken so far.

    Attributes:
        began: when its response could not be sent at once, in seconds of the event loop's clock.
        unsent: bytes that it had yet to take when it was last looked at.
        taken: bytes that it has taken since `began`.
        window: when the current period began.
        taken_before: bytes that it had taken until then.
    """

    began: float
    unsent: int
    taken: int = 0
    window: float = 0.0
    taken_before: int = 0

    def note(self, unsent: int) -> None:
        """Note how much is unsent now."""
        self.taken += max(0, self.unsent - unsent)
        self.unsent = unsent

    def rate(self, now: float) -> float:
        """Return the bytes per second that the client takes."""
        return self.taken / max(now - self.began, TICK_SECONDS)


class UnsentResponses:
    """Cuts clients off that hardly read their responses: after a set time, and at once where memory is short.

    Used on the event loop only. Costs nothing for a response that the system takes whole.

    Args:
        limit: most unsent bytes of all connections together; above, the slowest client is cut off.
        period: seconds in which a client has to take `LEAST_RATE` bytes for each.
    """

    def __init__(self, limit: int, period: float) -> None:
        self._limit = limit
        self._period = period
        self._senders: dict[Sender, _Progress] = {}
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, sender: Sender) -> None:
        """Look at a connection from now on, until all of its responses are sent or it is forgotten."""
        progress = self._senders.get(sender)
        if progress is not None:
            progress.unsent = sender.unsent_bytes()
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._senders[sender] = _Progress(now, sender.unsent_bytes(), window=now)
        if self._timer is None:
            self._timer = loop.call_later(TICK_SECONDS, self._tick, loop)
        self._make_room(now)

    def note(self, sender: Sender) -> None:
        """Note that the system has taken what it was given."""
        progress = self._senders.get(sender)
        if progress is not None:
            progress.note(sender.unsent_bytes())

    def rate(self, sender: Sender, now: float) -> tuple[float, float]:
        """Return since when a client has had something to read, and how many bytes per second it takes."""
        progress = self._senders.get(sender)
        return (now, 0.0) if progress is None else (progress.began, progress.rate(now))

    def forget(self, sender: Sender) -> None:
        """Look at a connection no longer."""
        self._senders.pop(sender, None)
        if not self._senders and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        self._timer = None
        for sender, progress in list(self._senders.items()):
            progress.note(sender.unsent_bytes())
            if not progress.unsent:
                self.forget(sender)
            elif now - progress.window >= self._period:
                if progress.taken - progress.taken_before < LEAST_RATE * self._period:
                    self._cut_off(sender, f"takes less than {LEAST_RATE} bytes per second of its response")
                progress.window, progress.taken_before = now, progress.taken
        self._make_room(now)
        if self._senders and self._timer is None:
            self._timer = loop.call_later(TICK_SECONDS, self._tick, loop)

    def _make_room(self, now: float) -> None:
        """Cut the slowest clients off until the unsent bytes keep within the limit.

        A client that has not had a tick's time yet, or is the only one, is left alone.
        """
        total = sum(progress.unsent for progress in self._senders.values())
        if total <= self._limit:
            return
        known = [
            (progress.rate(now), progress.began, sender)
            for sender, progress in self._senders.items()
            if now - progress.began >= TICK_SECONDS
        ]
        for _, _, sender in sorted(known, key=lambda entry: entry[:2]):
            if total <= self._limit or len(self._senders) == 1:
                break
            total -= self._senders[sender].unsent
            self._cut_off(sender, "is the slowest to read, and the responses of all take too much memory")

    def _cut_off(self, sender: Sender, why: str) -> None:
        _logger.info("a connection is closed: its client %s", why)
        self.forget(sender)
        sender.abort()
