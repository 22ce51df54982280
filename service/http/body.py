"""Receives a request's body within the limits on its size and on the time that it may take."""

import asyncio
import contextlib

from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from service.config.limits import Limits
from service.context import RequestContext, context_of, has_arrived
from service.errors import ServiceError, shutting_down
from service.http.body_budget import Reservation
from service.lifecycle import Lifecycle

LINGER_SECONDS = 5.0
"""Longest time, in seconds, to go on discarding the rest of a body. A connection that is closed while its client is
still sending is reset, and the client sees the reset instead of the response."""
STALL_SECONDS = 10.0
"""Longest time, in seconds, in which nothing of a body arrives before its request is refused."""


class BodyChannel:
    """Receives a request's body: tracks whether it is complete, and reserves memory for it as it arrives.

    Args:
        receive: the server's ASGI channel.
        reservation: the request's part of the budget.
        is_whole: whether the whole body is known to have arrived.
    """

    def __init__(self, receive: Receive, reservation: Reservation, *, is_whole: bool = False) -> None:
        self._receive = receive
        self._reservation = reservation
        self._is_whole = is_whole
        self._received = 0
        self._ended = False

    async def __call__(self) -> Message:
        """Return the next message.

        Raises:
            ServiceError: 503 `buffers_full`; 408 `body_timeout` where nothing has arrived for `STALL_SECONDS`.
        """
        if self._is_whole or self._ended:
            message = await self._receive()
            self._note_end(message)
        else:
            message = await self._wait()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            self._reservation.expect(self._received)
            if self._ended:
                self._reservation.complete()
        return message

    async def discard(self) -> None:
        """Discard what is left of the body, for no longer than `LINGER_SECONDS`."""
        self._reservation.release()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while not self._ended:
                    await self._next()

    async def _wait(self) -> Message:
        """Return the next message of a body that is arriving, unless that stalls or is aborted."""
        try:
            async with asyncio.timeout(STALL_SECONDS) as deadline:
                self._reservation.begin(deadline)
                return await self._next()
        except TimeoutError as error:
            raise self._reservation.refusal or _stalled() from error
        finally:
            self._reservation.pause()

    async def _next(self) -> Message:
        message = await self._receive()
        self._note_end(message)
        return message

    def _note_end(self, message: Message) -> None:
        self._ended = message["type"] != "http.request" or not message.get("more_body", False)


def _stalled() -> ServiceError:
    message = f"nothing of the body has arrived for {STALL_SECONDS:g} s"
    return ServiceError(408, "body_timeout", message, {"timeout": STALL_SECONDS}, {"Connection": "close"})


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
        message = f"Content-Encoding {encoding[:40]} is not supported; send the body uncompressed"
        details = {"content_encoding": encoding[:40], "accepted": [IDENTITY]}
        raise ServiceError(415, "unsupported_encoding", message, details, {"Accept-Encoding": IDENTITY})


def _check_upgrade(context: RequestContext) -> None:
    connection = context.header(b"connection")
    if connection is not None and "upgrade" in (token.strip() for token in connection.lower().split(",")):
        # the HTTP parser takes what follows such a head for the other protocol, and drops it
        message = "a body cannot be sent with an upgrade to another protocol; use plain HTTP/1.1"
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
