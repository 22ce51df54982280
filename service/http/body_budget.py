"""How many bytes of requests' bodies the server holds at once."""

from time import monotonic

from service.errors import ServiceError
from service.scheduling.service_rate import ServiceRate

STEP = 1 << 20
"""Bytes that are reserved beyond those that have come, so that a client cannot hold room with a large promise."""


class BodyBudget:
    """Bytes that all requests' bodies may take together, from before they are read until they are answered.

    Used on the event loop only. A body that is too large by itself is taken while there is no other: what one request
    may bring is for `max_body_bytes` to say.

    Args:
        limit: most bytes.

    Attributes:
        used: bytes that are reserved.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rate = ServiceRate()
        self.used = 0

    def take(self, count: int, held: int) -> None:
        """Reserve bytes for a request that holds some already.

        Raises:
            ServiceError: 503 `buffers_full`.
        """
        if self.used > held and self.used + count > self._limit:
            raise self._refusal(count)
        if not self.used:
            self._rate.busy(monotonic())
        self.used += count

    def give_back(self, count: int) -> None:
        """Give reserved bytes back."""
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
    """The part of a budget that one request holds."""

    def __init__(self, budget: BodyBudget, declared: int | None) -> None:
        """Reserve nothing yet.

        Args:
            budget: the budget.
            declared: `Content-Length`; None where the request has none.
        """
        self._budget = budget
        self._declared = declared
        self._held = 0

    def expect(self, received: int) -> None:
        """Reserve what has come, and the next step of what is declared.

        Args:
            received: bytes of the body that have come.

        Raises:
            ServiceError: 503 `buffers_full`.
        """
        expected = received if self._declared is None else min(self._declared, received + STEP)
        if expected > self._held:
            self._budget.take(expected - self._held, self._held)
            self._held = expected

    def release(self) -> None:
        """Give everything back."""
        if self._held:
            self._budget.give_back(self._held)
            self._held = 0
