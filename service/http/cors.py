"""CORS: what web pages of other origins may send and read. See docs/guides/access.md."""

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from service.errors import ServiceError
from service.http.error_handlers import error_response

_METHODS = ("GET", "HEAD", "POST")
_EXPOSED = ("X-Request-ID", "Retry-After", "Inference-Header-Content-Length", "WWW-Authenticate")
"""Headers that pages may read. Cookies are not used: keys are sent as headers."""


class CorsMiddleware(CORSMiddleware):
    """Allows pages of configured origins; a refused preflight gets the one error shape."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        super().__init__(
            app, allow_origins=origins, allow_methods=_METHODS, allow_headers=("*",), expose_headers=_EXPOSED
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """Respond to the request that a browser sends before a page's own."""
        response = super().preflight_response(request_headers)
        if response.status_code < 400:
            return response
        refusal = ServiceError(400, "cors_refused", bytes(response.body).decode())
        kept = ("vary", "access-control-allow-origin")
        refusal.headers.update({name: response.headers[name] for name in kept if name in response.headers})
        return error_response(refusal)
