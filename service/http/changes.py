"""Requests that change the server, where several processes are to change alike."""

from collections.abc import Sequence
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import ServiceError
from service.http.body import read_body
from service.http.error_handlers import error_response, format_error
from service.http.paths import is_admin_call
from service.processes.messages import Call, Reply
from service.processes.siblings import Siblings
from service.scheduling.refusals import shutting_down
from service.services import Services

_KEPT_HEADERS = frozenset({b"content-type", b"content-encoding", b"origin", b"sec-fetch-site"})
"""What the routes look at; keys were checked already."""


class ChangeMiddleware:
    """Has every process do what a request asks that loads or unloads a model, or changes trace or log settings.

    This process does it first; where it refuses, nothing has changed anywhere, and the client gets its answer.

    Args:
        app: answers all other requests.
        services: the parts of the server.
        siblings: the other processes.
    """

    def __init__(self, app: ASGIApp, services: Services, siblings: Siblings) -> None:
        self._app = app
        self._services = services
        self._siblings = siblings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http" or not is_admin_call(scope["method"], scope["path"]):
            await self._app(scope, receive, send)
            return
        try:
            answer = await self._change(Request(scope, receive))
        except ServiceError as error:
            answer = error_response(format_error(error, scope["path"]))
        await answer(scope, receive, send)

    async def _change(self, request: Request) -> Response:
        services, settings = self._services, self._services.settings
        body = await read_body(
            request, settings.limits, settings.timeout, services.lifecycle, is_encoded=True
        )
        headers = tuple(
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in request.scope["headers"]
            if name in _KEPT_HEADERS
        )
        scope = request.scope
        query = scope["query_string"].decode("latin-1")
        replies = await self._siblings.change(
            Call(scope["method"], scope["path"], query, headers, bytes(body))
        )
        first = common_reply(replies)
        return Response(first.body, first.status, media_type="application/json")


def common_reply(replies: Sequence[Reply]) -> Reply:
    """Return how all processes answered that were to change alike: the reply of the first, who may have refused.

    Args:
        replies: as `Siblings.change` returns them.

    Raises:
        ServiceError: 500 `processes_differ`; 503 `shutting_down` where there are none.
    """
    if not replies:
        raise shutting_down()
    first, *others = replies
    failed = [reply for reply in others if reply.status >= HTTPStatus.BAD_REQUEST]
    if failed:
        told = "; ".join(
            f"process {reply.process}: {reply.body[:300].decode(errors='replace')}" for reply in failed
        )
        message = f"{len(failed)} of {len(replies)} processes could not do what the others did: {told}"
        details = {"processes": [reply.process for reply in failed]}
        raise ServiceError(500, "processes_differ", message, details)
    return first
