"""The ASGI channel that receives a request's body, and discards what nobody reads."""

import asyncio
import contextlib

from starlette.types import Message, Receive

from service.errors import ServiceError
from service.http.body_budget import Reservation

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
        """Return the next message of a body that is arriving, unless that stalls or has to give way."""
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
