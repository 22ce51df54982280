"""A request's body on its way in, and what is left of it when the answer does not wait for it."""

import asyncio
import contextlib

from starlette.types import Message, Receive

from service.http.body_budget import Reservation

LINGER_SECONDS = 5.0
"""Seconds that the rest of a body is thrown away for. A connection that is closed while its client still sends is
reset, and the client sees that instead of the answer."""


class Incoming:
    """An ASGI channel that knows whether the body has come to its end, and reserves room for it before it comes.

    Args:
        receive: the server's channel.
        reservation: the room.
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
        """Throw away what is left of the body, for no longer than `LINGER_SECONDS`."""
        self._reservation.release()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while not self._ended:
                    await self._next()

    async def _next(self) -> Message:
        message = await self._receive()
        self._ended = message["type"] != "http.request" or not message.get("more_body", False)
        return message
