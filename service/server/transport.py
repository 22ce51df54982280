"""A transport that sends the head of a response together with its body."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

FINISH_SECONDS = 2.0
"""Seconds that a client has to read a last response and close the connection."""


class CoalescingTransport:
    """Coalesces two consecutive writes: one system call less for each response.

    A write that no other follows is sent in the next iteration of the event loop. Writes to a client that has left are
    dropped, whatever the event loop. All else is delegated to the transport.

    Args:
        transport: sends the data.
        loop: its event loop.
        linger: called when the transport is closed with data that the client has not read yet.
    """

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, linger: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._linger = linger
        self._held: bytes = b""
        self.is_closing = transport.is_closing  # asked several times for each request

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send data together with the write that is held, if there is one; otherwise hold it."""
        if self.is_closing():
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
        if not self.is_closing():
            self._transport.writelines(data)

    def close(self) -> None:
        """Send what is held, then close."""
        self._flush()
        if not self.is_closing() and self._transport.get_write_buffer_size():
            self._linger()
        self._transport.close()

    def finish(self) -> None:
        """Send what is held, and close when the client has, or a little later.

        Until then what it sends is dropped: a connection that is closed with unread bytes is reset, and the client may
        lose the response.
        """
        self._flush()
        if self.is_closing() or not self._transport.can_write_eof():
            self.close()
            return
        self._transport.write_eof()
        self._transport.resume_reading()
        self.is_closing = _finished
        self._loop.call_later(FINISH_SECONDS, self._transport.close)

    def _flush(self) -> None:
        held, self._held = self._held, b""
        if held and not self.is_closing():
            self._transport.write(held)


def _finished() -> bool:
    return True
