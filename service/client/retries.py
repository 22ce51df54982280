"""When a call is tried again: where the server says that it has no room now, or cannot be reached."""

import random
import time
from threading import Lock

_FIRST_SECONDS, _LONGEST_SECONDS = 0.1, 5.0
"""Waits after a connection could not be made: twice as long each time."""
_JITTER = 0.25
_RESERVE = 10.0
"""Retries that are allowed at once, before calls have earned more."""


class Retries:
    """How long a call is tried again, and how many of all calls may be.

    A call that gets 429 or 503 with `Retry-After` was not run, and is sent again after that time and up to a
    quarter more, so that clients which were refused together do not return together. So is one whose connection could
    not be made, after 0.1 s, 0.2 s and so on. Nothing else is: a call that may have been run is not run twice.

    All calls of a client share a budget: each first attempt earns `ratio` of a retry, and each retry takes one; 10 are
    there at the start. A server that refuses everybody is thus sent little more than it would be without retries.

    Any number of threads may use one object.

    Args:
        seconds: how long one call may wait in all; 0 for no retries.
        ratio: retries per call in the long run.
    """

    def __init__(self, seconds: float = 30.0, ratio: float = 0.2) -> None:
        if seconds < 0 or ratio < 0:
            raise ValueError(f"seconds is {seconds}, ratio {ratio}; expected numbers from 0")
        self.seconds = seconds
        self._ratio = ratio
        self._tokens = _RESERVE
        self._lock = Lock()

    def earn(self) -> None:
        """Count the first attempt of a call."""
        with self._lock:
            self._tokens = min(self._tokens + self._ratio, _RESERVE + 100 * self._ratio)

    def take(self) -> bool:
        """Take a retry from the budget; returns whether there was one."""
        with self._lock:
            if self._tokens < 1:
                return False
            self._tokens -= 1
            return True


class Attempts:
    """The attempts of one call.

    Args:
        retries: what is allowed.
        deadline: seconds that the whole call may take; None for as long as it takes.
    """

    def __init__(self, retries: Retries, deadline: float | None) -> None:
        self._retries = retries
        self._begun = time.monotonic()
        self._deadline = None if deadline is None else self._begun + deadline
        self._waited = 0.0
        self._failed = 0
        retries.earn()

    @property
    def remaining(self) -> float | None:
        """Seconds until the deadline, negative once it has passed; None where there is none."""
        return None if self._deadline is None else self._deadline - time.monotonic()

    def wait_after(self, retry_after: str | None) -> float | None:
        """Return how many seconds to wait before the next attempt; None where there is none.

        Args:
            retry_after: the header of that name; None where no connection could be made.
        """
        seconds = self._backoff() if retry_after is None else _seconds(retry_after)
        if seconds is None:
            return None
        seconds *= 1 + _JITTER * random.random()  # noqa: S311  # nothing secret depends on it
        remaining = self.remaining
        is_late = remaining is not None and seconds >= remaining
        if is_late or self._waited + seconds > self._retries.seconds or not self._retries.take():
            return None
        self._waited += seconds
        return seconds

    def _backoff(self) -> float:
        self._failed += 1
        return float(min(_FIRST_SECONDS * 2 ** (self._failed - 1), _LONGEST_SECONDS))


def rest_of(deadline: float | None, begun: float) -> float | None:
    """Return what is left of a deadline for the second of two calls.

    Args:
        deadline: seconds that both may take; None for as long as it takes.
        begun: when the first began, by `time.monotonic`.
    """
    return None if deadline is None else deadline - (time.monotonic() - begun)


def _seconds(text: str) -> float | None:
    """Read a number of seconds; None for a date, which this server never sends (RFC 9110, 10.2.3)."""
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
