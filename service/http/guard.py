"""Refuses requests for other hosts, of other origins and while the server drains; answers 500 where no handler does."""

import logging

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.context import context_in
from service.http.error_handlers import error_response, internal_error
from service.http.origins import OriginPolicy
from service.lifecycle import Lifecycle, Phase
from service.scheduling.refusals import shutting_down
from service.surfaces import POLLED_PATHS

_logger = logging.getLogger(__name__)


class GuardMiddleware:
    """Refuses requests, counts those that it accepts, and turns unhandled exceptions into 500.

    Health and metrics are answered while the server drains, and are not counted: the shutdown does not wait for them.

    Args:
        app: answers the requests that are accepted.
        lifecycle: tells whether the server drains, and counts.
        origins: tells which requests of browsers are refused.
    """

    def __init__(self, app: ASGIApp, lifecycle: Lifecycle, origins: OriginPolicy) -> None:
        self._app = app
        self._lifecycle = lifecycle
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif refusal := self._origins.refusal(scope, context_in(scope).headers):
            await error_response(refusal)(scope, receive, send)
        elif scope["path"] in POLLED_PATHS:
            await self._run(scope, receive, send)
        elif self._lifecycle.phase is Phase.DRAINING:
            await error_response(shutting_down())(scope, receive, send)
        else:
            self._lifecycle.begin_request()
            try:
                await self._run(scope, receive, send)
            finally:
                self._lifecycle.end_request()

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application; an unhandled exception is logged, and answered without its details."""
        started = ended = False

        async def send_on(message: Message) -> None:
            nonlocal started, ended
            started = True
            ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        except ClientDisconnect:
            raise
        except Exception:
            _logger.exception("unhandled error")
            if started and not ended:
                raise
            if not started:
                await error_response(internal_error(context_in(scope).request_id))(scope, receive, send)
