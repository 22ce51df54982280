"""The end of every HTTP request: its duration and its line in the access log."""

import logging
from typing import Any

from service.context import RequestContext
from service.log_context import FIELDS
from service.telemetry.http_requests import HttpRequests

CLIENT_LEFT = 499
"""Status in the log of a request whose client did not wait for one."""

_logger = logging.getLogger("service.http.access")


class HttpAccounts:
    """What is kept of every HTTP request that is over: how long it took, and a line in the access log.

    Args:
        durations: where they are counted.
        is_logged: whether there is an access log.
    """

    def __init__(self, durations: HttpRequests, is_logged: bool) -> None:
        self._durations = durations
        self._is_logged = is_logged

    def close(self, context: RequestContext, method: str, route: str | None, path: str, status: int) -> None:
        """Note that a request is over.

        Args:
            context: what is known of it.
            method: its method.
            route: template of its route; None where no route took it.
            path: what the client typed, which is logged where there is no route.
            status: of its answer.
        """
        seconds = context.elapsed()
        self._durations.observe(method, route, status, seconds)
        if not self._is_logged:
            return
        fields: dict[str, Any] = {
            "method": method,
            "path": route or path[:200],
            "status": status,
            "duration_ms": round(seconds * 1000, 3),
            "model": context.model,
        }
        _logger.info("request", extra={FIELDS: fields})
