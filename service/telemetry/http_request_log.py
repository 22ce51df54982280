"""What is recorded of each HTTP request when it is over."""

import logging
from typing import Any

from service.context import RequestContext
from service.log_context import FIELDS
from service.telemetry.http_durations import HttpDurations

CLIENT_CLOSED_REQUEST = 499
"""Status in the log of a request whose client left before its answer; no client ever gets it."""

_logger = logging.getLogger("service.access")


class HttpRequestLog:
    """Takes the duration of each HTTP request, and writes its line to the access log.

    Args:
        durations: where durations are counted.
    """

    def __init__(self, durations: HttpDurations) -> None:
        self._durations = durations

    def record(self, context: RequestContext, method: str, route: str | None, path: str, status: int) -> None:
        """Record a request that is over.

        Args:
            context: its context.
            method: its method.
            route: the template of its route; None where no route matched.
            path: its path as the client sent it, which is logged where no route matched.
            status: status of its answer.
        """
        seconds = context.elapsed()
        self._durations.observe(method, route, status, seconds)
        if not _logger.isEnabledFor(logging.INFO):
            return
        fields: dict[str, Any] = {
            "method": method,
            "path": route or path[:200],
            "status": status,
            "duration_ms": round(seconds * 1000, 3),
            "model": context.model,
        }
        _logger.info("request", extra={FIELDS: fields})
