"""What is recorded of each call by gRPC when it is over: its duration, and a line in the access log."""

import logging

from prometheus_client import CollectorRegistry, Histogram

from service.context import RequestContext
from service.log_context import FIELDS

_logger = logging.getLogger("service.access")


class RpcLog:
    """Takes the duration of each call, and writes its line to the access log.

    Durations are under the name and the labels of OpenTelemetry's semantic conventions.

    Args:
        registry: where the histogram of durations is registered.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._durations = Histogram(
            "rpc_server_call_duration_seconds",
            "seconds from the arrival of a call by gRPC to its end",
            ("rpc_system_name", "rpc_method", "rpc_response_status_code"),
            registry=registry,
        )

    def record(self, context: RequestContext, path: str, status: str) -> None:
        """Record a call that is over.

        Args:
            context: its context.
            path: its service and method, which are the server's own, as `/inference.GRPCInferenceService/ModelInfer`.
            status: name of its status code.
        """
        seconds = context.elapsed()
        self._durations.labels("grpc", path[1:], status).observe(seconds)
        if _logger.isEnabledFor(logging.INFO):
            fields = {
                "method": "gRPC",
                "path": path,
                "status": status,
                "duration_ms": round(seconds * 1000, 3),
                "model": context.model,
            }
            _logger.info("request", extra={FIELDS: fields})
