"""What is recorded of each call by gRPC when it is over: its duration, and a line in the access log."""

import logging

from service.context import RequestContext
from service.log_context import FIELDS
from service.telemetry.rpc_durations import RpcDurations

_logger = logging.getLogger("service.access")


class RpcLog:
    """Takes the duration of each call, and writes its line to the access log.

    Args:
        durations: takes the durations.
    """

    def __init__(self, durations: RpcDurations) -> None:
        self._durations = durations

    def record(self, context: RequestContext, path: str, status: str) -> None:
        """Record a call that is over.

        Args:
            context: its context.
            path: its service and method, which are the server's own, as `/inference.GRPCInferenceService/ModelInfer`.
            status: name of its status code.
        """
        seconds = context.elapsed()
        self._durations.observe(path[1:], status, seconds)
        if _logger.isEnabledFor(logging.INFO):
            fields = {
                "method": "gRPC",
                "path": path,
                "status": status,
                "duration_ms": round(seconds * 1000, 3),
                "model": context.model,
            }
            _logger.info("request", extra={FIELDS: fields})
