"""What is recorded of each HTTP request when it is over."""

import logging
from typing import Any

from prometheus_client import CollectorRegistry, Histogram

from service.context import RequestContext
from service.log_context import FIELDS

KNOWN_METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})
"""Methods that OpenTelemetry's semantic conventions know."""
OTHER_METHOD = "_OTHER"
"""Stands for every method that the semantic conventions do not know."""
CLIENT_CLOSED_REQUEST = 499
"""Status in the log of a request whose client left before its answer; no client ever gets it."""

_logger = logging.getLogger("service.access")


class HttpRequestLog:
    """Takes the duration of each HTTP request, and writes its line to the access log.

    Durations are under the name, the labels and with the bounds of OpenTelemetry's semantic conventions. There are no
    more series than the server has routes and statuses.

    Args:
        registry: where the histogram of durations is registered.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._durations = Histogram(
            "http_server_request_duration_seconds",
            "seconds from the head of an HTTP request to the end of its answer",
            ("http_request_method", "http_route", "http_response_status_code"),
            registry=registry,
        )

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
        known = method if method in KNOWN_METHODS else OTHER_METHOD
        self._durations.labels(known, route or "", status).observe(seconds)
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
