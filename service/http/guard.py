"""Refuses requests for other hosts, of other origins and while the server drains; returns 500 where no handler does."""

import logging
from collections.abc import Awaitable

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from service.context import RequestContext, context_in
from service.errors import shutting_down
from service.http.error_handlers import error_response, internal_error
from service.http.origins import OriginPolicy
from service.http.paths import POLLED_PATHS
from service.lifecycle import Lifecycle, Phase

_logger = logging.getLogger(__name__)


class GuardMiddleware:
    """Refuses requests, counts those that it accepts, and turns unhandled exceptions into 500.

    Health and metrics are answered while the server drains, and are not counted: the shutdown does not wait for them.

    Args:
        app: answers the requests that are accepted.
        lifecycle: knows whether the server drains, and counts.
        origins: decides which requests of browsers are refused.
    """

    def __init__(self, app: ASGIApp, lifecycle: Lifecycle, origins: OriginPolicy) -> None:
        self._app = app
        self._lifecycle = lifecycle
        self._origins = origins

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handle one ASGI connection."""
        if scope["type"] != "http":
            return self._app(scope, receive, send)
        context = context_in(scope)
        refusal = self._origins.refusal(scope, context.headers)
        if refusal is not None:
            return error_response(refusal)(scope, receive, send)
        if scope["path"] in POLLED_PATHS:
            return self._run(scope, receive, send, context, is_counted=False)
        if self._lifecycle.phase is Phase.DRAINING:
            return error_response(shutting_down())(scope, receive, send)
        return self._run(scope, receive, send, context, is_counted=True)

    async def _run(
        self, scope: Scope, receive: Receive, send: Send, context: RequestContext, *, is_counted: bool
    ) -> None:
        """Run the application; an unhandled exception is logged, and answered without its details."""
        if is_counted:
            self._lifecycle.begin_request()
        try:
            await self._app(scope, receive, send)
        except ClientDisconnect:
            raise
        except Exception:
            _logger.exception("unhandled error")
            if context.is_begun and not context.is_ended:
                raise
            if not context.is_begun:
                await error_response(internal_error(context.request_id))(scope, receive, send)
        finally:
            if is_counted:
                self._lifecycle.end_request()
