"""The application that the HTTP server calls: FastAPI's, with the server's own middleware around all of it."""

from collections.abc import Callable

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send


class Application(FastAPI):
    """FastAPI's application behind middleware of its owner's.

    What `FastAPI.add_middleware` adds lies inside layers of FastAPI's own, which take time for each request. Here the
    middleware is outside: what it answers itself passes none of these layers.
    """

    _entry: ASGIApp | None = None

    def surround(self, middleware: Callable[[ASGIApp], ASGIApp]) -> None:
        """Put middleware around FastAPI's application; what is put later lies outside of it.

        Args:
            middleware: returns an ASGI application that passes requests on to the one it gets.
        """
        self._entry = middleware(self._entry or super().__call__)

    async def answer_inside(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection past the middleware of `surround`."""
        scope["app"] = self
        await super().__call__(scope, receive, send)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        scope["app"] = self
        await (self._entry or super().__call__)(scope, receive, send)
