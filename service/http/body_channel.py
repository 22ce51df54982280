"""The ASGI channel that receives a request's body, and discards what nobody reads."""

import asyncio
import contextlib

from starlette.types import Message, Receive

from service.http.body_budget import Reservation

LINGER_SECONDS = 5.0
"""Longest time, in seconds, to go on discarding the rest of a body. A connection that is closed while its client is
still sending is reset, and the client sees the reset instead of the answer."""


class BodyChannel:
    """Receives a request's body: tracks whether it is complete, and reserves memory for it before it arrives.

    Args:
        receive: the server's ASGI channel.
        reservation: the request's part of the budget.
    """

    def __init__(self, receive: Receive, reservation: Reservation) -> None:
        self._receive = receive
        self._reservation = reservation
        self._received = 0
        self._ended = False

    async def __call__(self) -> Message:
        """Return the next message.

        Raises:
            ServiceError: 503 `buffers_full`.
        """
        if not self._ended:
            self._reservation.expect(self._received)
        message = await self._next()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            self._reservation.expect(self._received)
        return message

    async def discard(self) -> None:
        """Discard what is left of the body, for no longer than `LINGER_SECONDS`."""
        self._reservation.release()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while not self._ended:
                    await self._next()

    async def _next(self) -> Message:
        message = await self._receive()
        self._ended = message["type"] != "http.request" or not message.get("more_body", False)
        return message
