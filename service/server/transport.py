"""A connection's way out, on which the head of an answer waits for its body."""

import asyncio
from collections.abc import Iterable
from typing import Any


class JoiningTransport:
    """Sends two writes that follow each other as one: a system call less for each answer.

    What nothing follows is sent when the event loop comes round again. What comes for a client that has left is
    dropped, whichever event loop it is. All else is the transport's own.

    Args:
        transport: what sends.
        loop: its event loop.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: bytes = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send data, with what was held if there is anything; else hold it."""
        if self._transport.is_closing():
            self._held = b""
        elif self._held:
            held, self._held = self._held, b""
            self._transport.writelines((held, data))
        elif data:
            self._held = data
            self._loop.call_soon(self._flush)

    def writelines(self, data: Iterable[bytes]) -> None:
        """Send several pieces."""
        self._flush()
        if not self._transport.is_closing():
            self._transport.writelines(data)

    def close(self) -> None:
        """Send what is held, then close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, self._held = self._held, b""
        if held and not self._transport.is_closing():
            self._transport.write(held)
