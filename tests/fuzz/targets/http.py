"""Heads of HTTP requests, through the server's own connection, without a socket."""

import asyncio
from functools import lru_cache
from typing import Any

import uvicorn
from starlette.responses import PlainTextResponse
from uvicorn.server import ServerState

from service.server.connection import Connection
from tests.service.server.shared import make_connections

_TURNS = 6
"""Turns of the event loop in which a response is written."""
_SERVER_ERROR = b"HTTP/1.1 500"


class Transport(asyncio.Transport):
    """Takes what the server writes, and never blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else default

    def write(self, data: "bytes | bytearray | memoryview[Any]") -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """Note nothing: all that is written is kept."""

    def pause_reading(self) -> None:
        """Read nothing more: here nothing comes."""

    resume_reading = pause_reading

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Keep the protocol: bytes are handed to the connection itself."""


class _Server:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(self._note)
        self.config = uvicorn.Config(PlainTextResponse("fine"), http=Connection, log_config=None)
        self.config.load()
        self.problems: list[dict[str, Any]] = []

    def _note(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.problems.append(context)

    async def talk(self, data: bytes) -> bytes:
        """Send bytes in two packets; return what the server wrote."""
        transport = Transport()
        connection = Connection(self.config, ServerState(), {}, shared=make_connections(), _loop=self.loop)
        connection.connection_made(transport)
        half = len(data) // 2
        for packet in (data[:half], data[half:]):
            if packet and not transport.closed:
                connection.data_received(packet)
            for _ in range(_TURNS):
                await asyncio.sleep(0)
        connection.connection_lost(None)
        await asyncio.sleep(0)
        return bytes(transport.written)


@lru_cache(maxsize=1)
def _server() -> _Server:
    return _Server()


def http_head(data: bytes) -> None:
    """Send bytes to a connection, in two packets; whatever it answers is HTTP, and no server error."""
    server = _server()
    response = server.loop.run_until_complete(server.talk(data))
    if server.problems:
        raise AssertionError(str(server.problems.pop()))
    if response and (not response.startswith(b"HTTP/1.1 ") or _SERVER_ERROR in response):
        raise AssertionError(repr(response[:200]))
