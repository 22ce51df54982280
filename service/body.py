"""Reads a request's body, no more of it than is allowed, for no longer than is allowed."""

import asyncio

from starlette.requests import Request

from service.codec import Limits
from service.errors import ServiceError

_CLOSE = {"Connection": "close"}
"""What is left of a body that nobody reads must not be taken for the next request."""


async def read_body(request: Request, limits: Limits, timeout: float) -> bytes:
    """Return a request's whole body.

    Args:
        request: the request, its body not touched yet.
        limits: how large the body may be.
        timeout: seconds that the client has to send it.

    Raises:
        ServiceError: 413 `body_too_large`, 408 `body_timeout`.
        ClientDisconnect: the client left.
    """
    try:
        declared = request.headers.get("content-length", "0")
        limits.check_body(int(declared) if declared.isdecimal() else 0)
        async with asyncio.timeout(timeout):
            return await _read(request, limits)
    except TimeoutError as error:
        message = f"the body took longer than {timeout:g} s to arrive"
        raise ServiceError(408, "body_timeout", message, {"timeout": timeout}, _CLOSE) from error
    except ServiceError as error:
        error.headers |= _CLOSE
        raise


async def _read(request: Request, limits: Limits) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        limits.check_body(size)
        chunks.append(chunk)
    return b"".join(chunks)
