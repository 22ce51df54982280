"""A budget for the memory that the bodies of all requests take."""

import asyncio
from math import inf
from time import monotonic

from service.errors import ServiceError
from service.scheduling.service_rate import ServiceRate

STEP = 1 << 20
"""Bytes that are reserved beyond those that have arrived, once any have: they may be in buffers already."""
GRACE_SECONDS = 1.0
"""A body gives way to others when it has had so long to arrive."""


class BodyBudget:
    """Bytes that the bodies of all requests may take together, from when they arrive until they are answered.

    What a client promises takes nothing. Where there is too little room, bodies that arrive more slowly give way. A
    body that exceeds the budget by itself is accepted while there is no other: the size of one request is limited by
    `max_body_bytes`. Used on the event loop only.

    Args:
        limit: most bytes.

    Attributes:
        used: bytes that are reserved.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rate = ServiceRate()
        self._arriving: set[Reservation] = set()
        self.used = 0

    def check(self, count: int) -> None:
        """Check that there would be room for some bytes, if slow bodies gave way.

        Raises:
            ServiceError: 503 `buffers_full`.
        """
        if self.used and self.used + count > self._limit:
            now = monotonic()
            slow = sum(body.held for body in self._arriving if now - body.began >= GRACE_SECONDS)
            if self.used - slow + count > self._limit and self.used > slow:
                raise self._refusal(count)

    def reserve(self, count: int, body: "Reservation") -> None:
        """Reserve bytes for a body that may have reserved some already.

        Raises:
            ServiceError: 503 `buffers_full`.
        """
        if self.used > body.held and self.used + count > self._limit:
            self._make_room(count, body)
        if not self.used:
            self._rate.busy(monotonic())
        self.used += count

    def release(self, count: int) -> None:
        """Release reserved bytes."""
        self.used -= count
        self._rate.completed(count, monotonic())
        if not self.used:
            self._rate.idle()

    def begin(self, body: "Reservation") -> None:
        """Note that a body is arriving."""
        self._arriving.add(body)

    def end(self, body: "Reservation") -> None:
        """Note that a body has arrived, or is not waited for any more: from now on, it does not give way."""
        self._arriving.discard(body)

    def _make_room(self, count: int, wanting: "Reservation") -> None:
        """Have bodies give way that arrive more slowly than the one that wants room.

        Raises:
            ServiceError: 503 `buffers_full`.
        """
        now = monotonic()
        own = wanting.rate(now)
        others = [body for body in self._arriving if body is not wanting and body.held]
        for body in sorted(others, key=lambda body: body.rate(now)):
            if self.used + count <= self._limit or body.rate(now) >= own:
                break
            body.give_way(self._refusal(count))
        if self.used > wanting.held and self.used + count > self._limit:
            raise self._refusal(count)

    def _refusal(self, count: int) -> ServiceError:
        seconds = self._rate.retry_after(self.used + count - self._limit)
        message = (
            f"{self.used} bytes of other requests are being answered, {self._limit} are the most; "
            f"try again in {seconds} s"
        )
        details = {"used": self.used, "limit": self._limit, "retry_after": seconds}
        headers = {"Retry-After": str(seconds), "Connection": "close"}
        return ServiceError(503, "buffers_full", message, details, headers)


class Reservation:
    """The part of the budget that one request has reserved.

    Attributes:
        held: bytes.
        began: when its body was first waited for, in seconds of `monotonic`.
        refusal: why it had to give way; None where it did not.
    """

    __slots__ = ("_budget", "_deadline", "_declared", "_received", "began", "held", "refusal")

    def __init__(self, budget: BodyBudget, declared: int | None) -> None:
        """Start with nothing reserved.

        Args:
            budget: the budget.
            declared: `Content-Length`; None where the request has none.
        """
        self._budget = budget
        self._declared = declared
        self._deadline: asyncio.Timeout | None = None
        self._received = 0
        self.held = 0
        self.began = inf
        self.refusal: ServiceError | None = None

    def begin(self, deadline: asyncio.Timeout) -> None:
        """Note that the body is waited for.

        Args:
            deadline: ends the waiting if the body has to give way.

        Raises:
            ServiceError: 503 `buffers_full`.
        """
        if self.refusal is not None:
            raise self.refusal
        self._deadline = deadline
        if self.began == inf:
            self._budget.check(min(self._declared or 0, STEP))
            self.began = monotonic()
            self._budget.begin(self)

    def pause(self) -> None:
        """Note that the body is not waited for at the moment."""
        self._deadline = None

    def expect(self, received: int) -> None:
        """Reserve what has arrived, and the next step of what is declared.

        Args:
            received: bytes of the body that have arrived.

        Raises:
            ServiceError: 503 `buffers_full`.
        """
        if self.refusal is not None:
            raise self.refusal
        self._received = received
        expected = min(self._declared, received + STEP) if received and self._declared else received
        if expected > self.held:
            self._budget.reserve(expected - self.held, self)
            self.held = expected

    def rate(self, now: float) -> float:
        """Return the bytes per second that have arrived; inf in the first second."""
        seconds = now - self.began
        return self._received / seconds if seconds >= GRACE_SECONDS else inf

    def complete(self) -> None:
        """Note that the body has arrived."""
        self._budget.end(self)

    def give_way(self, refusal: ServiceError) -> None:
        """Release everything, and have the waiting for the rest of the body end."""
        self.release()
        self.refusal = refusal
        if self._deadline is not None:
            self._deadline.reschedule(asyncio.get_running_loop().time())

    def release(self) -> None:
        """Release everything."""
        if self.began != inf:
            self._budget.end(self)
        if self.held:
            self._budget.release(self.held)
            self.held = 0
