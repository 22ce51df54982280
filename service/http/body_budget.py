"""A budget for the memory that the bodies of all requests take."""

from time import monotonic

from service.errors import ServiceError
from service.scheduling.service_rate import ServiceRate

STEP = 1 << 20
"""Bytes that are reserved beyond those that have arrived: a large `Content-Length` alone reserves no more."""


class BodyBudget:
    """Bytes that the bodies of all requests may take together, from before they are read until they are answered.

    Used on the event loop only. A body that exceeds the budget by itself is accepted while there is no other: the size
    of one request is limited by `max_body_bytes`.

    Args:
        limit: most bytes.

    Attributes:
        used: bytes that are reserved.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rate = ServiceRate()
        self.used = 0

    def reserve(self, count: int, held: int) -> None:
        """Reserve bytes for a request that may have reserved some already.

        Raises:
            ServiceError: 503 `buffers_full`.
        """
        if self.used > held and self.used + count > self._limit:
            raise self._refusal(count)
        if not self.used:
            self._rate.busy(monotonic())
        self.used += count

    def release(self, count: int) -> None:
        """Release reserved bytes."""
        self.used -= count
        self._rate.completed(count, monotonic())
        if not self.used:
            self._rate.idle()

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
    """The part of the budget that one request has reserved."""

    def __init__(self, budget: BodyBudget, declared: int | None) -> None:
        """Start with nothing reserved.

        Args:
            budget: the budget.
            declared: `Content-Length`; None where the request has none.
        """
        self._budget = budget
        self._declared = declared
        self._held = 0

    def expect(self, received: int) -> None:
        """Reserve what has arrived, and the next step of what is declared.

        Args:
            received: bytes of the body that have arrived.

        Raises:
            ServiceError: 503 `buffers_full`.
        """
        expected = received if self._declared is None else min(self._declared, received + STEP)
        if expected > self._held:
            self._budget.reserve(expected - self._held, self._held)
            self._held = expected

    def release(self) -> None:
        """Release everything."""
        if self._held:
            self._budget.release(self._held)
            self._held = 0
