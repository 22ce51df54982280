"""Reads a request's body within the limits on its size and on the time that it may take."""

import asyncio

from starlette.requests import Request

from service.config.limits import Limits
from service.errors import ServiceError
from service.lifecycle import Lifecycle
from service.scheduling.refusals import shutting_down

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
    if not is_encoded:
        _check_encoding(request)
    _check_upgrade(request)
    try:
        declared = request.headers.get("content-length", "0")
        limits.check_body(int(declared) if declared.isdecimal() else 0)
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


def _check_encoding(request: Request) -> None:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        message = f"Content-Encoding {encoding[:40]} is not taken; send the body as it is"
        details = {"content_encoding": encoding[:40], "accepted": ["identity"]}
        raise ServiceError(415, "unsupported_encoding", message, details, {"Accept-Encoding": "identity"})


def _check_upgrade(request: Request) -> None:
    connection = request.headers.get("connection", "").lower().split(",")
    if "upgrade" in (token.strip() for token in connection):
        # the HTTP parser takes what follows such a head for the other protocol, and drops it
        message = "a body is not taken along with an upgrade to another protocol; send it as plain HTTP/1.1"
        details = {"upgrade": request.headers.get("upgrade", "")[:40]}
        raise ServiceError(400, "upgrade_refused", message, details, _CLOSE)


async def _read(request: Request, limits: Limits, padding: int) -> bytes:
    chunks = [bytes(padding)] if padding else []
    size = 0
    async for chunk in request.stream():
        if chunk:
            size += len(chunk)
            limits.check_body(size)
            chunks.append(chunk)
    return b"".join(chunks)  # of one chunk, without a copy
