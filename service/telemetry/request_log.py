"""What is recorded of each HTTP request and of each call by gRPC when it is over."""

import logging

from prometheus_client import CollectorRegistry, Histogram

from service.context import RequestContext
from service.log_context import FIELDS

KNOWN_METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})
"""Methods that OpenTelemetry's semantic conventions know."""
OTHER_METHOD = "_OTHER"
"""Stands for every method that the semantic conventions do not know."""
CLIENT_CLOSED_REQUEST = 499
"""Status in the log of a request whose client left before its response; no client ever gets it."""

_logger = logging.getLogger("service.access")


class RequestLog:
    """Takes the duration of each request, and writes its line to the access log.

    Durations are under the names, the labels and with the bounds of OpenTelemetry's semantic conventions. There are no
    more series than the server has routes, methods and statuses.

    Args:
        registry: where the histograms of durations are registered.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._http = Histogram(
            "http_server_request_duration_seconds",
            "seconds from the head of an HTTP request to the end of its response",
            ("http_request_method", "http_route", "http_response_status_code"),
            registry=registry,
        )
        self._rpc = Histogram(
            "rpc_server_call_duration_seconds",
            "seconds from the arrival of a call by gRPC to its end",
            ("rpc_system_name", "rpc_method", "rpc_response_status_code"),
            registry=registry,
        )

    def record(self, context: RequestContext, method: str, route: str | None, path: str, status: int) -> None:
        """Record an HTTP request that is over.

        Args:
            context: its context.
            method: its method.
            route: the template of its route; None where no route matched.
            path: its path as the client sent it, which is logged where no route matched.
            status: status of its response.
        """
        known = method if method in KNOWN_METHODS else OTHER_METHOD
        _end(context, self._http.labels(known, route or "", status), method, route or path[:200], status)

    def record_call(self, context: RequestContext, path: str, status: str) -> None:
        """Record a call by gRPC that is over.

        Args:
            context: its context.
            path: its service and method, which are the server's own, as `/inference.GRPCInferenceService/ModelInfer`.
            status: name of its status code.
        """
        _end(context, self._rpc.labels("grpc", path[1:], status), "gRPC", path, status)


def _end(context: RequestContext, durations: Histogram, method: str, path: str, status: int | str) -> None:
    seconds = context.elapsed()
    durations.observe(seconds)
    if _logger.isEnabledFor(logging.INFO):
        fields = {
            "method": method,
            "path": path,
            "status": status,
            "duration_ms": round(seconds * 1000, 3),
            "model": context.model,
        }
        _logger.info("request", extra={FIELDS: fields})
