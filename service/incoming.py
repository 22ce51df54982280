"""A request's body on its way in, and what is left of it when the answer does not wait for it."""

import asyncio
import contextlib

from starlette.types import Message, Receive

LINGER_SECONDS = 5.0
"""Seconds that the rest of a body is thrown away for. A connection that is closed while its client still sends is
reset, and the client sees that instead of the answer."""


class Incoming:
    """An ASGI channel that knows whether the body has come to its end."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ended = False

    async def __call__(self) -> Message:
        """Return the next message."""
        message = await self._receive()
        self._ended = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    async def discard(self) -> None:
        """Throw away what is left of the body, for no longer than `LINGER_SECONDS`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while not self._ended:
                    await self()
