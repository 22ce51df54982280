"""The span of a call by gRPC. Needs the extra `[otel]`.

Names and attributes are those of OpenTelemetry's semantic conventions for RPC, as in the metric of the same calls.
"""

from collections.abc import Mapping

from opentelemetry.context import attach, detach
from opentelemetry.propagate import extract
from opentelemetry.trace import SpanKind, StatusCode, Tracer, set_span_in_context

_FAULTS = frozenset({"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"})
"""Status codes that are the server's fault rather than the client's, after the same conventions."""


class CallSpan:
    """The current span from when it is made until it ends; both in one task.

    Args:
        tracer: makes the span.
        method: service and method, which are the server's own.
        headers: the metadata of the call, where `traceparent` may name the client's span; None for a request of a
            stream, whose parent is the span of the stream.
    """

    def __init__(self, tracer: Tracer, method: str, headers: Mapping[bytes, bytes] | None) -> None:
        parent, kind = None, SpanKind.INTERNAL
        if headers is not None:
            carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
            parent, kind = extract(carrier), SpanKind.SERVER
        attributes = {"rpc.system.name": "grpc", "rpc.method": method}
        self._span = tracer.start_span(
            method if headers is not None else f"{method} request", parent, kind=kind, attributes=attributes
        )
        self._token = attach(set_span_in_context(self._span))

    def end(self, status: str) -> None:
        """End the span.

        Args:
            status: name of the status code of the call.
        """
        detach(self._token)
        if self._span.is_recording():
            self._span.set_attribute("rpc.response.status_code", status)
            if status != "OK":
                self._span.set_attribute("error.type", status)
            if status in _FAULTS:
                self._span.set_status(StatusCode.ERROR)
        self._span.end()
