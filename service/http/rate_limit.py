"""A limit on how many requests each client may make per second: a token bucket for each.

After J. Turner, "New directions in communications", IEEE Communications Magazine 24(10), 1986.
"""

import math
from collections import OrderedDict
from time import monotonic

from starlette.types import ASGIApp, Receive, Scope, Send

from service.context import context_in
from service.errors import ServiceError
from service.http.access import has_body
from service.http.error_handlers import error_response
from service.http.paths import POLLED_PATHS
from service.peer import Peer

CLIENTS_KEPT = 10_000
"""Clients that are remembered; those that have asked nothing for longest are forgotten, and begin anew."""


class TokenBuckets:
    """A bucket of tokens for each client: a request takes one, and time brings new ones.

    Args:
        rate: tokens per second; a bucket holds those of one second, and at least one.

    Attributes:
        rate: tokens per second.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._burst = max(1.0, rate)
        self._buckets: OrderedDict[Peer, tuple[float, float]] = OrderedDict()

    def statuses(self, method: str, path: str) -> tuple[int, ...]:
        """Return the statuses that requests of a kind may be refused with, for the API's description."""
        del method
        return () if path in POLLED_PATHS else (429,)

    def take(self, client: Peer, now: float) -> float:
        """Take a token for a request; returns 0, or the seconds until there is one.

        Args:
            client: who asks.
            now: the time, in seconds of any one clock.
        """
        tokens, since = self._buckets.get(client, (self._burst, now))
        tokens = min(self._burst, tokens + (now - since) * self.rate)
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self.rate
        self._buckets[client] = (tokens if wait else tokens - 1), now
        self._buckets.move_to_end(client)
        if len(self._buckets) > CLIENTS_KEPT:
            self._buckets.popitem(last=False)
        return wait


class RateLimitMiddleware:
    """Refuses requests of clients that make too many. Health and metrics are answered all the same.

    Args:
        app: answers the others.
        buckets: what clients may ask.
    """

    def __init__(self, app: ASGIApp, buckets: TokenBuckets) -> None:
        self._app = app
        self._buckets = buckets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        app = self._app
        if scope["type"] == "http" and scope["path"] not in POLLED_PATHS:
            wait = self._buckets.take(context_in(scope).client, monotonic())
            if wait:
                app = error_response(self._refusal(scope, wait))
        await app(scope, receive, send)

    def _refusal(self, scope: Scope, wait: float) -> ServiceError:
        refusal = rate_limited(wait, self._buckets.rate)
        if has_body(scope["headers"]):
            refusal.headers["Connection"] = (
                "close"  # a body that nobody reads must not be parsed as a request
            )
        return refusal


def rate_limited(wait: float, rate: float) -> ServiceError:
    """Return the error of a request of a client that makes too many.

    Args:
        wait: seconds until it may make the next one.
        rate: how many it may make per second.
    """
    seconds = math.ceil(wait)
    message = f"a client may make {rate:g} requests per second; try again in {seconds} s"
    details = {"rate_limit": rate, "retry_after": seconds}
    return ServiceError(429, "rate_limited", message, details, {"Retry-After": str(seconds)})
