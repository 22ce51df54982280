"""Access control: API keys, and keys for administration. See docs/guides/access.md."""

from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from service.config.settings import Settings
from service.context import Peer, context_in
from service.errors import ServiceError
from service.http.error_handlers import error_response
from service.http.keys import KeyRing
from service.http.paths import HEALTH_PATHS, METRICS_PATHS, is_admin_call, is_console_path

_CHALLENGE = 'Bearer realm="kuiper"'


class Access:
    """Decides which requests need which key, by the server's settings.

    Raises:
        SettingsError: keys are malformed or cannot be read.
    """

    def __init__(self, settings: Settings) -> None:
        self._api = KeyRing("api_keys", settings.api_keys, settings.api_keys_file)
        self._admin = KeyRing("admin_keys", settings.admin_keys, settings.admin_keys_file)
        self._open = HEALTH_PATHS
        if settings.open_metrics:
            self._open |= METRICS_PATHS

    @property
    def is_limited(self) -> bool:
        """Whether any request needs a key."""
        return self._api.is_set or self._admin.is_set

    def statuses(self, method: str, path: str) -> tuple[int, ...]:
        """Return the statuses that requests of a kind are refused with, for the API's description."""
        admin = is_admin_call(method, path)
        if not self._guards(path, admin):
            return ()
        return (401, 403) if admin and self._api.is_set else (401,)

    def _guards(self, path: str, admin: bool) -> bool:
        if path in self._open or is_console_path(path):
            return False
        return self._api.is_set or (admin and self._admin.is_set)

    def check(self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Peer | None:
        """Return the digest of the key that lets a request in, None where it needs none.

        Args:
            method: HTTP method.
            path: decoded path.
            headers: names in lower case and values.

        Raises:
            ServiceError: 401 or 403: it has no such key.
        """
        admin = is_admin_call(method, path)
        if not self._guards(path, admin):
            return None
        headers = list(headers)
        if path == "/" and asks_for_page(headers):
            return None  # it gets the console, and nothing else
        given = credentials(headers)
        as_admin = self._admin.accepts(given)
        known = self._api.accepts(given) or as_admin
        if known is not None and (as_admin is not None or not admin):
            return known
        refused = _unauthorized(bool(given)) if known is None else _forbidden(self._admin.is_set)
        if has_body(headers):
            refused.headers["Connection"] = (
                "close"  # a body that nobody reads must not be parsed as the next request
            )
        raise refused

    def is_admin(self, client: Peer) -> bool:
        """Return whether a client that `check` returned has an admin key."""
        return self._admin.holds(client)


class AccessMiddleware:
    """Refuses requests without the key that they need before their bodies are read; knows others by their keys."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        app = self._app
        if scope["type"] == "http":
            try:
                client = self._access.check(scope["method"], scope["path"], scope["headers"])
            except ServiceError as refusal:
                app = error_response(refusal)
            else:
                if client is not None:
                    context = context_in(scope)
                    context.client, context.is_admin = client, self._access.is_admin(client)
        await app(scope, receive, send)


def credentials(headers: Iterable[tuple[bytes, bytes]]) -> list[bytes]:
    """Return the keys that came with a request: that of `Authorization: Bearer`, that of `X-API-Key`."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name == b"x-api-key":
            found.setdefault(name, value.strip())
        elif name == b"authorization":
            scheme, _, key = value.strip().partition(b" ")
            if scheme.lower() == b"bearer":
                found.setdefault(name, key.strip())
    return [key for key in found.values() if key]


def asks_for_page(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether `Accept` names HTML, as that of a browser which is to show a page, and none of an API's client.

    Args:
        headers: names in lower case and values.
    """
    return any(name == b"accept" and b"text/html" in value.lower() for name, value in headers)


def has_body(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether a request with these headers has a body."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 "))
        for name, value in headers
    )


def _unauthorized(given: bool) -> ServiceError:
    message = (
        "the key is unknown" if given else "a key is required: Authorization: Bearer KEY, or X-API-Key: KEY"
    )
    challenge = f'{_CHALLENGE}, error="invalid_token"' if given else _CHALLENGE
    details = {"accepted": ["Authorization: Bearer", "X-API-Key"]}
    code = "unknown_key" if given else "key_needed"
    return ServiceError(401, code, message, details, {"WWW-Authenticate": challenge})


def _forbidden(admin_keys_set: bool) -> ServiceError:
    if admin_keys_set:
        code, message = "admin_key_needed", "this call changes the server: it needs an admin key"
    else:
        code = "admin_disabled"
        message = (
            "this call changes the server, and no key may: the server has api_keys, but no admin_keys are set"
        )
    return ServiceError(403, code, message)
