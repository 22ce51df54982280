"""Answers what another process of the server was asked, with the routes of this one."""

from functools import lru_cache

from fastapi import FastAPI
from starlette.requests import Request
from starlette.types import Message, Scope

from service.context import open_context
from service.http.error_handlers import install_error_handlers
from service.processes.messages import Call

_KEY = "kuiper.for_sibling"


def is_for_sibling(request: Request) -> bool:
    """Tell whether another process asks: it wants what this process knows, and adds what the others know itself."""
    return _KEY in request.scope


async def answer_call(app: FastAPI, call: Call) -> tuple[int, bytes]:
    """Return status and body of the answer to a call.

    It passes no middleware: the process that the client asked has checked its keys, and has counted the request.

    Args:
        app: the application of this process.
        call: what is asked.
    """
    scope = _scope_of(call)
    open_context(scope)
    is_read = False
    status, parts = 500, list[bytes]()

    async def receive() -> Message:
        nonlocal is_read
        if is_read:
            return {"type": "http.disconnect"}
        is_read = True
        return {"type": "http.request", "body": call.body, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            parts.append(message.get("body", b""))

    await _without_middleware(app)(scope, receive, send)
    return status, b"".join(parts)


@lru_cache(maxsize=1)
def _without_middleware(app: FastAPI) -> FastAPI:
    """Return an application with the same routes and state."""
    inside = FastAPI(openapi_url=None, routes=app.routes)
    inside.state = app.state
    install_error_handlers(inside)
    return inside


def _scope_of(call: Call) -> Scope:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in call.headers]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": call.method,
        "scheme": "http",
        "path": call.path,
        "raw_path": call.path.encode(),
        "query_string": call.query.encode("latin-1"),
        "root_path": "",
        "headers": [*headers, (b"content-length", str(len(call.body)).encode())],
        "client": None,
        "server": None,
        "state": {},
        _KEY: True,
    }
