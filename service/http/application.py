"""The application that the HTTP server calls: direct routes and FastAPI's, with the middleware around all of them."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.types import ASGIApp, Lifespan, Receive, Scope, Send

from service.http.direct_route import DirectRoute, DirectRoutes
from service.http.route_threads import limit_route_threads

if TYPE_CHECKING:
    from anyio import CapacityLimiter
    from fastapi import FastAPI


class Application(Starlette):
    """Direct routes, and FastAPI's application for all other requests, behind middleware of its owner's.

    What `FastAPI.add_middleware` adds lies inside layers of FastAPI's own, which take time for each request. Here the
    middleware is outside: what it answers itself passes none of these layers.

    FastAPI and its routes are made when they are first asked for: to import them takes a quarter of a second and some
    ten megabytes, and a process that only runs models and is polled needs none of them. A request that comes first, or
    meanwhile, waits; the event loop does not.

    Args:
        routes: answer what they take.
        make_api: makes FastAPI's application, on any thread.
        lifespan: what happens before the first request and after the last.
    """

    def __init__(
        self,
        routes: Sequence[DirectRoute],
        make_api: "Callable[[], FastAPI]",
        lifespan: Lifespan[Starlette] | None = None,
    ) -> None:
        super().__init__(routes=list(routes), lifespan=lifespan)
        self._core: ASGIApp = DirectRoutes(self._pass_on, routes)
        self._entry: ASGIApp = self._core
        self._make_api = make_api
        self._api: FastAPI | None = None
        self._making = Lock()
        self._making_threads: CapacityLimiter | None = None

    @property
    def api(self) -> "FastAPI":
        """FastAPI's application, which is made where it has not been yet."""
        with self._making:
            if self._api is None:
                self._api = self._make_api()
            return self._api

    def openapi(self) -> dict[str, Any]:
        """Return the API's description."""
        return self.api.openapi()

    def surround(self, middleware: Callable[[ASGIApp], ASGIApp]) -> None:
        """Put middleware around all routes; what is put later lies outside of it.

        Args:
            middleware: returns an ASGI application that passes requests on to the one it gets.
        """
        self._entry = middleware(self._entry)

    async def answer_inside(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection past the middleware of `surround`."""
        scope["app"] = self
        await self._core(scope, receive, send)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        scope["app"] = self
        await self._entry(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle what no direct route takes."""
        if scope["type"] == "lifespan":
            await self.router(scope, receive, send)
            return
        api = self._api
        if api is None:
            api = await self._made_api()
        await api(scope, receive, send)

    async def _made_api(self) -> "FastAPI":
        """Return FastAPI's application, made on a thread; all who ask meanwhile wait for the same one."""
        from anyio import CapacityLimiter, to_thread  # noqa: PLC0415  # for FastAPI's routes, and no earlier

        limit_route_threads()
        if self._making_threads is None:
            self._making_threads = CapacityLimiter(1)
        return await to_thread.run_sync(lambda: self.api, limiter=self._making_threads)
