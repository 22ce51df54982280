"""The application as Ray's ingress sees it: below a route prefix, with the id of a request set once."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.context import REQUEST_ID_HEADER

_ID = REQUEST_ID_HEADER.lower().encode()
_OWN_PATHS = ("/v2/", "/models/")
"""Where the API itself names models. A prefix that begins so only chooses the application; any other is taken away."""


def behind_ingress(app: ASGIApp) -> ASGIApp:
    """Return an application for what Ray's ingress passes on.

    Below the route prefix `/digits`, `/digits/readyz` becomes `/readyz`. With a prefix of the API's own,
    `/v2/models/digits`, paths stay as they are: clients of the Open Inference Protocol ask one address, and each model
    is an application of its own.

    Ray adds the id that a request came with to the response; the server's own field of the same value is removed.
    """

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        scope = _without_prefix(scope)
        given = [field for field in scope.get("headers", ()) if field[0] == _ID][:1]

        async def send_without_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                fields = [(name.lower(), value) for name, value in message.get("headers", ())]
                message = {**message, "headers": [field for field in fields if field not in given]}
            await send(message)

        await app(scope, receive, send_without_id)

    return respond


def _without_prefix(scope: Scope) -> Scope:
    """Return a scope without its prefix, `root_path`, with which its path begins."""
    prefix = scope.get("root_path")
    if not prefix:
        return scope
    scope = {**scope, "root_path": ""}
    if not f"{prefix}/".startswith(_OWN_PATHS):
        scope["path"] = scope["path"].removeprefix(prefix) or "/"
        scope["raw_path"] = (scope.get("raw_path") or b"").removeprefix(prefix.encode()) or b"/"
    return scope
