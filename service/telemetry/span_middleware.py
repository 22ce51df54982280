"""A span for each HTTP request. Needs the extra `[otel]`."""

from collections.abc import Set

from opentelemetry.propagate import extract
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, use_span
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.telemetry.http_request_log import KNOWN_METHODS, OTHER_METHOD


class SpanMiddleware:
    """Gives every HTTP request a span, as a child of the client's span where a `traceparent` header names one.

    Args:
        app: the application around which it is put.
        tracer: makes the spans.
        ignored_paths: paths whose requests get no span.
    """

    def __init__(self, app: ASGIApp, tracer: Tracer, ignored_paths: Set[str]) -> None:
        self._app = app
        self._tracer = tracer
        self._ignored_paths = ignored_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http" or scope["path"] in self._ignored_paths:
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in KNOWN_METHODS else OTHER_METHOD
        span = self._tracer.start_span(
            method if method in KNOWN_METHODS else "HTTP",
            extract(_headers(scope)),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": method, "url.scheme": scope["scheme"]},
        )

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                _set_status(span, message["status"])
            await send(message)

        with use_span(span, end_on_exit=True, record_exception=False):
            try:
                await self._app(scope, receive, send_on if span.is_recording() else send)
            finally:
                route = getattr(scope.get("route"), "path", None)
                if route is not None and span.is_recording():
                    span.update_name(f"{method} {route}")
                    span.set_attribute("http.route", route)


def _headers(scope: Scope) -> dict[str, str]:
    """Return the headers by name; of several headers of one name the last."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _set_status(span: Span, status: int) -> None:
    span.set_attribute("http.response.status_code", status)
    if status >= 500:
        span.set_attribute("error.type", str(status))
        span.set_status(StatusCode.ERROR)
