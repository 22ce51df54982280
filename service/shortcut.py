"""The way to a model past the application's own layers.

FastAPI finds a route, solves its dependencies, validates its parameters and keeps stacks of what is to be closed. The
routes that run models need none of it, and for a small model it would cost more than the run.
"""

from collections.abc import Iterable, Mapping

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from engine import InputError, LayerError
from service.error_handlers import answer_error
from service.errors import ServiceError
from service.routes import infer
from service.routes.v2 import infer as v2_infer

_V2_LEAD, _V2_TAIL = "/v2/models/", "/infer"
_NAMED, _VERSIONED = 1, 3
"""Parts between the two: `NAME`, or `NAME/versions/V`."""


class ShortcutMiddleware:
    """Answers `POST /infer` and `POST /v2/models/…/infer` itself; the application around it answers all else."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._infer = _route(infer.router.routes, "/infer")
        self._named = _route(v2_infer.router.routes, "/v2/models/{name}/infer")
        self._versioned = _route(v2_infer.router.routes, "/v2/models/{name}/versions/{version}/infer")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        found = self._find(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        route, parameters = found
        scope["route"], scope["path_params"] = route, parameters
        request = Request(scope, receive, send)
        try:
            response: Response = await route.endpoint(request, **parameters)
        except (ServiceError, InputError, LayerError) as error:
            response = await answer_error(request, error)
        await response(scope, receive, send)

    def _find(self, path: str) -> tuple[APIRoute, Mapping[str, str]] | None:
        if path == "/infer":
            return self._infer, {}
        if not path.startswith(_V2_LEAD) or not path.endswith(_V2_TAIL):
            return None
        parts = path[len(_V2_LEAD) : -len(_V2_TAIL)].split("/")
        if not all(parts):
            return None
        if len(parts) == _NAMED:
            return self._named, {"name": parts[0]}
        if len(parts) == _VERSIONED and parts[1] == "versions":
            return self._versioned, {"name": parts[0], "version": parts[2]}
        return None


def _route(routes: Iterable[BaseRoute], path: str) -> APIRoute:
    for route in routes:
        if isinstance(route, APIRoute) and route.path == path:
            return route
    raise LookupError(f"no route is {path}")
