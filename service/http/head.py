"""Serves `HEAD` wherever `GET` is served (RFC 9110, section 9.3.2)."""

from collections.abc import Awaitable

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadMiddleware:
    """Has the application serve `HEAD` as `GET`, and leaves the body out. FastAPI's routes take only what they name.

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
