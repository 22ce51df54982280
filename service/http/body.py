"""Receives a request's body, within limits on its size and its time, and a budget for the memory of all bodies."""

import asyncio
import contextlib
from collections import Counter
from math import inf
from time import monotonic

from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from service.config.limits import Limits
from service.context import Peer, RequestContext, context_of, has_arrived
from service.errors import ServiceError, shutting_down
from service.lifecycle import Lifecycle
from service.scheduling.queue import ServiceRate

STEP = 1 << 20
"""Bytes that are reserved beyond those that have arrived, once any have: they may be in buffers already."""
GRACE_SECONDS = 1.0
"""Seconds that a body has to arrive before it may be aborted for the sake of others."""
_RESERVE = 8
"""One in so many bytes is there beyond the limit, for clients that hold less than another."""
LINGER_SECONDS = 5.0
"""Longest time, in seconds, to go on discarding the rest of a body. A connection that is closed while its client is
still sending is reset, and the client sees the reset instead of the response."""
STALL_SECONDS = 10.0
"""Longest time, in seconds, in which nothing of a body arrives before its request is refused."""
IDENTITY = "identity"
"""The content coding of a body that is sent as it is."""
_LARGE_BYTES = 4 << 20
"""Longest body that is joined on the event loop, which takes a millisecond or two; 64 MiB would hold it up for 50."""
_CLOSE = {"Connection": "close"}
"""The rest of a body that nobody reads must not be parsed as the next request."""
_UNKNOWN = RequestContext("")


class BodyBudget:
    """Bytes that the bodies of all requests may take together, from when they arrive until their response.

    What a client declares takes nothing. Where there is too little room, bodies that arrive more slowly are aborted,
    and then those that arrive of the client that holds most. While that client holds more than another wants to hold in
    all, the other may go beyond the limit, by an eighth of it: nobody can take all of the budget. A body that exceeds
    the budget by itself is accepted while there is no other: the size of one request is limited by `max_body_bytes`.
    Used on the event loop only.

    Args:
        limit: maximum bytes.

    Attributes:
        used: bytes that are reserved.
        arriving: bodies that are awaited, which may be aborted for the sake of others.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rate = ServiceRate()
        self.arriving: set[Reservation] = set()
        self._holding: set[Reservation] = set()
        self.used = 0

    def check(self, count: int, client: Peer) -> None:
        """Check that there would be room for some bytes of a client, if slow bodies were aborted.

        Raises:
            ServiceError: 503 `buffers_full`.
        """
        if self.used and self.used + count > self._limit:
            now = monotonic()
            heavier, _ = self._heavier_than(client, count)
            giving = sum(
                body.held
                for body in self.arriving
                if now - body.began >= GRACE_SECONDS or body.client == heavier
            )
            if self.used - giving + count > self._limit_for(client, count) and self.used > giving:
                raise self._refusal(count)

    def reserve(self, count: int, body: "Reservation") -> None:
        """Reserve bytes for a body that may have reserved some already.

        Raises:
            ServiceError: 503 `buffers_full`.
        """
        if self.used > body.held and self.used + count > self._limit:
            self._make_room(count, body)
        self.used += count
        self._holding.add(body)

    def release(self, body: "Reservation") -> None:
        """Release all that is reserved for a body."""
        self.used -= body.held
        self._holding.discard(body)
        if body.held:
            self._rate.completed(body.held, body.since, monotonic())

    def _make_room(self, count: int, wanting: "Reservation") -> None:
        """Abort bodies that arrive more slowly than the one that wants room, then those of a client that holds more.

        Raises:
            ServiceError: 503 `buffers_full`.
        """
        now = monotonic()
        own = wanting.rate(now)
        others = [body for body in self.arriving if body is not wanting and body.held]
        for body in sorted(others, key=lambda body: body.rate(now)):
            if self.used + count <= self._limit or body.rate(now) >= own:
                break
            body.give_way(self._refusal(count))
        heavier, excess = self._heavier_than(wanting.client, count)
        theirs = [body for body in others if body.client == heavier and body.held]
        for body in sorted(theirs, key=lambda body: body.began, reverse=True):
            if self.used + count <= self._limit or excess <= 0:
                break
            excess -= body.held
            body.give_way(self._refusal(count))
        if self.used > wanting.held and self.used + count > self._limit_for(wanting.client, count):
            raise self._refusal(count)

    def _limit_for(self, client: Peer, count: int) -> int:
        """Return how many bytes may be used if a client gets some more."""
        heavier, _ = self._heavier_than(client, count)
        return self._limit if heavier is None else self._limit + self._limit // _RESERVE

    def _heavier_than(self, client: Peer, count: int) -> tuple[Peer | None, int]:
        """Return the client that holds most, and by how many bytes more than another holds and wants together.

        None and 0 where it does not hold more.
        """
        held: Counter[Peer] = Counter()
        for body in self._holding:
            held[body.client] += body.held
        most = max(held, key=held.__getitem__, default=client)
        excess = held[most] - held[client] - count
        return (most, excess) if excess > 0 else (None, 0)

    def _refusal(self, count: int) -> ServiceError:
        seconds = self._rate.retry_after(self.used + count - self._limit)
        message = (
            f"the bodies of requests in progress have {self.used} bytes; the maximum is {self._limit}: "
            f"retry in {seconds} s"
        )
        details = {"used": self.used, "limit": self._limit, "retry_after": seconds}
        headers = {"Retry-After": str(seconds), "Connection": "close"}
        return ServiceError(503, "buffers_full", message, details, headers)


class Reservation:
    """The part of the budget that one request has reserved.

    Attributes:
        held: bytes.
        since: when the first of them were reserved, in seconds of `monotonic`.
        began: when its body was first waited for, in seconds of `monotonic`.
        refusal: why it was aborted; None where it was not.
    """

    __slots__ = (
        "_budget",
        "_context",
        "_deadline",
        "_declared",
        "_received",
        "began",
        "held",
        "refusal",
        "since",
    )

    def __init__(self, budget: BodyBudget, declared: int | None, context: RequestContext = _UNKNOWN) -> None:
        """Start with nothing reserved.

        Args:
            budget: the budget.
            declared: `Content-Length`; None where the request has none.
            context: the request's, which knows by now or later who sends it.
        """
        self._budget = budget
        self._declared = declared
        self._deadline: asyncio.Timeout | None = None
        self._context = context
        self._received = 0
        self.held = 0
        self.began = self.since = inf
        self.refusal: ServiceError | None = None

    @property
    def client(self) -> Peer:
        """Who sends the body."""
        return self._context.client

    def begin(self, deadline: asyncio.Timeout) -> None:
        """Note that the body is waited for.

        Args:
            deadline: ends the waiting if the body is aborted.

        Raises:
            ServiceError: 503 `buffers_full`.
        """
        if self.refusal is not None:
            raise self.refusal
        self._deadline = deadline
        if self.began == inf:
            self._budget.check(min(self._declared or 0, STEP), self.client)
            self.began = monotonic()
            self._budget.arriving.add(self)

    def pause(self) -> None:
        """Note that the body is not waited for at the moment."""
        self._deadline = None

    def expect(self, received: int) -> None:
        """Reserve what has arrived, and the next step of what is declared.

        Args:
            received: bytes of the body that have arrived.

        Raises:
            ServiceError: 503 `buffers_full`.
        """
        if self.refusal is not None:
            raise self.refusal
        self._received = received
        expected = min(self._declared, received + STEP) if received and self._declared else received
        if expected > self.held:
            self._budget.reserve(expected - self.held, self)
            self.since = self.since if self.held else monotonic()
            self.held = expected

    def rate(self, now: float) -> float:
        """Return the bytes per second that have arrived; inf in the first second."""
        seconds = now - self.began
        return self._received / seconds if seconds >= GRACE_SECONDS else inf

    def complete(self) -> None:
        """Note that the body has arrived."""
        self._budget.arriving.discard(self)

    def give_way(self, refusal: ServiceError) -> None:
        """Release everything, and have the waiting for the rest of the body end."""
        self.release()
        self.refusal = refusal
        if self._deadline is not None:
            self._deadline.reschedule(asyncio.get_running_loop().time())

    def release(self) -> None:
        """Release everything."""
        self._budget.arriving.discard(self)
        if self.held:
            self._budget.release(self)
            self.held = 0


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
            message = await self._next()
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
        self._ended = message["type"] != "http.request" or not message.get("more_body", False)
        return message


def _stalled() -> ServiceError:
    message = f"nothing of the body has arrived for {STALL_SECONDS:g} s"
    return ServiceError(408, "body_timeout", message, {"timeout": STALL_SECONDS}, {"Connection": "close"})


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
