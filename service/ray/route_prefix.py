"""Has the application answer below the route prefix that Ray Serve knows it by."""

from starlette.types import ASGIApp, Receive, Scope, Send

_OWN_PATHS = ("/v2/", "/models/")
"""Where the API itself names models. A prefix that begins so only chooses the application; any other is taken away."""


class RoutePrefix:
    """Takes the route prefix away from paths: below `/digits`, `/digits/readyz` is answered as `/readyz`.

    With a prefix of the API's own, `/v2/models/digits`, paths stay as they are: clients of the Open Inference Protocol
    ask one address, and each model is an application of its own.

    Args:
        app: answers requests.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection; `root_path` of its scope is the prefix, and `path` begins with it."""
        prefix = scope.get("root_path")
        if prefix:
            scope = {**scope, "root_path": ""}
            if not f"{prefix}/".startswith(_OWN_PATHS):
                scope["path"] = scope["path"].removeprefix(prefix) or "/"
                scope["raw_path"] = (scope.get("raw_path") or b"").removeprefix(prefix.encode()) or b"/"
        await self._app(scope, receive, send)
