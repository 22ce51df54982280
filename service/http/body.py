"""Reads a request's body within the limits on its size and on the time that it may take."""

import asyncio

from starlette.requests import ClientDisconnect, Request

from service.config.limits import Limits
from service.context import RequestContext, context_of, has_arrived
from service.errors import ServiceError, shutting_down
from service.lifecycle import Lifecycle

IDENTITY = "identity"
"""The content coding of a body that is sent as it is."""
_LARGE_BYTES = 4 << 20
"""Longest body that is joined on the event loop, which takes a millisecond or two; 64 MiB would hold it up for 50."""
_CLOSE = {"Connection": "close"}
"""The rest of a body that nobody reads must not be parsed as the next request."""


async def read_body(
    request: Request,
    limits: Limits,
    timeout: float,
    lifecycle: Lifecycle,
    *,
    is_encoded: bool = False,
    padding: int = 0,
) -> bytes:
    """Return a request's whole body.

    Args:
        request: the request, its body not touched yet.
        limits: how large the body may be.
        timeout: seconds that the client has to send it.
        lifecycle: the server's; when its drain is over, the client has less time.
        is_encoded: whether a content coding is accepted, and left for the caller to decode.
        padding: how many zero bytes to put before the body, so that arrays in it are aligned.

    Raises:
        ServiceError: 413 `body_too_large`, 408 `body_timeout`, 415 `unsupported_encoding`, 400 `upgrade_refused`,
            503 `shutting_down`.
        ClientDisconnect: the client left.
    """
    context = context_of(request)
    if not is_encoded:
        _check_encoding(context)
    if b"connection" in context.headers:
        _check_upgrade(context)
    try:
        declared = context.headers.get(b"content-length", b"0")
        limits.check_body(int(declared) if declared.isdigit() else 0)
        if has_arrived(request.scope):
            return await _read(request, limits, padding)
        async with asyncio.timeout(timeout) as deadline:
            with lifecycle.receiving(deadline):
                return await _read(request, limits, padding)
    except TimeoutError as error:
        late = shutting_down() if lifecycle.is_drain_over else _late_body(timeout)
        late.headers |= _CLOSE
        raise late from error
    except ServiceError as error:
        error.headers |= _CLOSE
        raise


def _late_body(timeout: float) -> ServiceError:
    """Word the error for a body that did not come in time, in seconds."""
    message = f"the body took longer than {timeout:g} s to arrive"
    return ServiceError(408, "body_timeout", message, {"timeout": timeout})


def _check_encoding(context: RequestContext) -> None:
    encoding = (context.header(b"content-encoding") or IDENTITY).strip().lower()
    if encoding not in ("", IDENTITY):
        message = f"Content-Encoding {encoding[:40]} is not taken; send the body as it is"
        details = {"content_encoding": encoding[:40], "accepted": [IDENTITY]}
        raise ServiceError(415, "unsupported_encoding", message, details, {"Accept-Encoding": IDENTITY})


def _check_upgrade(context: RequestContext) -> None:
    connection = context.header(b"connection")
    if connection is not None and "upgrade" in (token.strip() for token in connection.lower().split(",")):
        # the HTTP parser takes what follows such a head for the other protocol, and drops it
        message = "a body is not taken along with an upgrade to another protocol; send it as plain HTTP/1.1"
        details = {"upgrade": (context.header(b"upgrade") or "")[:40]}
        raise ServiceError(400, "upgrade_refused", message, details, _CLOSE)


async def _read(request: Request, limits: Limits, padding: int) -> bytes:
    chunks = [bytes(padding)] if padding else []
    size, has_more = 0, True
    while has_more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk, has_more = message.get("body", b""), message.get("more_body", False)
        if chunk:
            size += len(chunk)
            limits.check_body(size)
            chunks.append(chunk)
    if size <= _LARGE_BYTES:
        return b"".join(chunks)  # of one chunk, without a copy
    try:
        return await asyncio.to_thread(_join, chunks)
    except RuntimeError:  # the system has no room for a thread
        return b"".join(chunks)


def _join(chunks: list[bytes]) -> bytes:
    """Join chunks and drop them, without the GIL for most of the time."""
    joined = b"".join(chunks)
    chunks.clear()
    return joined
