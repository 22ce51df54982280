"""Routes that are tried before FastAPI is asked."""

from collections.abc import Sequence
from functools import lru_cache

from starlette.requests import Request
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from service.http.error_handlers import EXPLAINED_ERRORS, answer_error

_PATHS_KEPT, _LONGEST_PATH_KEPT = 256, 256
"""How many paths are remembered with their routes, and how many characters they have at most."""


class DirectRoute(Route):
    """A route whose template is known to metrics, access log and spans, as those of FastAPI's own routes are."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Tell whether the route takes a request, and what it adds to the request's scope."""
        match, added = super().matches(scope)
        if match is not Match.NONE:
            added["route"] = self
        return match, added


class DirectRoutes:
    """Answers requests that a route takes, and passes all others on.

    Args:
        app: answers the others; those of other methods than a route has are among them.
        routes: in the order in which they are tried.
    """

    def __init__(self, app: ASGIApp, routes: Sequence[DirectRoute]) -> None:
        self._app = app
        self._routes = routes
        self._match_again = lru_cache(_PATHS_KEPT)(self._match)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        app = self._app
        if scope["type"] == "http":
            path, match = scope["path"], self._match_again
            route, added = (match if len(path) <= _LONGEST_PATH_KEPT else self._match)(
                scope["method"], path, scope.get("root_path", "")
            )
            if route is not None:
                scope.update(added)
                app = route.app
        try:
            await app(scope, receive, send)
        except EXPLAINED_ERRORS as error:
            if app is self._app:
                raise
            response = await answer_error(Request(scope), error)
            await response(scope, receive, send)
            error.__traceback__ = (
                None  # its frames refer to the error: together they would outlive the request
            )

    def _match(self, method: str, path: str, root_path: str) -> tuple[DirectRoute | None, Scope]:
        """Return the route of a path, None where it has none, and what that adds to the scope of a request."""
        scope = {"type": "http", "method": method, "path": path, "root_path": root_path}
        for route in self._routes:
            match, added = route.matches(scope)
            if match is Match.FULL:
                return route, added
        return None, {}
