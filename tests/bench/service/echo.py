"""The least server, to find out what the generator can do: `python -m` this module, port."""

import asyncio
import sys
from typing import cast

import uvloop

from tests.bench.service.generator import content_length


class Echo(asyncio.Protocol):
    """Answers every request with the same few bytes."""

    REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n" + bytes(40)

    def __init__(self) -> None:
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for requests."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer when a request is whole."""
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end >= 0 and len(self._received) >= end + 4 + content_length(bytes(self._received[:end])):
            self._received.clear()
            self._transport.write(self.REPLY)


async def serve(port: int) -> None:
    """Serve for ever."""
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
