"""Refuses requests for other hosts, of other origins and while the server drains; returns 500 where no handler does.

A web page may send a form, or text, to any server that its visitor's browser reaches, whether or not it may read the
response. A server that listens on loopback, or trusts its network, would run models for such pages, or unload them. See
docs/guides/access.md.
"""

import logging
from collections.abc import Awaitable, Mapping

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from service.config.origins import ALL
from service.config.settings import Settings
from service.context import RequestContext, context_in
from service.errors import ServiceError, shown, shutting_down
from service.http.access import has_body
from service.http.error_handlers import error_response, internal_error
from service.http.hosts import AllowedHosts
from service.http.paths import POLLED_PATHS, READING_METHODS, is_admin_call
from service.lifecycle import Lifecycle, Phase

_OWN_SITES = frozenset({b"same-origin", b"none"})
"""`Sec-Fetch-Site` of requests that a page of the server itself, or the user, had the browser send."""


class OriginPolicy:
    """Decides which requests of browsers are answered; what it looks at, other clients do not send.

    `Host` has to be allowed, whatever the request. Requests that do more than read have to come from a page of the
    server's own origin, or of one in `cors_origins`. A `*` there lets no page change the server: origins that may are
    listed by name.

    Args:
        settings: the server's.
    """

    def __init__(self, settings: Settings) -> None:
        self._hosts = AllowedHosts(settings.host, settings.allowed_hosts)
        self._known = self._hosts.known
        self._listed = frozenset(origin.encode() for origin in settings.cors_origins)
        self._allows_all = ALL in settings.cors_origins

    def statuses(self, method: str, path: str) -> tuple[int, ...]:
        """Return the statuses that requests of a kind may be refused with, for the API's description."""
        del path
        return (
            *((421,) if self._hosts.is_limited else ()),
            *((403,) if method not in READING_METHODS else ()),
        )

    def refusal(self, scope: Scope, headers: Mapping[bytes, bytes]) -> ServiceError | None:
        """Return why a request is refused, None where it is not.

        Args:
            scope: its ASGI scope, for method, path and the address that it came to.
            headers: the first header of each name, which is in lower case.
        """
        host = headers.get(b"host")
        if host in self._known and b"origin" not in headers and b"sec-fetch-site" not in headers:
            return None
        refused = self._hosts.refusal(host, scope.get("server"))
        if refused is None and scope["method"] not in READING_METHODS:
            refused = self._cross_origin(scope, headers)
        if refused is not None and has_body(headers.items()):
            # what nobody reads must not be parsed as the next request
            refused.headers["Connection"] = "close"
        return refused

    def _cross_origin(self, scope: Scope, headers: Mapping[bytes, bytes]) -> ServiceError | None:
        origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site")
        if origin is None and site is None:
            return None
        if origin in self._listed or _is_own(origin, site, headers.get(b"host")):
            return None
        is_admin = is_admin_call(scope["method"], scope["path"])
        return None if self._allows_all and not is_admin else _refuse(origin, is_admin)


def _is_own(origin: bytes | None, site: bytes | None, host: bytes | None) -> bool:
    """Tell whether a page of the server itself, or the browser's user, sent a request."""
    if site is not None:
        return site in _OWN_SITES
    # from older browsers, and over plain HTTP to other machines, there is only Origin; its scheme may be a proxy's
    return origin is not None and origin.partition(b"://")[2] == host


def _refuse(origin: bytes | None, is_admin: bool) -> ServiceError:
    given = "null" if origin is None else origin.decode("latin-1")
    what = "change the server" if is_admin else "send requests that do more than read"
    message = f"pages of the origin {shown(given)} may not {what}; cors_origins lists those that may"
    return ServiceError(403, "origin_refused", message, {"origin": given[:200], "setting": "cors_origins"})


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
