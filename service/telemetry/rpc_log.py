"""What is recorded of each call by gRPC when it is over: its duration, and a line in the access log."""

import logging

from service.context import RequestContext
from service.histogram import HTTP_SECONDS, Histogram
from service.log_context import FIELDS

RpcEnding = tuple[str, str]
"""Method, with its service before it, and name of the status code."""

_logger = logging.getLogger("service.access")


class RpcLog:
    """Takes the duration of each call, and writes its line to the access log.

    Args:
        is_access_logged: whether there is an access log.
    """

    def __init__(self, is_access_logged: bool) -> None:
        self._is_access_logged = is_access_logged
        self._durations: dict[RpcEnding, Histogram] = {}

    def record(self, context: RequestContext, path: str, status: str) -> None:
        """Record a call that is over.

        Args:
            context: its context.
            path: its service and method, which are the server's own, as `/inference.GRPCInferenceService/ModelInfer`.
            status: name of its status code.
        """
        seconds = context.elapsed()
        ending = path[1:], status
        histogram = self._durations.get(ending)
        if histogram is None:
            histogram = self._durations[ending] = Histogram(HTTP_SECONDS)
        histogram.observe(seconds)
        if self._is_access_logged:
            fields = {
                "method": "gRPC",
                "path": path,
                "status": status,
                "duration_ms": round(seconds * 1000, 3),
                "model": context.model,
            }
            _logger.info("request", extra={FIELDS: fields})

    def series(self) -> list[tuple[RpcEnding, Histogram]]:
        """Return all durations so far, in seconds from a call's arrival to its end."""
        return list(self._durations.items())
