"""The least server, to find out what the load generator can do: `python -m` this module, port."""

import asyncio
import sys
from typing import cast

import httptools
import uvloop


class Echo(asyncio.Protocol):
    """Returns every request with the same few bytes."""

    REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n" + bytes(40)

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for requests."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request."""
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """Answer a request that is whole."""
        self._transport.write(self.REPLY)


async def serve(port: int) -> None:
    """Serve for ever."""
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
