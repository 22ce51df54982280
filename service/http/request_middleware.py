"""Middleware of all requests: ids, access log, HTTP metrics and the budget for bodies outermost; `HEAD` innermost."""

from collections.abc import Awaitable
from http import HTTPStatus
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.context import REQUEST_ID_HEADER, RequestContext, has_arrived, open_context
from service.http.body import BodyBudget, BodyChannel, Reservation
from service.lifecycle import Lifecycle
from service.log_context import request_id
from service.telemetry.request_log import CLIENT_CLOSED_REQUEST, RequestLog

_ID_HEADER = REQUEST_ID_HEADER.lower().encode()
_BAD_REQUEST: Final = int(HTTPStatus.BAD_REQUEST)


class RequestMiddleware:
    """Gives every request its id and its part of the body budget, and records its response."""

    def __init__(
        self,
        app: ASGIApp,
        lifecycle: Lifecycle,
        request_log: RequestLog,
        budget: BodyBudget,
    ) -> None:
        self._app = app
        self._lifecycle = lifecycle
        self._request_log = request_log
        self._budget = budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http":
            is_lifespan = scope["type"] == "lifespan"
            await self._app(scope, receive, self._plain_failure(send) if is_lifespan else send)
            return
        context = open_context(scope)
        token = request_id.set(context.request_id)
        reservation = Reservation(self._budget, _declared_length(context), context)
        incoming = BodyChannel(receive, reservation, is_whole=has_arrived(scope))
        sender = _Sender(send, context, incoming, self._lifecycle)
        try:
            await self._app(scope, incoming, sender)
        except ClientDisconnect:
            sender.status = CLIENT_CLOSED_REQUEST
        finally:
            reservation.release()
            route = getattr(scope.get("route"), "path", None)
            self._request_log.record(context, scope["method"], route, scope["path"], sender.status)
            request_id.reset(token)

    def _plain_failure(self, send: Send) -> Send:
        """Replace the traceback of a failed start-up by its reason where that is known."""

        async def send_plain(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed" and self._lifecycle.failure is not None:
                message = {**message, "message": self._lifecycle.failure}
            await send(message)

        return send_plain


class _Sender:
    """Sends a response with the request's id, remembers its status, and lets a refused client receive it."""

    def __init__(
        self, send: Send, context: RequestContext, incoming: BodyChannel, lifecycle: Lifecycle
    ) -> None:
        self._send = send
        self._context = context
        self._incoming = incoming
        self._lifecycle = lifecycle
        self._header = (_ID_HEADER, context.request_id.encode())
        self.status: int = HTTPStatus.INTERNAL_SERVER_ERROR

    def __call__(self, message: Message) -> Awaitable[None]:
        context = self._context
        if message["type"] == "http.response.start":
            context.is_begun = True
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), self._header]
        elif not message.get("more_body", False):
            context.is_ended = True
            if self.status >= _BAD_REQUEST:
                return self._end_refusal(message)
        return self._send(message)

    async def _end_refusal(self, message: Message) -> None:
        await self._send({**message, "more_body": True})
        had_its_time = self.status == HTTPStatus.REQUEST_TIMEOUT or self._lifecycle.is_drain_over
        if not had_its_time:
            await self._incoming.discard()
        await self._send({"type": "http.response.body"})


def _declared_length(context: RequestContext) -> int | None:
    value = context.headers.get(b"content-length", b"")
    return int(value) if value.isdigit() and len(value) < 20 else None


class HeadMiddleware:
    """Has the application serve `HEAD` wherever it serves `GET`, without the body (RFC 9110, section 9.3.2).

    FastAPI's routes take only the methods that they name.

    Args:
        app: serves the requests.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handle one ASGI connection."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            return self._app(scope, receive, send)
        return self._response_head(scope, receive, send)

    async def _response_head(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        as_get = {**scope, "method": "GET"}
        try:
            await self._app(as_get, receive, send_head)
        finally:
            if "route" in as_get:
                scope["route"] = as_get["route"]  # for the log and the metrics
