"""Has a response name its request once, although Ray Serve and the server both do."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.context import REQUEST_ID_HEADER

_HEADER = REQUEST_ID_HEADER.lower().encode()


class RequestIdOnce:
    """Takes the request's id from responses where it is the one that Ray has given the request: Ray adds it again.

    Args:
        app: answers requests.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = [field for field in scope["headers"] if field[0] == _HEADER][:1]

        async def send_without_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                fields = [(name.lower(), value) for name, value in message.get("headers", ())]
                message = {**message, "headers": [field for field in fields if field not in given]}
            await send(message)

        await self._app(scope, receive, send_without_id)
